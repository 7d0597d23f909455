import Kafka
import TestSupport
import Testing

extension KafkaTests {
    /// Transactions on Apache Kafka.
    @Suite(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set")) struct TransactionTests {
        /// Returns an initialized producer with this transactional id.
        private func producer(
            _ id: String, _ cluster: ClusterFixture, _ more: [String: String] = [:]
        ) async throws -> TransactionalProducer {
            let producer = try TransactionalProducer(
                properties: cluster.properties.merging(["transactional.id": id]) { $1 }.merging(more) { $1 })
            try await producer.initialize(within: .patience)
            return producer
        }

        private func records(_ topic: String, _ numbers: Range<Int>) -> [ProducerRecord] {
            numbers.map { ProducerRecord(topic: topic, partition: 0, value: Array("\($0)".utf8)) }
        }

        /// Returns the values of all committed records up to the one with value `last`.
        private func committed(_ topic: String, upTo last: String, _ cluster: ClusterFixture) async throws -> [String] {
            let reader = try await TopicReader.open(
                topic, from: .beginning, properties: cluster.properties, within: .patience)
            var values: [String] = []
            for try await record in reader {
                values.append(String(decoding: record.value ?? [], as: UTF8.self))
                if values.last == last { break }
            }
            await reader.close()
            return values
        }

        @Test func readersSeeCommittedRecordsOnly() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try await producer(topic, cluster)
                try await producer.begin()
                var sends = await producer.send(records(topic, 0..<100))
                try await producer.commit(within: .patience)
                #expect(await sends.failures() == [:])
                try await producer.begin()
                sends = await producer.send(records(topic, 100..<200))
                // Waits for the records, because an abort that overtakes them is rejected.
                #expect(await sends.failures() == [:])
                try await producer.abort(within: .patience)
                try await producer.begin()
                sends = await producer.send(records(topic, 200..<300))
                try await producer.commit(within: .patience)
                #expect(await sends.failures() == [:])
                await producer.close()
                #expect(
                    try await committed(topic, upTo: "299", cluster)
                        == (Array(0..<100) + Array(200..<300)).map(String.init))
            }
        }

        @Test func newerProducerFencesTheOlderOne() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let older = try await producer(topic, cluster)
                try await older.begin()
                #expect(await older.send(records(topic, 0..<10)).failures() == [:])
                let newer = try await producer(topic, cluster)
                let error = await #expect(throws: TransactionError.self) {
                    try await older.commit(within: .patience)
                }
                #expect(error?.kind == .fenced)
                let after = await #expect(throws: TransactionError.self) { try await older.begin() }
                #expect(after?.kind == .fenced || after?.kind == .fatal)
                await older.close()
                try await newer.begin()
                _ = await newer.send(records(topic, 10..<20))
                try await newer.commit(within: .patience)
                await newer.close()
                #expect(try await committed(topic, upTo: "19", cluster) == (10..<20).map(String.init))
            }
        }

        @Test func expiredTransactionFailsAndTheNextSucceeds() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let first = try await producer(topic, cluster, ["transaction.timeout.ms": "1000"])
                try await first.begin()
                // Waits for the results, so that the next record is behind these. On a busy machine the transaction may
                // expire before all of them are written.
                _ = await first.send(records(topic, 0..<10)).failures()
                // Readers see this record as soon as Kafka has aborted the transaction before it.
                let other = try Producer(properties: cluster.properties)
                try await other.send(ProducerRecord(topic: topic, value: Array("after".utf8)))
                await other.close()
                #expect(try await committed(topic, upTo: "after", cluster) == ["after"])
                let error = await #expect(throws: TransactionError.self) {
                    try await first.commit(within: .patience)
                }
                #expect(error?.kind == .fenced || error?.kind == .abortable)
                await first.close()
                let second = try await producer(topic, cluster)
                try await second.begin()
                _ = await second.send(records(topic, 10..<11))
                try await second.commit(within: .patience)
                await second.close()
                #expect(try await committed(topic, upTo: "10", cluster) == ["after", "10"])
            }
        }

        @Test func commitsOffsetsAndMetadataAtomicallyWithRecords() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let (jobs, events) = (
                    try await cluster.newTopic(partitions: 1), try await cluster.newTopic(partitions: 1)
                )
                let partition = TopicPartition(jobs, 0)
                try await cluster.fill(jobs, 0..<10)
                let handler = RecordingHandler()
                let consumer = try await Consumer.start(
                    topics: [jobs], properties: cluster.properties(group: jobs), handler: handler)
                try await until("the records have arrived") { handler.records.count == 10 }
                let producer = try await producer(jobs, cluster)
                try await producer.begin()
                _ = await producer.send(records(events, 0..<4))
                try await producer.sendOffsets(
                    [partition: GroupOffset(4, metadata: "a note")], of: consumer.membership())
                try await producer.commit(within: .patience)
                #expect(try await consumer.committed(partition) == [partition: GroupOffset(4, metadata: "a note")])
                try await producer.begin()
                _ = await producer.send(records(events, 4..<8))
                try await producer.sendOffsets([partition: GroupOffset(8)], of: consumer.membership())
                try await producer.abort(within: .patience)
                #expect(try await consumer.committed(partition) == [partition: GroupOffset(4, metadata: "a note")])
                try await producer.begin()
                let refused = await #expect(throws: TransactionError.self) {
                    try await producer.sendOffsets(
                        [partition: GroupOffset(9, metadata: "é")], of: consumer.membership())
                }
                #expect(refused?.kind == .abortable)
                try await producer.abort(within: .patience)
                await producer.close()
                await consumer.close()
                await #expect(throws: KafkaError.self) { try await consumer.membership() }
            }
        }

        @Test func rejectsOffsetsOfAPastGeneration() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let jobs = try await cluster.newTopic(partitions: 2)
                let events = try await cluster.newTopic(partitions: 1)
                let first = RecordingHandler("first")
                let consumer = try await Consumer.start(
                    topics: [jobs], properties: cluster.properties(group: jobs), handler: first)
                try await until("the consumer has both partitions") { first.owned.count == 2 }
                let producer = try await producer(jobs, cluster)
                let past = try await consumer.membership()
                let second = RecordingHandler("second")
                let other = try await Consumer.start(
                    topics: [jobs], properties: cluster.properties(group: jobs), handler: second)
                try await until("each consumer has one partition") { first.owned.count == 1 && second.owned.count == 1 }
                try await producer.begin()
                _ = await producer.send(records(events, 0..<4))
                let offsets = [TopicPartition(jobs, 0): GroupOffset(1)]
                let error = await #expect(throws: TransactionError.self) {
                    try await producer.sendOffsets(offsets, of: past)
                }
                #expect(error?.kind == .abortable && error?.cause.code == .illegalGeneration)
                try await producer.abort(within: .patience)
                // The same offsets are accepted under the current generation.
                try await producer.begin()
                try await producer.sendOffsets(offsets, of: consumer.membership())
                try await producer.commit(within: .patience)
                #expect(try await consumer.committed(TopicPartition(jobs, 0)) == offsets)
                await producer.close()
                await other.close()
                await consumer.close()
            }
        }

        @Test func rejectsOffsetsOfAMemberThatLeft() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let jobs = try await cluster.newTopic(partitions: 1)
                let handler = RecordingHandler()
                let consumer = try await Consumer.start(
                    topics: [jobs], properties: cluster.properties(group: jobs), handler: handler)
                try await until("the consumer has its partition") { handler.owned.count == 1 }
                let past = try await consumer.membership()
                await consumer.close()
                let successor = RecordingHandler()
                let other = try await Consumer.start(
                    topics: [jobs], properties: cluster.properties(group: jobs), handler: successor)
                try await until("the other consumer has the partition") { successor.owned.count == 1 }
                let producer = try await producer(jobs, cluster)
                try await producer.begin()
                let error = await #expect(throws: TransactionError.self) {
                    try await producer.sendOffsets([TopicPartition(jobs, 0): GroupOffset(1)], of: past)
                }
                #expect(error?.kind == .abortable && error?.cause.code == .unknownMember)
                try await producer.abort(within: .patience)
                await producer.close()
                await other.close()
            }
        }

        @Test func reportsTheOversizedRecord() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try await producer(topic, cluster)
                try await producer.begin()
                var batch = records(topic, 0..<3)
                batch[1].value = Array(repeating: 65, count: 2_000_000)
                let sends = await producer.send(batch)
                #expect(sends.hasFailures)
                // Waits for the other records, because an abort that overtakes them is rejected.
                #expect(await sends.failures().mapValues(\.code) == [1: .messageTooLarge])
                try await producer.abort(within: .patience)
                await producer.close()
            }
        }

        @Test func reportsThePartitionEndBehindAMarker() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try await producer(topic, cluster)
                try await producer.begin()
                _ = await producer.send(records(topic, 0..<3))
                try await producer.commit(within: .patience)
                let handler = RecordingHandler()
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                // Three records and the marker.
                try await until("the end is reported") { handler.ends[TopicPartition(topic, 0)] == 4 }
                #expect(handler.records.count == 3)
                try await producer.begin()
                #expect(await producer.send(records(topic, 3..<5)).failures() == [:])
                try await producer.abort(within: .patience)
                try await until("aborted records are skipped") { handler.ends[TopicPartition(topic, 0)] == 7 }
                #expect(handler.records.count == 3)
                await producer.close()
                await consumer.close()
            }
        }
    }

    @Suite struct TransactionRefusalTests {
        @Test func mockClusterDoesNotSupportTransactions() async throws {
            try await ClusterFixture.with(.mock) { cluster in
                let producer = try TransactionalProducer(
                    properties: cluster.properties.merging(["transactional.id": "one"]) { $1 })
                let error = await #expect(throws: TransactionError.self) {
                    try await producer.initialize(within: .patience)
                }
                #expect(error?.kind == .fatal && error?.cause.code == .unsupported)
                await producer.close()
            }
        }

        @Test func requiresATransactionalID() {
            let error = #expect(throws: KafkaError.self) {
                try TransactionalProducer(properties: ["bootstrap.servers": "127.0.0.1:1"])
            }
            #expect(error?.code == .invalidArgument && error?.message.contains("transactional.id") == true)
        }

        @Test func unreachableBrokersAreARetriableError() async throws {
            let producer = try TransactionalProducer(
                properties: ["bootstrap.servers": "127.0.0.1:1", "transactional.id": "one"])
            let error = await #expect(throws: TransactionError.self) {
                try await producer.initialize(within: .milliseconds(300))
            }
            #expect(error?.kind == .retriable)
            await producer.close()
            let late = await #expect(throws: TransactionError.self) { try await producer.begin() }
            #expect(late?.cause.code == .closed)
        }
    }
}
