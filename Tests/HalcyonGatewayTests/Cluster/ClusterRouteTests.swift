import Foundation
import HalcyonCluster
import HalcyonModel
import Kafka
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/cluster`, in a whole cluster.
@Suite(.limitedParallelism) struct ClusterRouteTests {
    private static func shortenInterval(_ options: inout GatewayOptions) {
        options.overview.interval = .milliseconds(100)
    }

    private func lag(_ overview: [String: Any]) -> [String: Int] {
        let lanes = overview["lanes"] as? [[String: Any]] ?? []
        return Dictionary(uniqueKeysWithValues: lanes.map { ($0["lane"] as? String ?? "", $0["lag"] as? Int ?? -1) })
    }

    @Test func reportsLagWorkersAndDeadLetters() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("one", "two")
            try await fixture.withGateway(Self.shortenInterval) { (client: GatewayClient) async throws in
                for index in 0..<3 { try await fixture.submit("low-\(index)", .low) }
                try await fixture.submit("normal", .normal)
                // No worker is running.
                try await until("the overview reports the waiting jobs") {
                    let overview = try await client.send(.get, "/v1/cluster").json
                    return lag(overview) == ["high": 0, "normal": 1, "low": 3] && overview["dead"] as? Int == 2
                }
                #expect((try await client.send(.get, "/v1/cluster").json["workers"] as? [Any])?.isEmpty == true)
                try await fixture.withWorker {
                    try await until("the overview reports a worker and no lag") {
                        let overview = try await client.send(.get, "/v1/cluster").json
                        let workers = overview["workers"] as? [[String: Any]] ?? []
                        return workers.count == 1 && workers[0]["pid"] as? Int == Int(getpid())
                            && lag(overview) == ["high": 0, "normal": 0, "low": 0]
                    }
                }
                try await until("the worker has left") {
                    (try await client.send(.get, "/v1/cluster").json["workers"] as? [Any])?.isEmpty == true
                }
                let answer = try await client.send(.post, "/v1/dead/replay", #"{"letters":["0-0"]}"#)
                #expect(answer.status == 200)
                try await until("one dead letter is left") {
                    try await client.send(.get, "/v1/cluster").json["dead"] as? Int == 1
                }
            }
        }
    }

    @Test func omitsUnknownMembers() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway {
                Self.shortenInterval(&$0)
                $0.overview.timeout = .milliseconds(200)
            } _: { (client: GatewayClient) async throws in
                try await until("the lanes are known") {
                    try await client.send(.get, "/v1/cluster").json["lanes"] != nil
                }
                await fixture.broker.setDown(true)
                try await until("the lanes are unknown") {
                    let overview = try await client.send(.get, "/v1/cluster")
                    return overview.status == 200 && overview.json["lanes"] == nil && overview.json["workers"] != nil
                }
                await fixture.broker.setDown(false)
                try await until("the lanes are known again") {
                    try await client.send(.get, "/v1/cluster").json["lanes"] != nil
                }
            }
        }
    }

    @Test func concurrentRequestsShareOneCollection() async throws {
        try await GatewayFixture.with { fixture in
            var options = GatewayOptions(topics: fixture.topics, kafka: fixture.kafka, redis: fixture.endpoint)
            options.overview.interval = .seconds(3600)
            let redis = RedisClient(fixture.endpoint)
            let service = DeadLetterService(
                DeadLetterReader(fixture.topics, properties: options.kafka.reader, reader: options.reader),
                options: options.dead, log: .silent)
            let overview = ClusterOverview(options, redis: redis, deadLetters: service, log: .silent)
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

    /// Reads until the overview contains a text. Checks that each overview differs from the last one.
    private static func waitForEvent(containing text: String, in events: EventClient) async throws {
        var last = ""
        repeat {
            let message = try #require(try await events.next())
            #expect(message.name == "cluster" && message.data != last)
            last = message.data
        } while !last.contains(text)
    }

    @Test func streamSendsOnlyChanges() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway(Self.shortenInterval) { (client: GatewayClient) async throws in
                let events = try await EventClient(client.port, path: "/v1/cluster/events")
                try await Self.waitForEvent(containing: #""dead":0"#, in: events)
                try await fixture.deadLetters.publish("one")
                try await Self.waitForEvent(containing: #""dead":1"#, in: events)
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
