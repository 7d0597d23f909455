import Concurrency
import Redis
import TestSupport
import Testing

/// Subscriptions in a cluster.
@Suite(.limitedParallelism) struct ClusterSubscriberTests {
    @Test func receivesFromAllNodesAndSurvivesNodeFailure() async throws {
        try await withCluster(settings: quickReconnects) { cluster, client in
            let subscriber = RedisSubscriber(try RedisEndpoint(cluster.url), settings: quickReconnects)
            let received = Lock<[String]>([])
            let stream = try await subscriber.subscribe("news")
            let reader = Task {
                for await message in stream {
                    received.withLock { $0.append(String(decoding: message.payload, as: UTF8.self)) }
                }
            }
            for (number, node) in cluster.nodes.enumerated() {
                _ = try await node.run("PUBLISH", "news", "from \(number)")
            }
            try await until("all messages have arrived") {
                received.withLock { Set($0) } == ["from 0", "from 1", "from 2"]
            }
            var home: Int?
            for (number, node) in cluster.nodes.enumerated()
            where try await node.run("PUBSUB", "CHANNELS", "news").contains("news") {
                #expect(home == nil)
                home = number
            }
            await cluster.kill(try #require(home))
            try await until("messages arrive again") {
                _ = try await client.send("PUBLISH", "news", "back")
                return received.withLock { $0.contains("back") }
            }
            reader.cancel()
            await subscriber.close()
        }
    }
}
