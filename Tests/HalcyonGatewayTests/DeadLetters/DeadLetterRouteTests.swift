import Foundation
import HalcyonCluster
import HalcyonCoding
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/dead`: listing and reading dead letters.
@Suite(.limitedParallelism) struct DeadLetterRouteTests {
    @Test func listsDeadLettersByFilter() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("a-1", "a-2")
            try await fixture.deadLetters.publish("b-1", code: "timeout", source: "https://img.example.org/b.jpg")
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let answer = try await client.send(.get, "/v1/dead")
                #expect(answer.status == 200 && answer.headers["Cache-Control"] == "no-store")
                #expect(answer.json["open"] as? Int == 3 && answer.json["next"] == nil)
                let letters = try #require(answer.json["letters"] as? [[String: Any]])
                #expect(letters.map { $0["job"] as? String } == ["a-1", "a-2", "b-1"])
                #expect(letters[0]["letter"] as? String == "0-0" && letters[0]["lane"] as? String == "normal")
                #expect(letters[0]["attempts"] as? Int == 5 && letters[0]["replayed"] as? Bool == false)
                #expect(letters[0]["tenant"] as? String == "shop" && letters[0]["original"] == nil)
                for (query, jobs) in [
                    ("code=timeout", ["b-1"]), ("job=a-*", ["a-1", "a-2"]), ("job=a-1&job=b-1", ["a-1", "b-1"]),
                    ("job=a-*&code=timeout", []), ("source=https://img.example.org/*", ["b-1"]), ("lane=high", []),
                    ("tenant=shop&reason=attempts&since=1h", ["a-1", "a-2", "b-1"]), ("until=1h", []),
                ] {
                    #expect(try await client.pages(query) == [jobs], "\(query)")
                }
            }
        }
    }

    @Test func tenantFilterSelectsJobsOfPresets() async throws {
        let preset = try Preset("card", json: Array(#"{"job":{"width":8,"tenant":"shop-7"}}"#.utf8))
        try await GatewayFixture.with { fixture in
            var record = DeadLetterFixture.record("", fixture.topics)
            record.value = Array(#"{"id":"a","source":"initials:A","preset":"card"}"#.utf8)
            try await fixture.deadLetters.publish([record])
            try await fixture.deadLetters.publish("b")
            try await fixture.withGateway({ $0.presets = [preset] }) { (client: GatewayClient) async throws in
                #expect(try await client.pages("tenant=shop-7") == [["a"]])
            }
        }
    }

    @Test func pagesCoverAllDeadLettersOnce() async throws {
        try await GatewayFixture.with { fixture in
            let records = (0..<60).map { DeadLetterFixture.record("\($0)", partition: $0 % 2, fixture.topics) }
            try await fixture.deadLetters.publish(records)
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let pages = try await client.pages("limit=7")
                #expect(pages.dropLast().allSatisfy { $0.count == 7 } && pages.count == 9)
                #expect(Set(pages.joined()).count == 60 && pages.joined().count == 60)
                // A dead letter that arrives between two pages is on a later one.
                let first = try await client.send(.get, "/v1/dead?limit=50")
                try await fixture.deadLetters.publish("late")
                let next = try #require(first.json["next"] as? String)
                let rest =
                    try await client.send(.get, "/v1/dead?cursor=\(next)").json["letters"] as? [[String: Any]] ?? []
                #expect(rest.count == 11 && rest.contains { $0["job"] as? String == "late" })
            }
            // A page ends before its limit when it reaches the size limit.
            try await fixture.withGateway {
                $0.dead.pageBytes = 1024
            } _: { (client: GatewayClient) async throws in
                let pages = try await client.pages()
                #expect(pages.count > 10 && Set(pages.joined()).count == 61)
                let longest = try await client.send(.get, "/v1/dead").body.count
                #expect(longest < 2048)
            }
        }
    }

    @Test func showsOneDeadLetterInFull() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.deadLetters.publish("first", "second")
            try await fixture.deadLetters.publish([
                ProducerRecord(topic: fixture.topics.dead, partition: 0, value: Array("half a {job".utf8))
            ])
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let answer = try await client.send(.get, "/v1/dead/0-1")
                #expect(
                    answer.status == 200 && (answer.json["original"] as? [String: Any])?["id"] as? String == "second")
                let history = answer.json["history"] as? [[String: Any]]
                #expect(history?.first?["code"] as? String == "http_error" && answer.json["key"] as? String == "key")
                let headers = answer.json["headers"] as? [[String: Any]] ?? []
                #expect(headers.map { $0["name"] as? String } == ["traceparent"])
                let foreign = try await client.send(.get, "/v1/dead/0-2")
                #expect(foreign.json["originalBase64"] as? String == "aGFsZiBhIHtqb2I=")
                #expect(foreign.json["code"] as? String == "unknown")
                for path in ["0-3", "1-0", "9-0", "0-9223372036854775807", "x", "0--1"] {
                    let missing = try await client.send(.get, "/v1/dead/\(path)")
                    #expect(missing.status == 404 && missing.headers["Content-Type"] == "application/problem+json")
                }
            }
        }
    }

    @Test func rejectsInvalidQueries() async throws {
        let cases = [
            "colour=red", "code=never", "lane=fast", "reason=x", "since=yesterday", "until=", "limit=0", "limit=x",
            "limit=1001", "limit=-1", "limit=99999999999999999999", "replayed=yes", "cursor=x", "cursor=", "=", "x",
        ]
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                for query in cases {
                    let answer = try await client.send(.get, "/v1/dead?\(query)")
                    #expect(
                        answer.status == 400 && answer.headers["Content-Type"] == "application/problem+json",
                        "\(query)")
                }
            }
        }
    }

    @Test func requiresAdminScope() async throws {
        let (reader, admin) = ("0123456789abcdef", "fedcba9876543210")
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [
                    APIKey(name: "reader", secret: reader, scopes: [.submit, .read]),
                    APIKey(name: "admin", secret: admin, scopes: [.admin]),
                ]
            }) { (client: GatewayClient) async throws in
                for path in ["/v1/dead", "/v1/dead/0-0"] {
                    #expect(try await client.send(.get, path).status == 401)
                    #expect(try await client.send(.get, path, headers: ["X-API-Key": reader]).status == 403)
                }
                #expect(try await client.send(.get, "/v1/dead", headers: ["X-API-Key": admin]).status == 200)
                let body = #"{"filter":{}}"#
                #expect(try await client.send(.post, "/v1/dead/replay", body).status == 401)
                #expect(
                    try await client.send(.post, "/v1/dead/replay", body, headers: ["X-API-Key": reader]).status == 403)
                // A literal path takes precedence over one with parameters.
                let refused = try await client.send(.get, "/v1/dead/replay", headers: ["X-API-Key": admin])
                #expect(refused.status == 405 && refused.headers["Allow"] == "POST")
            }
        }
    }

    @Test func respondsWith503WhileKafkaIsDown() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway {
                $0.dead.time = .milliseconds(500)
            } _: { (client: GatewayClient) async throws in
                try await until("the topic is readable") { try await client.send(.get, "/v1/dead").status == 200 }
                await fixture.broker.setDown(true)
                let answer = try await client.send(.get, "/v1/dead")
                #expect(answer.status == 503 && answer.headers["Retry-After"] != nil)
                #expect(try await client.send(.post, "/v1/dead/replay", #"{"filter":{}}"#).status == 503)
                await fixture.broker.setDown(false)
                try await until("the topic is readable again") { try await client.send(.get, "/v1/dead").status == 200 }
            }
        }
    }
}
