import HTTPServer
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// `GET /v1/events` without a cursor.
@Suite struct EventStreamTests {
    @Test func deliversAllEventsInPartitionOrder() async throws {
        try await EventFixture.with(partitions: 3) { fixture in
            try await fixture.publish("before", partition: 0)
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                #expect(client.head.headers["content-type"] == "text/event-stream")
                #expect(client.head.headers["cache-control"] == "no-store")
                #expect(client.head.headers["x-accel-buffering"] == "no")
                for number in 0..<300 { try await fixture.publish("\(number)", partition: Int32(number % 3)) }
                let data = try await client.data(300)
                #expect(client.retry == 2000)
                for partition in 0..<3 {
                    let expected = stride(from: partition, to: 300, by: 3).map { EventFixture.event("\($0)") }
                    let own = Set(expected)
                    #expect(data.filter(own.contains) == expected)
                }
                try await until("all events are counted") {
                    fixture.metrics.value(of: "halcyon_gateway_events_sent_total") == 300
                }
                #expect(fixture.metrics.value(of: "halcyon_gateway_event_streams") == 1)
            }
            // The server waits only for a limited time for the ends of streams.
            try await until("the stream has ended") {
                fixture.metrics.value(of: "halcyon_gateway_event_streams") == 0
            }
        }
    }

    /// A line break in the JSON would end the data field.
    @Test func deliversMultilineJSONAsOneLine() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                try await fixture.publish(bytes: Array("{\r\n \"a\": 1\n}".utf8))
                #expect(try await client.next()?.data == "{   \"a\": 1 }")
            }
        }
    }

    @Test func namesEventsOnRequest() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let named = try await EventClient(server.port, "?named=true")
                let plain = try await EventClient(server.port, "?named=false")
                try await named.waitForStart()
                try await plain.waitForStart()
                try await fixture.publish("a", "failed")
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
    func filtersByTypeJobAndSource(_ query: String, _ expected: [String]) async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, query)
                let all = try await EventClient(server.port)
                try await client.waitForStart()
                try await all.waitForStart()
                try await fixture.publish(bytes: Array("no JSON".utf8))
                try await fixture.publish("a", "started", source: "https://a/x", partition: 0)
                try await fixture.publish("a", "progress", source: "https://a/x", partition: 0)
                try await fixture.publish("a", "ready", source: "https://a/x", partition: 0)
                try await fixture.publish("b", "failed", partition: 0)
                try await fixture.publish("c", "ready", source: "https://c/x", partition: 0)
                try await fixture.publish("c", "cancelled", source: "https://a/x", partition: 0)
                // Without a filter, records that are not events are delivered, too.
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
        ("?batch=b", ["job", "progress", "completed"]), ("?batch=b&type=batch.progress", ["progress"]),
        ("?type=halcyon.batch.completed", ["completed", "other"]),
        ("?batch=b&batch=c", ["job", "progress", "completed", "other"]),
        ("?batch=b&type=ready", ["job"]), ("?batch=b&job=a", ["job"]), ("?batch=none", []),
    ])
    func filtersByBatch(_ query: String, _ expected: [String]) async throws {
        let events = [
            "job": #"{"type":"halcyon.image.ready","data":{"job":{"id":"a","batch":{"id":"b","index":3}}}}"#,
            "progress": #"{"type":"halcyon.batch.progress","subject":"b","data":{"batch":{"id":"b"}}}"#,
            "completed": #"{"type":"halcyon.batch.completed","subject":"b","data":{"batch":{"id":"b"}}}"#,
            "other": #"{"type":"halcyon.batch.completed","subject":"c","data":{"batch":{"id":"c"}}}"#,
            "plain": #"{"type":"halcyon.image.ready","data":{"job":{"id":"b"}}}"#,
        ]
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let client = try await EventClient(server.port, query + "&named=true")
                let all = try await EventClient(server.port)
                try await client.waitForStart()
                try await all.waitForStart()
                for name in ["job", "progress", "plain", "completed", "other"] {
                    try await fixture.publish(bytes: Array((events[name] ?? "").utf8))
                }
                _ = try await all.data(5)
                for name in expected {
                    let event = try #require(try await client.next())
                    #expect(event.data == events[name])
                    #expect(events[name]?.contains(#""type":"\#(event.name)""#) == true)
                }
                #expect(fixture.metrics.value(of: "halcyon_gateway_events_sent_total") == Double(5 + expected.count))
            }
        }
    }

    @Test(arguments: [
        ("?tag=x", "tag"), ("?batch=", "batch"), ("?type=batch.ready", "batch.ready"), ("?type=gone", "gone"),
        ("?type=", "type"), ("?job=", "job"), ("?named=yes", "named"),
        ("?lastEventId=1.AAAA", "Last-Event-ID"),
    ])
    func rejectsInvalidQueries(_ query: String, _ word: String) async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { _, server in
                let answer = try await RawClient(server.port).get("/v1/events\(query)")
                #expect(answer.status == 400)
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect(answer.text.contains(word))
            }
        }
    }

    /// A browser's `EventSource` cannot send a key.
    @Test func acceptsSignedURLs() async throws {
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "reader", secret: String(repeating: "k", count: 32), scopes: [.read])]
            $0.urlKeys = ["1": Array(repeating: 7, count: 32)]
        }
        try await EventFixture.with { fixture in
            try await fixture.withFeed { feed in
                try await withServer([.events(feed, StreamLimiter(feed.options.streams, feed.metrics))], access) {
                    port in
                    let signer = URLSigner(keys: access.urlKeys, requiresExpiry: false)
                    let target = try #require(signer.sign("/v1/events?job=mine", keyId: "1", expires: 4_000_000_000))
                    let client = try await EventClient(port, String(target.dropFirst("/v1/events".count)))
                    try await client.waitForStart()
                    try await fixture.publish("other")
                    try await fixture.publish("mine")
                    #expect(try await client.jobs(1) == ["mine"])
                    #expect(try await RawClient(port).get("/v1/events?job=mine").status == 401)
                    #expect(try await RawClient(port).get(target.replacing("mine", with: "his")).status == 403)
                }
            }
        }
    }

    @Test func keepAlivesAdvanceTheCursorOfIdleStreams() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream {
                $0.keepAlive = .milliseconds(100)
            } _: { _, server in
                let client = try await EventClient(server.port, "?job=mine")
                try await client.waitForStart()
                let first = client.lastEventID
                try await fixture.publish("other")
                try await client.readKeepAlives { $0 >= 3 && client.lastEventID != first }
                try await fixture.publish("mine")
                #expect(try await client.next()?.data == EventFixture.event("mine"))
            }
        }
    }

    @Test func shutdownEndsStreamsCleanly() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream { feed, server in
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                feed.endStreams()
                // A closed connection would throw.
                #expect(try await client.next() == nil)
                // Streams requested during shutdown end properly, too.
                #expect(try await EventClient(server.port).next() == nil)
            }
        }
    }
}
