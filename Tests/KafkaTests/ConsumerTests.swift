import Kafka
import TestSupport
import Testing

extension KafkaTests {
    @Suite struct ConsumerTests {
        @Test(arguments: ClusterKind.available)
        func deliversEveryRecordOnceWithLittleCredit(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 4)
                let handler = RecordingHandler(creditAtStart: 25)
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await cluster.fill(topic, 0..<20_000)
                try await until("20,000 records have arrived") { handler.records.count >= 20_000 }
                await consumer.close()
                #expect(handler.records.count == 20_000)
                #expect(Set(handler.values) == Set((0..<20_000).map { "\($0)" }))
                for records in Dictionary(grouping: handler.records, by: \.partition).values {
                    #expect(records.map(\.offset) == Array(0..<Int64(records.count)))
                }
                #expect(handler.errors == [])
            }
        }

        @Test(arguments: ClusterKind.available)
        func deliversNothingWithoutCredit(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                try await cluster.fill(topic, partition: 0, 0..<50)
                let handler = RecordingHandler(creditAtStart: 0, renewsCredit: false)
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await until("partitions are assigned") { handler.owned.count == 2 }
                consumer.addCredit(.records(5), to: TopicPartition(topic, 0))
                consumer.addCredit(.records(2), to: TopicPartition(topic, 0))
                consumer.addCredit(.records(1_000), to: TopicPartition("another", 0))
                try await until("the granted records have arrived") { handler.records.count == 7 }
                // Later records of the other partition show that the first one was skipped meanwhile.
                consumer.addCredit(.records(100), to: TopicPartition(topic, 1))
                try await cluster.fill(topic, partition: 1, 100..<150)
                try await until("the records of the other partition have arrived") {
                    handler.records.count { $0.partition == 1 } == 50
                }
                #expect(handler.records.filter { $0.partition == 0 }.map(\.offset) == Array(0..<7))
                // Prefetched records are not lost.
                consumer.addCredit(.records(100), to: TopicPartition(topic, 0))
                try await until("the other records have arrived") { handler.records.count == 100 }
                #expect(handler.records.filter { $0.partition == 0 }.map(\.offset) == Array(0..<50))
                await consumer.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func limitsDeliveryByBytes(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let partition = TopicPartition(topic, 0)
                // Each record has four bytes: a key and a value of two each.
                try await cluster.fill(topic, partition: 0, 10..<60)
                let handler = RecordingHandler(creditAtStart: 0, renewsCredit: false)
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await until("the partition is assigned") { !handler.owned.isEmpty }
                // The third record is delivered for the one byte that is left, so the credit is at minus three bytes.
                consumer.addCredit(Credit(records: 100, bytes: 9), to: partition)
                try await until("three records have arrived") { handler.records.count == 3 }
                consumer.addCredit(Credit(records: 0, bytes: 3), to: partition)
                consumer.addCredit(Credit(records: 0, bytes: 5), to: partition)
                try await until("five records have arrived") { handler.records.count == 5 }
                consumer.addCredit(Credit(records: 0, bytes: 1000), to: partition)
                try await until("all records have arrived") { handler.records.count == 50 }
                #expect(handler.records.map(\.offset) == Array(0..<50))
                #expect(handler.records.allSatisfy { $0.bytes == 4 })
                await consumer.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func nextConsumerResumesAtTheCommittedOffset(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let partition = TopicPartition(topic, 0)
                try await cluster.fill(topic, 0..<10)
                let first = RecordingHandler()
                var consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: first)
                try await until("the records have arrived") { first.records.count == 10 }
                #expect(try await consumer.committed(partition) == [:])
                try await consumer.commit([partition: GroupOffset(7, metadata: "v1;9")])
                #expect(try await consumer.committed(partition) == [partition: GroupOffset(7, metadata: "v1;9")])
                let refused = await #expect(throws: KafkaError.self) {
                    try await consumer.commit([partition: GroupOffset(8, metadata: "é")])
                }
                #expect(refused?.code == .invalidArgument)
                await consumer.close()
                let late = await #expect(throws: KafkaError.self) {
                    try await consumer.commit([partition: GroupOffset(9)])
                }
                #expect(late?.code == .closed)

                let second = RecordingHandler()
                consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: second)
                try await until("the other records have arrived") { second.records.count == 3 }
                #expect(second.records.map(\.offset) == [7, 8, 9])
                await consumer.close()
                await consumer.close()
            }
        }

        /// The limit is the default of brokers.
        @Test(arguments: ClusterKind.available)
        func commitMetadataIsLimitedTo4096Characters(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let partition = TopicPartition(topic, 0)
                let handler = RecordingHandler()
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await until("the partition is assigned") { handler.owned.count == 1 }
                // All printable characters, repeatedly.
                let metadata = String(decoding: (0..<4096).map { UInt8(33 + $0 % 94) }, as: UTF8.self)
                try await consumer.commit([partition: GroupOffset(3, metadata: metadata)])
                #expect(try await consumer.committed(partition) == [partition: GroupOffset(3, metadata: metadata)])
                // The mock cluster has no limit.
                if kind == .apache {
                    let refused = await #expect(throws: KafkaError.self) {
                        try await consumer.commit([partition: GroupOffset(4, metadata: metadata + "!")])
                    }
                    #expect(refused?.code == .offsetMetadataTooLarge)
                    #expect(try await consumer.committed(partition)[partition]?.offset == 3)
                }
                await consumer.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func closingWaitsForTheHandlerAndItsCommit(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                let journal = RecordingHandler.Journal()
                let handler = RecordingHandler(journal: journal) { partitions, lost, consumer in
                    try? await Task.sleep(for: .milliseconds(200))
                    await #expect(throws: Never.self) {
                        try await consumer.commit([TopicPartition(topic, 1): GroupOffset(3, metadata: "last words")])
                    }
                    #expect(!lost)
                }
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await until("partitions are assigned") { handler.owned.count == 2 }
                await consumer.close()
                #expect(journal.all.suffix(2) == ["consumer revoked 0", "consumer revoked 1"])
                let admin = try Admin(properties: cluster.properties)
                let partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
                #expect(
                    try await admin.committed(by: topic, in: partitions, within: .patience)
                        == [partitions[1]: GroupOffset(3, metadata: "last words")])
                await admin.close()
            }
        }

        @Test(arguments: ClusterKind.available, ["range", "cooperative-sticky"])
        func consumersSharePartitionsAndHandOverInOrder(_ kind: ClusterKind, strategy: String) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 4)
                for partition in 0..<4 { try await cluster.fill(topic, partition: Int32(partition), 0..<5) }
                let properties = cluster.properties(group: topic, ["partition.assignment.strategy": strategy])
                let journal = RecordingHandler.Journal()
                // Finishes slow work, then commits, before it releases the partitions.
                let first = RecordingHandler("first", journal: journal) { partitions, lost, consumer in
                    try? await Task.sleep(for: .milliseconds(300))
                    do throws(KafkaError) {
                        let offsets = partitions.map { ($0, GroupOffset(5, metadata: "handed over")) }
                        try await consumer.commit(Dictionary(uniqueKeysWithValues: offsets))
                    } catch {
                        // The mock cluster rejects commits during a rebalance. Apache Kafka accepts them during joins.
                        #expect(kind == .mock && error.name == "REBALANCE_IN_PROGRESS")
                    }
                }
                let second = RecordingHandler("second", journal: journal)
                let firstConsumer = try await Consumer.start(topics: [topic], properties: properties, handler: first)
                try await until("the first consumer has all partitions") {
                    first.owned.count == 4 && first.records.count >= 20
                }
                let secondConsumer = try await Consumer.start(topics: [topic], properties: properties, handler: second)
                try await until("the consumers share the partitions") {
                    first.owned.count == 2 && second.owned.count == 2
                }
                #expect(first.owned.isDisjoint(with: second.owned))

                // Each partition was revoked, after its commit, before it was assigned to the other consumer.
                let lines = journal.all
                for partition in second.owned.map(\.partition) {
                    let released = try #require(lines.firstIndex(of: "first revoked \(partition)"))
                    let taken = try #require(lines.firstIndex(of: "second assigned \(partition)"))
                    #expect(released < taken)
                }
                if kind == .apache {
                    let moved = second.owned.map { ($0, GroupOffset(5, metadata: "handed over")) }
                    #expect(
                        try await secondConsumer.committed(Array(second.owned), within: .patience)
                            == Dictionary(uniqueKeysWithValues: moved))
                }

                // Both receive records, and the second takes over the partitions of the first.
                let new = Set((100..<500).map(String.init))
                try await cluster.fill(topic, 100..<500)
                try await until("all records have arrived") { new.isSubset(of: first.values + second.values) }
                #expect(!new.isDisjoint(with: first.values) && !new.isDisjoint(with: second.values))
                await firstConsumer.close()
                try await until("the second consumer has all partitions") { second.owned.count == 4 }
                await secondConsumer.close()
                #expect(second.owned == [])
                #expect(first.errors + second.errors == [])
            }
        }

        @Test(arguments: ClusterKind.available)
        func losesNoRecordDuringRebalances(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 4)
                // Sends records until it is cancelled, and returns their number.
                let filling = Task {
                    var count = 0
                    while !Task.isCancelled {
                        try await cluster.fill(topic, count..<count + 200)
                        count += 200
                        try? await Task.sleep(for: .milliseconds(150))
                    }
                    return count
                }
                // Seven rebalances of the mock cluster would take too long with its usual session timeout.
                let properties = cluster.properties(
                    group: topic, kind == .mock ? ["session.timeout.ms": "6000"] : [:])
                func join(_ handler: RecordingHandler) async throws -> Consumer {
                    try await Consumer.start(topics: [topic], properties: properties, handler: handler)
                }
                let steady = RecordingHandler(commitsWhenRevoked: true)
                let steadyConsumer = try await join(steady)
                var guests: [RecordingHandler] = []
                for _ in 0..<3 {
                    let guest = RecordingHandler(commitsWhenRevoked: true)
                    let guestConsumer = try await join(guest)
                    try await until("the guest receives records") { !guest.records.isEmpty }
                    await guestConsumer.close()
                    guests.append(guest)
                }
                filling.cancel()
                let total = try await filling.value
                let all = guests + [steady]
                try await until("every record has arrived") {
                    Set(all.flatMap(\.values)).count == total
                }
                await steadyConsumer.close()
                #expect(all.flatMap(\.errors) == [])
                // Only records after a rejected commit are redelivered, and Apache Kafka rejects none here.
                let kept = all.map(\.records.count).reduce(0, +)
                if kind == .apache { #expect(kept == total) }
            }
        }

        /// Needs Apache Kafka, because the mock cluster creates requested topics.
        @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
        func reportsAMissingTopic() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let handler = RecordingHandler()
                let name = cluster.unique("missing")
                let consumer = try await Consumer.start(
                    topics: [name], properties: cluster.properties(group: name), handler: handler)
                try await until("the error is reported") {
                    handler.errors.contains { $0.code == .unknownTopicOrPartition }
                }
                #expect(handler.errors.allSatisfy { !$0.isFatal })
                await consumer.close()
            }
        }

        @Test func requiresAGroup() async {
            let error = await #expect(throws: KafkaError.self) {
                try await Consumer.start(
                    topics: ["topic"], properties: ["bootstrap.servers": "127.0.0.1:1"], handler: RecordingHandler())
            }
            #expect(error?.message.contains("group.id") == true)
        }

        @Test func closesWhileNoBrokerAnswers() async throws {
            let handler = RecordingHandler()
            let consumer = try await Consumer.start(
                topics: ["topic"], properties: ["bootstrap.servers": "127.0.0.1:1", "group.id": "group"],
                handler: handler)
            await consumer.close()
            #expect(handler.records == [])
        }
    }
}
