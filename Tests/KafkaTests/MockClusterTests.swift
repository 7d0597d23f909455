import Kafka
import Subprocess
import Testing

extension KafkaTests {
    @Suite struct MockClusterTests {
        /// A child process holds copies of the sockets of this process between fork and exec.
        @Test func restartsWhileChildProcessesStart() async throws {
            try await ClusterFixture.with(.mock) { cluster in
                let mock = try #require(cluster.mock)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            while !Task.isCancelled { await (try ChildProcess.start("true")).exit() }
                        }
                    }
                    for _ in 0..<300 {
                        await mock.setDown(true)
                        await mock.setDown(false)
                        await Task.yield()
                    }
                    group.cancelAll()
                    try await group.waitForAll()
                }
                let producer = try Producer(properties: ["bootstrap.servers": mock.bootstrapServers, "linger.ms": "0"])
                let delivery = try await producer.send(ProducerRecord(topic: "topic", value: [1]))
                #expect(delivery.offset == 0)
                await producer.close()
            }
        }
    }
}
