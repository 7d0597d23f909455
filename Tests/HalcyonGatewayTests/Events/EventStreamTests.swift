import HTTPServer
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `GET /v1/events`: what comes from now on.
@Suite struct EventStreamTests {
    @Test func allEventsArriveInTheOrderOfTheirPartition() async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.tell("before", partition: 0)
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                #expect(client.head.headers["content-type"] == "text/event-stream")
                #expect(client.head.headers["cache-control"] == "no-store")
                #expect(client.head.headers["x-accel-buffering"] == "no")
                for number in 0..<300 { try await fixture.tell("\(number)", partition: Int32(number % 3)) }
                let data = try await client.data(300)
                #expect(client.retry == 2000)
                for partition in 0..<3 {
                    let expected = stride(from: partition, to: 300, by: 3).map { EventFixture.event("\($0)") }
                    let own = Set(expected)
                    #expect(data.filter(own.contains) == expected)
                }
                #expect(fixture.metrics.value(of: "halcyon_gateway_events_sent_total") == 300)
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_streams") == 1)
            }
            #expect(fixture.metrics.value(of: "halcyon_gateway_event_streams") == 0)
        }
    }

    /// A line break in the JSON would be the end of the data.
    @Test func jsonOfSeveralLinesComesAsOne() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                try await fixture.tell(bytes: Array("{\r\n \"a\": 1\n}".utf8))
                #expect(try await client.next()?.data == "{   \"a\": 1 }")
            }
        }
    }

    @Test func eventsAreNamedWhenThatIsAskedFor() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let named = try await EventClient(server.port, "?named=true")
                let plain = try await EventClient(server.port, "?named=false")
                try await named.begun()
                try await plain.begun()
                try await fixture.tell("a", "failed")
                #expect(try await named.next()?.name == "halcyon.image.failed")
                #expect(try await plain.next()?.name == "message")
            }
        }
    }

    @Test(arguments: [
        ("", ["a-started", "a-progress", "a-ready", "b-failed", "c-ready", "c-cancelled"]),
        ("?type=ready", ["a-ready", "c-ready"]),
        ("?type=progress", ["a-progress"]),
        ("?type=halcyon.image.ready", ["a-ready", "c-ready"]),
        ("?type=failed,cancelled", ["b-failed", "c-cancelled"]),
        ("?type=failed&type=started", ["a-started", "b-failed"]),
        ("?job=a", ["a-started", "a-progress", "a-ready"]),
        ("?job=a&job=b", ["a-started", "a-progress", "a-ready", "b-failed"]),
        ("?job=a&type=ready", ["a-ready"]),
        ("?source=https%3A%2F%2Fa%2Fx", ["a-started", "a-progress", "a-ready", "c-cancelled"]),
        ("?source=https://a/x&type=cancelled", ["c-cancelled"]),
        ("?job=nobody", []),
    ])
    func filters(_ query: String, _ expected: [String]) async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, query)
                let all = try await EventClient(server.port)
                try await client.begun()
                try await all.begun()
                try await fixture.tell(bytes: Array("no JSON".utf8))
                try await fixture.tell("a", "started", source: "https://a/x", partition: 0)
                try await fixture.tell("a", "progress", source: "https://a/x", partition: 0)
                try await fixture.tell("a", "ready", source: "https://a/x", partition: 0)
                try await fixture.tell("b", "failed", partition: 0)
                try await fixture.tell("c", "ready", source: "https://c/x", partition: 0)
                try await fixture.tell("c", "cancelled", source: "https://a/x", partition: 0)
                // Who has no filter has what is no event, too.
                _ = try await all.data(7)
                let ids =
                    (query.isEmpty ? ["no JSON"] : [])
                    + expected.map { name in
                        let parts = name.split(separator: "-")
                        let source =
                            ["a-started", "a-progress", "a-ready", "c-cancelled"].contains(name) ? "https://a/x" : nil
                        return EventFixture.event(
                            String(parts[0]), String(parts[1]), source: name == "c-ready" ? "https://c/x" : source)
                    }
                #expect(try await client.data(ids.count) == ids)
            }
        }
    }

    @Test(arguments: [
        ("?tag=x", "tag"), ("?type=gone", "gone"), ("?type=", "type"), ("?job=", "job"), ("?named=yes", "named"),
        ("?lastEventId=1.AAAA", "Last-Event-ID"),
    ])
    func whatIsNotKnownIsRefused(_ query: String, _ word: String) async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let answer = try await RawClient(server.port).get("/v1/events\(query)")
                #expect(answer.status == 400)
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect(answer.text.contains(word))
            }
        }
    }

    /// A browser's `EventSource` sends no key.
    @Test func aSignedURLLetsIn() async throws {
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "reader", secret: String(repeating: "k", count: 32), scopes: [.read])]
            $0.urlKeys = ["1": Array(repeating: 7, count: 32)]
        }
        try await EventFixture.with { fixture in
            try await fixture.withFeed { feed in
                try await withServed([.events(feed, StreamLimiter(feed.options.streams, feed.metrics))], access) {
                    port in
                    let signer = URLSigner(keys: access.urlKeys, requiresExpiry: false)
                    let target = try #require(signer.sign("/v1/events?job=mine", keyId: "1", expires: 4_000_000_000))
                    let client = try await EventClient(port, String(target.dropFirst("/v1/events".count)))
                    try await client.begun()
                    try await fixture.tell("other")
                    try await fixture.tell("mine")
                    #expect(try await client.jobs(1) == ["mine"])
                    #expect(try await RawClient(port).get("/v1/events?job=mine").status == 401)
                    #expect(try await RawClient(port).get(target.replacing("mine", with: "his")).status == 403)
                }
            }
        }
    }

    @Test func quietStreamsHaveSignsOfLifeThatMoveTheirCursor() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream {
                $0.keepAlive = .milliseconds(100)
            } _: { _, server in
                let client = try await EventClient(server.port, "?job=mine")
                try await client.begun()
                let first = client.lastEventID
                try await fixture.tell("other")
                try await client.signsOfLife { $0 >= 3 && client.lastEventID != first }
                try await fixture.tell("mine")
                #expect(try await client.next()?.data == EventFixture.event("mine"))
            }
        }
    }

    @Test func theEndOfAGatewayEndsStreamsSoThatClientsComeBack() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { feed, server in
                let client = try await EventClient(server.port)
                try await client.begun()
                feed.endStreams()
                // A stream that was cut would throw.
                #expect(try await client.next() == nil)
                // Who comes too late is sent on as well.
                #expect(try await EventClient(server.port).next() == nil)
            }
        }
    }
}
