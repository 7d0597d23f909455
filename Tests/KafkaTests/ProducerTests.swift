import Concurrency
import Subprocess
import TestSupport
import Testing

@testable import Kafka

extension KafkaTests {
    @Suite struct ProducerTests {
        @Test(arguments: ClusterKind.available)
        func preservesKeysHeadersAndMissingValues(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                let sent = [
                    ProducerRecord(
                        topic: topic, partition: 1, key: [1, 2], value: Array("all".utf8),
                        headers: [RecordHeader("a", "1"), RecordHeader("a", [0, 255]), RecordHeader("none", nil)],
                        timestamp: 1_700_000_000_123),
                    ProducerRecord(topic: topic, partition: 1, value: nil),
                    ProducerRecord(topic: topic, partition: 1, key: [], value: []),
                ]
                let producer = try cluster.producer()
                for (offset, record) in sent.enumerated() {
                    #expect(try await producer.send(record) == Delivery(partition: 1, offset: Int64(offset)))
                }
                await producer.close()

                let reader = try await TopicReader.open(
                    topic, from: .beginning, properties: cluster.properties, within: .patience)
                var got: [ConsumedRecord] = []
                for try await record in reader {
                    got.append(record)
                    if got.count == sent.count { break }
                }
                await reader.close()
                #expect(got.map(\.topicPartition) == Array(repeating: TopicPartition(topic, 1), count: 3))
                #expect(got.map(\.offset) == [0, 1, 2])
                #expect(got.map(\.key) == sent.map(\.key))
                #expect(got.map(\.value) == sent.map(\.value))
                #expect(got.map(\.headers) == sent.map(\.headers))
                #expect(got[0].timestamp == 1_700_000_000_123)
                #expect(got[1].timestamp > 1_700_000_000_123)
            }
        }

        @Test(arguments: ClusterKind.available)
        func batchReportsAnErrorPerRecord(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try cluster.producer()
                let records = (0..<10).map { number in
                    ProducerRecord(
                        topic: topic, value: number == 3 ? [UInt8](repeating: 0, count: 3 << 20) : [UInt8(number)])
                }
                let errors = await producer.send(all: records)
                #expect(errors.map { $0?.code } == (0..<10).map { $0 == 3 ? .messageTooLarge : nil })
                #expect(await producer.send(all: []).isEmpty)
                await producer.close()
                #expect(await producer.send(all: [records[0]]).map { $0?.code } == [.closed])
            }
        }

        @Test func namesTheRefusedProperty() {
            for (name, value) in [("no.such.property", "1"), ("linger.ms", "soon")] {
                let error = #expect(throws: KafkaError.self) { try Producer(properties: [name: value]) }
                #expect(error?.code == .invalidArgument)
                #expect(error?.message.contains(name) == true)
            }
        }

        /// The queue has one slot. Every other waiting send has expired when the slot becomes free.
        @Test func expiredSendsLeaveTheirQueueSlotToOthers() async throws {
            let broker = try MockCluster()
            try await broker.createTopics(["t"], partitions: 1)
            let producer = try Producer(properties: [
                "bootstrap.servers": broker.bootstrapServers, "queue.buffering.max.messages": "1",
            ])
            await broker.setDown(true)
            let (sent, late) = await withTaskGroup(of: KafkaError.Code?.self) { group in
                let latest = ContinuousClock.now + .seconds(1)
                for number in 0..<40 {
                    group.addTask {
                        do throws(KafkaError) {
                            try await producer.send(
                                ProducerRecord(topic: "t", value: [1]), by: number % 2 == 1 ? latest : nil)
                            return nil
                        } catch {
                            return error.code
                        }
                    }
                }
                try? await Task.sleep(until: latest + .milliseconds(1))
                await broker.setDown(false)
                return await group.reduce(into: (0, 0)) { counts, code in
                    if code == nil { counts.0 += 1 } else if code == .queueFull { counts.1 += 1 }
                }
            }
            // The first send of all may have had a deadline.
            #expect(sent + late == 40 && (19...20).contains(late))
            let reader = try await TopicReader.open(
                "t", from: .beginning, properties: ["bootstrap.servers": broker.bootstrapServers],
                within: .patience)
            #expect(reader.endOffsets == [0: Int64(sent)])
            await reader.close()
            await producer.close()
            await broker.stop()
        }

        @Test(arguments: ClusterKind.available)
        func waitsWhileTheQueueIsFull(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try cluster.producer(["queue.buffering.max.messages": "7"])
                let offsets = try await withThrowingTaskGroup(of: Int64.self) { group in
                    for _ in 0..<500 {
                        group.addTask { try await producer.send(ProducerRecord(topic: topic, value: [1])).offset }
                    }
                    return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
                }
                await producer.close()
                #expect(offsets == Set(0..<500))
            }
        }

        @Test(arguments: [10, 100_000])
        func closingResumesEverySender(queueSize: Int) async throws {
            let mock = try MockCluster()
            try await mock.createTopics(["topic"], partitions: 1)
            await mock.setDown(true)
            let producer = try Producer(properties: [
                "bootstrap.servers": mock.bootstrapServers, "queue.buffering.max.messages": "\(queueSize)",
            ])
            let codes = await withTaskGroup(of: KafkaError.Code?.self) { group in
                for _ in 0..<300 {
                    group.addTask {
                        do throws(KafkaError) {
                            try await producer.send(ProducerRecord(topic: "topic", value: [1]))
                            return nil
                        } catch {
                            return error.code
                        }
                    }
                }
                group.addTask {
                    await producer.close(flushingFor: .milliseconds(50))
                    return .closed
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(codes.count == 301)
            #expect(Set(codes).isSubset(of: [.purgedFromQueue, .purgedInFlight, .closed]))
            let late = await #expect(throws: KafkaError.self) {
                try await producer.send(ProducerRecord(topic: "topic", value: [1]))
            }
            #expect(late?.code == .closed)
            await producer.close()
            await mock.stop()
        }

        @Test func flushingWaitsForDelivery() async throws {
            let mock = try MockCluster()
            try await mock.createTopics(["topic"], partitions: 1)
            await mock.setDown(true)
            let producer = try Producer(properties: ["bootstrap.servers": mock.bootstrapServers, "linger.ms": "1000"])
            async let delivery = producer.send(ProducerRecord(topic: "topic", value: [1]))
            // The record is in flight once flushing times out.
            try await until("flushing times out") {
                do throws(KafkaError) {
                    try await producer.flush(within: .milliseconds(10))
                    return false
                } catch {
                    return error.code == .timedOut
                }
            }
            await mock.setDown(false)
            try await producer.flush(within: .patience)
            #expect(try await delivery.offset == 0)
            await producer.close()
            await mock.stop()
        }

        @Test(arguments: ClusterKind.available)
        func reportsWhyARecordIsRejected(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 1)
                let producer = try cluster.producer()
                let large = await #expect(throws: KafkaError.self) {
                    try await producer.send(ProducerRecord(topic: topic, value: Array(repeating: 0, count: 2_000_000)))
                }
                #expect(large?.code == .messageTooLarge)
                #expect(large?.isRetriable == false)
                let misdirected = await #expect(throws: KafkaError.self) {
                    try await producer.send(ProducerRecord(topic: topic, partition: 9, value: [1]))
                }
                #expect(misdirected?.name == "_UNKNOWN_PARTITION")
                await producer.close()
            }
        }

        @Test func reportsBrokerLossAndRecoveryOnce() async throws {
            let mock = try MockCluster()
            try await mock.createTopics(["topic"], partitions: 1)
            let changes = Lock<[Connection]>([])
            let logged = Lock<[LogLevel]>([])
            let producer = try Producer(
                properties: ["bootstrap.servers": mock.bootstrapServers],
                events: ClientCallbacks(
                    log: { level, _, _ in logged.withLock { $0.append(level) } },
                    connection: { change in changes.withLock { $0.append(change) } }))
            try await producer.send(ProducerRecord(topic: "topic", value: [0]))
            await mock.setDown(true)
            try await until("the loss is reported") { changes.withLock { $0.count } == 1 }
            async let delayed = producer.send(ProducerRecord(topic: "topic", value: [1]))
            try await Task.sleep(for: .milliseconds(1500))
            await mock.setDown(false)
            #expect(try await delayed.offset == 1)
            try await until("the recovery is reported") { changes.withLock { $0.count } == 2 }
            #expect(changes.withLock { $0 } == [.lost, .restored])
            #expect(logged.withLock { $0.contains { $0 <= .warning } })
            await producer.close()
            await mock.stop()
        }

        @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
        func deliversWhenTheBrokerStarts() async throws {
            let apache = try await ApacheKafka(properties: ["auto.create.topics.enable=true"], isKilled: true)
            let changes = Lock<[Connection]>([])
            let producer = try Producer(
                properties: [
                    "bootstrap.servers": apache.bootstrapServers, "enable.idempotence": "true",
                    // The time that the creation of the topic may take before its records are rejected.
                    "topic.metadata.propagation.max.ms": "600000",
                ], events: ClientCallbacks(connection: { change in changes.withLock { $0.append(change) } }))
            async let delivery = producer.send(ProducerRecord(topic: "early", value: [1]))
            try await until("the absence is reported") { changes.withLock { $0 } == [.lost] }
            try await apache.start()
            #expect(try await delivery.offset == 0)
            try await until("the recovery is reported") { changes.withLock { $0 } == [.lost, .restored] }

            // The same after a crash of the broker.
            await apache.kill()
            async let second = producer.send(ProducerRecord(topic: "early", value: [2]))
            try await apache.start()
            #expect(try await second.offset == 1)
            await producer.close()
            await apache.remove()
        }

        // Runs in a process of its own, without the memory of other tests.
        @Test func keepsMemoryFlat() async {
            await #expect(processExitsWith: .success) {
                await recordingErrors {
                    // 400 MB pass through; the mock cluster keeps 5 MB of them.
                    let mock = try MockCluster()
                    try await mock.createTopics(["topic"], partitions: 1)
                    let producer = try Producer(properties: [
                        "bootstrap.servers": mock.bootstrapServers, "linger.ms": "0",
                    ])
                    let reader = try await TopicReader.open(
                        "topic", from: .end, properties: mock.consumerProperties, within: .patience)
                    var records = reader.makeAsyncIterator()
                    let value = [UInt8](repeating: 7, count: 100_000)
                    let before = residentBytes()
                    let record = ProducerRecord(topic: "topic", value: value, headers: [RecordHeader("name", "value")])
                    for _ in 0..<200 {
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for _ in 0..<20 { group.addTask { try await producer.send(record) } }
                            try await group.waitForAll()
                        }
                        for _ in 0..<20 { #expect(try await records.next()?.value?.count == value.count) }
                    }
                    #expect(residentBytes() - before < 300_000_000)
                    await reader.close()
                    await producer.close()
                    await mock.stop()
                }
            }
        }
    }
}
