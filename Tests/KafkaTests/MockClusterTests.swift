import Kafka
import Processes
import Testing

extension KafkaTests {
    @Suite struct MockClusterTests {
        /// A child that is being started holds copies of this process's sockets until it is a program of its own.
        @Test func goesDownAndComesUpWhileChildrenAreStarted() async throws {
            let mock = try MockCluster()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        while !Task.isCancelled { await (try ChildProcess.start("true")).exit() }
                    }
                }
                for _ in 0..<300 {
                    mock.setDown(true)
                    mock.setDown(false)
                    await Task.yield()
                }
                group.cancelAll()
                try await group.waitForAll()
            }
            let producer = try Producer(properties: ["bootstrap.servers": mock.bootstrapServers, "linger.ms": "0"])
            #expect(try await producer.send(ProducerRecord(topic: "topic", value: [1])).offset == 0)
            await producer.close()
            await mock.stop()
        }
    }
}
