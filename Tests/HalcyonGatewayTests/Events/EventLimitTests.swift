import HTTPServer
import TestSupport
import Testing

@testable import HalcyonGateway

/// The limit on streams, and the handling of clients that do not read.
@Suite struct EventLimitTests {
    @Test func limitsConcurrentStreams() async throws {
        try await EventFixture.with { fixture in
            try await fixture.withStream {
                $0.streams = 2
            } _: { _, server in
                let one = try await EventClient(server.port)
                var two: EventClient? = try await EventClient(server.port)
                try await one.waitForStart()
                try await two?.waitForStart()
                let refused = try await RawClient(server.port).get("/v1/events")
                #expect(refused.status == 503)
                #expect(refused.headers["retry-after"] == "5")
                two = nil
                try await until("the permit is released") {
                    try await EventClient(server.port).waitForStart(); return true
                }
                // A HEAD request takes no permit.
                for _ in 0..<5 {
                    try await until("a HEAD request succeeds") {
                        let client = try RawClient(server.port)
                        try await client.send("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        return try await client.answer(toHead: true).headers["content-type"] == "text/event-stream"
                    }
                }
            }
            // The server waits only for a limited time for the ends of streams.
            try await until("all streams have ended") {
                fixture.metrics.value(of: "halcyon_gateway_event_streams") == 0
            }
        }
    }

    private static let padding = String(repeating: "x", count: 10_000)

    /// Runs `body` with a client that reads, while another one does not read its stream. `isDropped` returns true if
    /// the latter has been dropped for `reason`.
    private static func withStalledClient(
        droppedAs reason: String, _ change: @escaping (inout EventOptions) -> Void,
        _ body: (_ fixture: EventFixture, _ client: EventClient, _ isDropped: () -> Bool) async throws -> Void
    ) async throws {
        try await EventFixture.with(partitions: 1) { fixture in
            try await fixture.withStream {
                $0.keepAlive = .milliseconds(200)
                change(&$0)
            } _: { _, server in
                let stalled = try RawClient(server.port, receiveBuffer: 4096)
                try await stalled.send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let client = try await EventClient(server.port)
                try await client.waitForStart()
                try await body(fixture, client) {
                    fixture.metrics.value(of: #"halcyon_gateway_event_streams_dropped_total{reason="\#(reason)"}"#) > 0
                }
            }
        }
    }

    @Test func dropsStalledClientsWithoutAffectingOthers() async throws {
        // Longer than a busy machine stalls, so that the client that reads is not dropped.
        try await Self.withStalledClient(droppedAs: "stalled", { $0.slowClientTimeout = .seconds(15) }) {
            fixture, client, isDropped in
            var sent = 0
            while !isDropped() {
                try await fixture.publish("\(sent)", source: Self.padding)
                #expect(try await client.data(1) == [EventFixture.event("\(sent)", source: Self.padding)])
                sent += 1
                // The socket buffers of the stalled client are full soon. Then it is stalled, but not behind the ring
                // buffer.
                if sent > 300 { try await Task.sleep(for: .milliseconds(200)) }
            }
            try await until("one stream is open") { fixture.metrics.value(of: "halcyon_gateway_event_streams") == 1 }
            try await fixture.publish("last")
            #expect(try await client.data(1) == [EventFixture.event("last")])
        }
    }

    @Test func dropsClientsThatFallBehindTheRingBuffer() async throws {
        let change = { (options: inout EventOptions) in
            options.slowClientTimeout = .seconds(600)
            options.ringBytes = 100_000
        }
        try await Self.withStalledClient(droppedAs: "behind", change) { fixture, client, isDropped in
            var sent = 0
            while !isDropped() {
                try await fixture.publish("\(sent)", source: Self.padding)
                #expect(try await client.data(1) == [EventFixture.event("\(sent)", source: Self.padding)])
                sent += 1
            }
        }
    }
}
