import Kafka
import TestSupport
import Testing

extension KafkaTests {
    @Suite struct TopicReaderTests {
        @Test(arguments: ClusterKind.available)
        func readsAllRecordsWrittenAfterOpening(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 3)
                try await cluster.fill(topic, 0..<30)
                let reader = try await TopicReader.open(
                    topic, from: .end, properties: cluster.properties, within: .patience)
                let written = reader.endOffsets.values.reduce(0, +)
                #expect(written == 30)
                try await cluster.fill(topic, 100..<110)
                let values = try await take(10, from: reader)
                #expect(Set(values) == Set((100..<110).map { "\($0)" }))
                await reader.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func readsFromBeginningOffsetsOrTimestamp(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try cluster.producer()
                for number in 0..<10 {
                    try await producer.send(
                        ProducerRecord(
                            topic: topic, value: Array("\(number)".utf8), timestamp: 1_700_000_000_000 + Int64(number)))
                }
                await producer.close()
                let numbers = (0..<10).map(String.init)
                #expect(try await read(10, topic, .beginning, cluster) == numbers)
                #expect(try await read(2, topic, .offsets([0: 8, 7: 1]), cluster) == ["8", "9"])
                // The mock cluster ignores timestamps, so everything is read.
                let isMock = kind != .apache
                let newest = isMock ? numbers : ["6", "7", "8", "9"]
                #expect(try await read(newest.count, topic, .timestamp(1_700_000_000_006), cluster) == newest)
                let reader = try await TopicReader.open(
                    topic, from: .timestamp(4_000_000_000_000), properties: cluster.properties,
                    within: .patience)
                #expect(reader.startOffsets == [0: isMock ? 0 : 10])
                await reader.close()
            }
        }

        /// Covers partitions that were added later.
        @Test(arguments: ClusterKind.available)
        func readsUnlistedPartitionsFromTheBeginning(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                try await cluster.fill(topic, partition: 0, 0..<4)
                try await cluster.fill(topic, partition: 0, 4..<5)
                try await cluster.fill(topic, partition: 1, 10..<12)
                let values = try await read(3, topic, .offsets([0: 4]), cluster)
                #expect(Set(values) == ["4", "10", "11"])
            }
        }

        @Test(arguments: ClusterKind.available)
        func reportsPartitionEnds(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                try await cluster.fill(topic, partition: 1, 0..<5)
                let reader = try await TopicReader.open(
                    topic, from: .beginning, properties: cluster.properties, tellsEnds: true,
                    within: .patience)
                #expect(reader.oldestOffsets == [0: 0, 1: 0])
                #expect(reader.endOffsets == [0: 0, 1: 5])
                var (seen, ends): (Int, [Int32: Int64]) = (0, [:])
                while ends.count < 2 {
                    let batch = try #require(try await reader.nextBatch())
                    seen += batch.records.count
                    for (partition, end) in batch.ends {
                        // All records of the partition have arrived before.
                        if partition == 1 { #expect(seen == 5) }
                        ends[partition] = end
                    }
                }
                #expect(ends == [0: 0, 1: 5])
                // Each end that is reached is reported.
                try await cluster.fill(topic, partition: 0, 0..<1)
                while ends[0] != 1 {
                    let batch = try #require(try await reader.nextBatch())
                    ends.merge(batch.ends) { $1 }
                }
                await reader.close()
                let last = try await reader.nextBatch()
                #expect(last?.records == nil)
            }
        }

        /// A marker occupies an offset.
        @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
        func reportsPartitionEndBehindATransactionMarker() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try TransactionalProducer(
                    properties: cluster.properties.merging(["transactional.id": topic]) { $1 })
                try await until("transactions are possible") {
                    try await producer.initialize(within: .seconds(10))
                    return true
                }
                try await producer.begin()
                let sends = await producer.send([
                    ProducerRecord(topic: topic, value: [1]), ProducerRecord(topic: topic, value: [2]),
                ])
                // Waits for the records, because an abort that overtakes them is rejected.
                #expect(await sends.failures().isEmpty)
                try await producer.abort(within: .seconds(30))
                await producer.close()
                let reader = try await TopicReader.open(
                    topic, from: .beginning, properties: cluster.properties, tellsEnds: true,
                    within: .patience)
                // The abort may have returned before the partition has its marker.
                var ends: [Int32: Int64] = [:]
                while ends[0] ?? 0 < 3 {
                    let batch = try #require(try await reader.nextBatch())
                    #expect(batch.records == [])
                    ends.merge(batch.ends) { $1 }
                }
                #expect(ends == [0: 3])
                await reader.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func endsOnCancellationOrClose(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let reader = try await TopicReader.open(
                    topic, from: .beginning, properties: cluster.properties, within: .patience)
                let cancelled = Task { try await take(1, from: reader) }
                try await Task.sleep(for: .milliseconds(50))
                cancelled.cancel()
                #expect(try await cancelled.value == [])
                // The reader can still be read.
                try await cluster.fill(topic, 0..<1)
                #expect(try await take(1, from: reader) == ["0"])
                let closed = Task { try await take(1, from: reader) }
                try await Task.sleep(for: .milliseconds(50))
                await reader.close()
                #expect(try await closed.value == [])
                #expect(try await take(1, from: reader) == [])
            }
        }

        @Test(arguments: ClusterKind.available)
        func readsManyRecordsInOrder(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                try await cluster.fill(topic, 0..<5_000)
                let reader = try await TopicReader.open(
                    topic, from: .beginning, properties: cluster.properties, within: .patience)
                var next: Int64 = 0
                for try await record in reader {
                    #expect(record.offset == next)
                    next += 1
                    if next == reader.endOffsets[0] { break }
                }
                #expect(next == 5_000)
                await reader.close()
            }
        }

        @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
        func reportsAMissingTopic() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let error = await #expect(throws: KafkaError.self) {
                    try await TopicReader.open(
                        cluster.unique("missing"), from: .end, properties: cluster.properties,
                        within: .patience)
                }
                #expect(error?.code == .unknownTopicOrPartition)
            }
        }

        @Test func rejectsNegativeOffsets() async throws {
            try await ClusterFixture.with(.mock) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let error = await #expect(throws: KafkaError.self) {
                    try await TopicReader.open(
                        topic, from: .offsets([0: -5]), properties: cluster.properties, within: .patience)
                }
                #expect(error?.code == .invalidArgument)
            }
        }

        @Test func reportsUnreachableBrokers() async {
            let error = await #expect(throws: KafkaError.self) {
                try await TopicReader.open(
                    "topic", from: .end, properties: ["bootstrap.servers": "127.0.0.1:1"], within: .milliseconds(300))
            }
            #expect(error?.isRetriable == true)
        }
    }
}

/// Returns the next values, fewer if the reader ends before.
private func take(_ count: Int, from reader: TopicReader) async throws -> [String] {
    var values: [String] = []
    for try await record in reader {
        values.append(String(decoding: record.value ?? [], as: UTF8.self))
        if values.count == count { break }
    }
    return values
}

private func read(
    _ count: Int, _ topic: String, _ start: TopicReader.Start, _ cluster: ClusterFixture
) async throws -> [String] {
    let reader = try await TopicReader.open(
        topic, from: start, properties: cluster.properties, within: .patience)
    let values = try await take(count, from: reader)
    await reader.close()
    return values
}
