import Kafka
import TestSupport
import Testing

extension KafkaTests {
    @Suite struct AdminTests {
        @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
        func createsTopicsAndReportsExistingOnes() async throws {
            try await ClusterFixture.with(.apache) { cluster in
                let admin = try Admin(properties: cluster.properties)
                let name = cluster.unique("made")
                let topic = NewTopic(name, partitions: 3, replication: 1, configuration: ["retention.ms": "60000"])
                for result in [TopicCreation.created, .existed] {
                    #expect(try await admin.create([topic], within: .patience) == [name: result])
                }
                let wrong = NewTopic(cluster.unique("wrong"), partitions: 1, configuration: ["no.such.setting": "1"])
                let results = try await admin.create([wrong], within: .patience)
                guard case .failed(let error) = results[wrong.name] else {
                    Issue.record("a topic with an invalid setting was created")
                    return
                }
                #expect(error.message.contains("no.such.setting"))
                await admin.close()
            }
        }

        @Test(arguments: ClusterKind.available)
        func reportsBrokersTopicsAndOffsets(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                try await cluster.fill(topic, partition: 1, 0..<9)
                let admin = try Admin(properties: cluster.properties)

                let metadata = try await admin.metadata(within: .patience)
                #expect(metadata.brokers.map { "\($0.host):\($0.port)" } == [cluster.bootstrapServers])
                #expect(metadata.topics[topic]?.map(\.id) == [0, 1])
                #expect(metadata.topics[topic]?.map(\.leader) == [1, 1])

                let partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
                let watermarks = try await admin.watermarks(of: partitions, within: .patience)
                #expect(watermarks == [partitions[0]: 0..<0, partitions[1]: 0..<9])

                let handler = RecordingHandler()
                let consumer = try await Consumer.start(
                    topics: [topic], properties: cluster.properties(group: topic), handler: handler)
                try await until("partitions are assigned") { handler.owned.count == 2 }
                try await consumer.commit([partitions[1]: GroupOffset(4)])
                await consumer.close()
                let committed = try await admin.committed(by: topic, in: partitions, within: .patience)
                #expect(committed == [partitions[1]: GroupOffset(4)])
                await admin.close()
            }
        }

        /// The admin request of librdkafka itself crashes on a cluster whose coordinator has not had a request yet.
        @Test(arguments: ClusterKind.available)
        func unknownGroupHasNoCommittedOffsets(_ kind: ClusterKind) async throws {
            try await ClusterFixture.with(kind) { cluster in
                let topic = try await cluster.newTopic(partitions: 2)
                let admin = try Admin(properties: cluster.properties)
                for number in 0..<5 {
                    let partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
                    let committed = try await admin.committed(
                        by: "\(topic)-\(number)", in: partitions, within: .patience)
                    #expect(committed.isEmpty)
                }
                await admin.close()
            }
        }

        @Test func closingEndsCallsInFlight() async throws {
            let mock = try MockCluster()
            await mock.setRoundTripTime(.milliseconds(200))
            let admin = try Admin(properties: ["bootstrap.servers": mock.bootstrapServers])
            async let metadata = admin.metadata(within: .patience)
            try await Task.sleep(for: .milliseconds(100))
            await admin.close()
            // The call succeeds or fails, but never crashes or hangs.
            do {
                #expect(try await metadata.brokers.count == 1)
            } catch {
                #expect((error as? KafkaError)?.code == .closed)
            }
            let late = await #expect(throws: KafkaError.self) { try await admin.metadata() }
            #expect(late?.code == .closed)
            await mock.stop()
        }

        @Test func callsTimeOut() async throws {
            let admin = try Admin(properties: ["bootstrap.servers": "127.0.0.1:1"])
            await #expect(throws: KafkaError.self) { try await admin.metadata(within: .milliseconds(200)) }
            await #expect(throws: KafkaError.self) {
                try await admin.create([NewTopic("topic", partitions: 1)], within: .milliseconds(200))
            }
            await #expect(throws: KafkaError.self) {
                try await admin.committed(by: "group", in: [TopicPartition("topic", 0)], within: .milliseconds(200))
            }
            await admin.close()
        }
    }
}
