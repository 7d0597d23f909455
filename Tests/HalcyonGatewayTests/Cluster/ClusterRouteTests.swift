import Foundation
import HalcyonCluster
import HalcyonModel
import Kafka
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/cluster`, through a whole cluster.
@Suite(.limitedParallelism) struct ClusterRouteTests {
    private static func quick(_ options: inout GatewayOptions) { options.overview.interval = .milliseconds(100) }

    private func lag(_ overview: [String: Any]) -> [String: Int] {
        let lanes = overview["lanes"] as? [[String: Any]] ?? []
        return Dictionary(uniqueKeysWithValues: lanes.map { ($0["lane"] as? String ?? "", $0["lag"] as? Int ?? -1) })
    }

    @Test func itTellsOfLanesWorkersAndDeadLetters() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.dead.put("one", "two")
            try await fixture.withGateway(Self.quick) { (ask: Asking) async throws in
                for index in 0..<3 { try await fixture.submit("low-\(index)", .low) }
                try await fixture.submit("normal", .normal)
                // Nobody does them: there is no worker.
                try await until("they are seen to wait") {
                    let overview = try await ask(.get, "/v1/cluster").json
                    return lag(overview) == ["high": 0, "normal": 1, "low": 3] && overview["dead"] as? Int == 2
                }
                #expect((try await ask(.get, "/v1/cluster").json["workers"] as? [Any])?.isEmpty == true)
                try await fixture.withWorker {
                    try await until("a worker is there, and nothing waits") {
                        let overview = try await ask(.get, "/v1/cluster").json
                        let workers = overview["workers"] as? [[String: Any]] ?? []
                        return workers.count == 1 && workers[0]["pid"] as? Int == Int(getpid())
                            && lag(overview) == ["high": 0, "normal": 0, "low": 0]
                    }
                }
                try await until("it has gone") {
                    (try await ask(.get, "/v1/cluster").json["workers"] as? [Any])?.isEmpty == true
                }
                let answer = try await ask(.post, "/v1/dead/replay", #"{"letters":["0-0"]}"#)
                #expect(answer.status == 200)
                try await until("one is left") { try await ask(.get, "/v1/cluster").json["dead"] as? Int == 1 }
            }
        }
    }

    @Test func whatIsNotKnownIsLeftOut() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway {
                Self.quick(&$0)
                $0.overview.timeout = .milliseconds(200)
            } _: { (ask: Asking) async throws in
                #expect(try await ask(.get, "/v1/cluster").json["lanes"] != nil)
                fixture.broker.setDown(true)
                try await until("nothing is known of Kafka") {
                    let overview = try await ask(.get, "/v1/cluster")
                    return overview.status == 200 && overview.json["lanes"] == nil && overview.json["workers"] != nil
                }
                fixture.broker.setDown(false)
                try await until("it is known again") { try await ask(.get, "/v1/cluster").json["lanes"] != nil }
            }
        }
    }

    @Test func howeverManyAskItIsLookedAtOnce() async throws {
        try await GatewayFixture.with { fixture in
            let options = GatewayOptions(topics: fixture.topics, kafka: fixture.kafka, redis: fixture.endpoint)
            let redis = RedisClient(fixture.endpoint)
            let desk = DeadLetterService(
                DeadLetterReader(fixture.topics, properties: options.kafka.reader, reader: options.reader),
                options: options.dead, log: .silent)
            let overview = ClusterOverview(options, redis: redis, deadLetters: desk, log: .silent)
            let answers = await withTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<200 { group.addTask { await overview.json() } }
                return await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(answers.count == 1)
            #expect(await overview.looks == 1)
            await overview.close()
            await redis.close()
        }
    }

    /// Reads until the cluster is told to be so. Nothing is told twice.
    private static func hear(_ text: String, _ client: EventClient) async throws {
        var last = ""
        repeat {
            let message = try #require(try await client.next())
            #expect(message.name == "cluster" && message.data != last)
            last = message.data
        } while !last.contains(text)
    }

    @Test func whoFollowsIsToldOfChangesAlone() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway(Self.quick) { (ask: Asking) async throws in
                let client = try await EventClient(ask.port, path: "/v1/cluster/events")
                try await Self.hear(#""dead":0"#, client)
                try await fixture.dead.put("one")
                try await Self.hear(#""dead":1"#, client)
            }
        }
    }
}

extension GatewayFixture {
    fileprivate func submit(_ id: String, _ lane: Lane) async throws {
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers])
        let job = #"{"id":"\#(id)","source":"initials:A","width":8}"#
        try await producer.send(ProducerRecord(topic: topics.jobs(lane), value: Array(job.utf8)))
        await producer.close()
    }
}
