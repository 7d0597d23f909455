import Curl
import Formats
import Foundation
import HalcyonCluster
import HalcyonModel
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// The history of events as a value, and `/v1/history` in a whole cluster.
@Suite(.limitedParallelism) struct EventHistoryTests {
    /// 2026-11-21T10:30:00Z in milliseconds.
    private static let noon: Int64 = 1_795_257_000_000

    private static func event(
        _ type: String, job: String, at time: Int64, source: String = "https://img.example.org/a.jpg",
        _ data: String = ""
    ) -> [UInt8] {
        let moment = Timestamp(milliseconds: time).rfc3339
        return Array(
            #"""
            {"specversion":"1.0","id":"halcyon.jobs-0-7-ended","type":"halcyon.image.\#(type)","subject":"\#(source)",\#
            "time":"\#(moment)","data":{"job":{"id":"\#(job)","batch":{"id":"B"}}\#(data)}}
            """#.utf8)
    }

    private static func failed(_ code: String) -> String { #","code":"\#(code)","message":"It Broke","attempts":3"# }

    @Test func countsThePeriodInBars() {
        var history = EventHistory(HistoryOptions(), since: Self.noon - 3_600_000)
        let now = Self.noon + 4_000
        for index in 0..<1000 {
            let data = #","origin":"\#(index % 4 == 0 ? "memory" : "network")","timings":{"total":\#(index + 1)}"#
            history.add(Self.event("ready", job: "\(index)", at: now - 1_000, data), at: now)
        }
        history.add(Self.event("failed", job: "late", at: now - 290_000, Self.failed("timeout")), at: now)
        // Older than the period, and from the future, which counts as now.
        history.add(Self.event("cancelled", job: "old", at: now - 301_000), at: now)
        history.add(Self.event("superseded", job: "next", at: now + 60_000), at: now)
        // No job ends with these.
        history.add(Self.event("started", job: "s", at: now), at: now)
        history.add(Self.event("progress", job: "p", at: now), at: now)
        history.add(Array("no event".utf8), at: now)
        let summary = history.summary(of: 300, at: now)
        #expect(summary.ended == [.ready: 1000, .failed: 1, .superseded: 1])
        #expect(summary.bars.count == 60 && summary.step == 5)
        #expect(summary.bars[59] == [.ready: 1000, .superseded: 1] && summary.bars[1] == [.failed: 1])
        #expect(summary.origins == [.memory: 250, .network: 750])
        for (part, exact) in [(0.5, 500.0), (0.95, 950), (0.99, 990)] {
            let found = summary.latencies.quantile(part) ?? 0
            #expect(abs(found - exact) <= 0.026 * exact)
        }
        #expect(history.summary(of: 3600, at: now).ended[.cancelled] == 1)
        #expect(history.summary(of: 3600, at: now).bars.count == 60)
        // Later, the same slots count other events.
        let later = now + 3_600_000
        #expect(history.summary(of: 3600, at: later).ended == [:])
        history.add(Self.event("ready", job: "later", at: later), at: later)
        #expect(history.summary(of: 3600, at: later).ended == [.ready: 1])
        #expect(EventHistory(HistoryOptions(), since: 0).summary(of: 300, at: now).latencies.quantile(0.5) == nil)
    }

    @Test func longWindowsHaveCoarseSlots() {
        var options = HistoryOptions()
        options.time = .seconds(86_400)
        var history = EventHistory(options, since: 0)
        let now = Self.noon
        for hours in 0..<24 {
            history.add(Self.event("ready", job: "\(hours)", at: now - Int64(hours) * 3_600_000), at: now)
        }
        #expect(history.summary(of: 300, at: now).ended == [.ready: 1])
        #expect(history.summary(of: 300, at: now).step == 5)
        let day = history.summary(of: 86_400, at: now)
        #expect(day.ended == [.ready: 24] && day.bars.count == 60 && day.step == 1440)
        #expect(history.summary(of: 21_600, at: now).ended == [.ready: 6])
        #expect(history.summary(of: 1_000_000, at: now).seconds == 86_400)
    }

    @Test func groupsFailuresByCodeAndHost() throws {
        var history = EventHistory(HistoryOptions(), since: Self.noon)
        let sources = [
            ("timeout", "https://user:****@IMG.example.org:8080/a.jpg?x=1"),
            ("timeout", "https://img.example.org:8080/b"),
            ("not_found", "initials:AB"), ("invalid_job", ""),
        ]
        for (index, (code, source)) in sources.enumerated() {
            let time = Self.noon + Int64(index) * 1000
            history.add(
                Self.event("failed", job: "\(index)", at: time, source: source, Self.failed(code)), at: Self.noon + 9000
            )
        }
        let summary = history.summary(of: 300, at: Self.noon + 9000)
        let json = try #require(
            JSONSerialization.jsonObject(with: Data(summary.json)) as? [String: Any])
        let groups = try #require(json["failures"] as? [[String: Any]])
        #expect(groups.map { $0["host"] as? String } == ["img.example.org:8080", "", "initials:"])
        #expect(groups[0]["count"] as? Int == 2 && groups[0]["job"] as? String == "1")
        #expect((groups[0]["trend"] as? [Int])?.suffix(1) == [2])
        #expect(json["since"] as? String == Timestamp(milliseconds: Self.noon).rfc3339)
    }

    @Test func searchesTheNewestStateOfEachJob() {
        var history = EventHistory(HistoryOptions(), since: 0)
        let now = Self.noon
        history.add(Self.event("started", job: "one", at: now - 9000), at: now)
        history.add(Self.event("failed", job: "one", at: now - 8000, Self.failed("timeout")), at: now)
        history.add(Self.event("ready", job: "two", at: now - 7000, source: "initials:XY"), at: now)
        history.add(Self.event("started", job: "three", at: now), at: now)
        func jobs(_ change: (inout HistoryQuery) -> Void) -> [String] {
            var query = HistoryQuery()
            change(&query)
            return history.search(query, at: now).entries.map(\.job)
        }
        #expect(jobs { _ in } == ["three", "two", "one"])
        #expect(jobs { $0.states = ["started"] } == ["three"])
        #expect(jobs { $0.text = "INITIALS:x" } == ["two"])
        #expect(jobs { $0.text = "it broke" } == ["one"])
        #expect(jobs { $0.code = "timeout" } == ["one"] && jobs { $0.code = "time" }.isEmpty)
        #expect(jobs { $0.host = "img.example.org" } == ["three", "one"])
        #expect(jobs { $0.seconds = 7 } == ["three", "two"])
        #expect(jobs { $0.text = "B" } == ["three", "two", "one"])
        var query = HistoryQuery()
        query.limit = 2
        #expect(history.search(query, at: now).isMore)
        #expect(history.events(of: "one").map(\.kind) == [.started, .failed])
        #expect(history.events(of: "one").last?.record == "halcyon.jobs-0-7")
    }

    @Test func memoryIsBounded() {
        var options = HistoryOptions()
        options.bytes = 100_000
        var history = EventHistory(options, since: 0)
        for index in 0..<20_000 {
            let time = Self.noon + Int64(index)
            let host = "https://h\(index).example.org/"
            history.add(
                Self.event("failed", job: "\(index)", at: time, source: host, Self.failed("timeout")), at: time)
        }
        #expect((20...200).contains(history.count))
        #expect(history.search(HistoryQuery(), at: Self.noon + 20_000).entries.first?.job == "19999")
        let summary = history.summary(of: 300, at: Self.noon + 20_000)
        #expect(summary.ended[.failed] == 20_000)
        // Beyond a limit, groups have no host.
        #expect(summary.failures.count <= 5 * (EventHistory.mostGroups + 1))
        #expect(summary.failures.values.reduce(0) { $0 + $1.count } == 20_000)
        // The JSON of an event with an image is not kept.
        let image = String(repeating: "A", count: EventHistory.mostEventBytes)
        let data = #","variants":[{"data":"\#(image)"}]"#
        history.add(Self.event("ready", job: "inline", at: Self.noon, data), at: Self.noon)
        #expect(history.events(of: "inline").map(\.json) == [nil])
        history.removeAll()
        #expect(history.count == 0 && history.summary(of: 300, at: Self.noon).ended.isEmpty)
    }

    @Test func gatewayServesFiguresJobsAndMessages() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withWorker {
                try await fixture.withGateway { (client: GatewayClient) async throws in
                    let job = #"{"id":"a/ä b","source":"initials:HI","width":8,"tenant":"shop"}"#
                    #expect(try await client.send(.post, "/v1/jobs", job).status == 202)
                    let direct = #"{"id":"unseen","source":"initials:UN","width":8}"#
                    let producer = try Producer(properties: ["bootstrap.servers": fixture.broker.bootstrapServers])
                    try await producer.send(
                        ProducerRecord(topic: fixture.topics.jobs(.normal), value: Array(direct.utf8)))
                    await producer.close()
                    try await until("the gateway has counted the jobs") {
                        let ended = try await client.send(.get, "/v1/history").json["ended"] as? [String: Int]
                        return (ended?["ready"] ?? 0) + (ended?["failed"] ?? 0) == 2
                    }
                    let found = try await client.send(.get, "/v1/history/jobs?q=initials:hi&state=ready&limit=1").json
                    let jobs = try #require(found["jobs"] as? [[String: Any]])
                    #expect(jobs.map { $0["job"] as? String } == ["a/ä b"] && found["more"] as? Bool == false)
                    // A job that was not submitted over HTTP is found as well.
                    #expect(try await client.send(.get, "/v1/history/jobs/unseen").status == 200)
                    let path = "/v1/history/jobs/a%2F%C3%A4%20b"
                    let one = try await client.send(.get, path).json
                    let events = try #require(one["events"] as? [[String: Any]])
                    #expect(events.last?["type"] as? String == "halcyon.image.ready")
                    let message = try await client.sendUntilAvailable(.get, path + "/message").json
                    let original = try #require(message["job"] as? [String: Any])
                    #expect(original["tenant"] as? String == "shop" && original["id"] as? String == "a/ä b")
                    #expect(message["record"] as? String == one["record"] as? String)
                    #expect(try await client.send(.get, "/v1/history/jobs/none").status == 404)
                    #expect(try await client.send(.get, "/v1/history/jobs/none/message").status == 404)
                    for query in [
                        "jobs?state=no", "jobs?limit=0", "jobs?limit=501", "jobs?what=x", "jobs?seconds=0",
                        "?seconds=4",
                        "?seconds=x",
                    ] {
                        let path = query.hasPrefix("?") ? "/v1/history\(query)" : "/v1/history/\(query)"
                        #expect(try await client.send(.get, path).status == 400, "\(query)")
                    }
                }
                // Another gateway reads the recent events when it starts, and its window is a setting.
                try await fixture.withGateway {
                    $0.events.history.time = .seconds(300)
                } _: { (client: GatewayClient) async throws in
                    let history = try await client.send(.get, "/v1/history?seconds=86400").json
                    #expect(history["seconds"] as? Int == 300)
                    let ended = try #require(history["ended"] as? [String: Int])
                    #expect((ended["ready"] ?? 0) + (ended["failed"] ?? 0) == 2)
                }
            }
        }
    }

    @Test func scopesDecideWhatAKeySees() async throws {
        try await GatewayFixture.with { fixture in
            let keys = [
                ("reader", [Scope.read]), ("writer", [.submit]), ("both", [.read, .submit]), ("admin", [.admin]),
            ]
            try await fixture.withGateway {
                $0.access.keys = keys.map { APIKey(name: $0.0, secret: "secret-\($0.0)", scopes: Set($0.1)) }
            } _: { (client: GatewayClient) async throws in
                func ask(_ path: String, _ name: String) async throws -> (status: Int, json: [String: Any]) {
                    let answer = try await client.send(.get, path, headers: ["X-API-Key": "secret-\(name)"])
                    return (answer.status, answer.json)
                }
                for (name, scopes) in [
                    ("reader", ["read"]), ("both", ["submit", "read"]), ("admin", ["submit", "read", "admin"]),
                ] {
                    let access = try await ask("/v1/access", name).json
                    #expect(access["key"] as? String == name && access["scopes"] as? [String] == scopes)
                    #expect(access["metrics"] as? Bool == true)
                    #expect(try await ask("/v1/history", name).status == 200)
                    #expect(try await ask("/v1/history/jobs", name).status == 200)
                    // The message may contain credentials.
                    let status = try await ask("/v1/history/jobs/x/message", name).status
                    #expect(status == (name == "admin" ? 404 : 403))
                }
                for path in ["/v1/access", "/v1/history", "/v1/history/jobs", "/v1/history/jobs/x"] {
                    #expect(try await ask(path, "writer").status == 403)
                    #expect(try await client.send(.get, path).status == 401)
                }
            }
            try await fixture.withGateway {
                $0.documentation = "https://wiki.example.org/halcyon"
                $0.servesMetrics = false
            } _: { (client: GatewayClient) async throws in
                let access = try await client.send(.get, "/v1/access").json
                #expect(access["documentation"] as? String == "https://wiki.example.org/halcyon")
                #expect(access["metrics"] as? Bool == false)
                #expect(try await client.send(.get, "/metrics").status == 404)
                #expect(access["key"] == nil && access["scopes"] as? [String] == ["submit", "read", "admin"])
            }
        }
    }
}
