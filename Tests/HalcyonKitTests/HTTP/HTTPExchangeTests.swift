import Foundation
import TestSupport
import Testing

@testable import HalcyonKit

/// The client and a server that behaves well or badly.
@Suite struct HTTPExchangeTests {
    private static func client(
        _ origin: RawOrigin, _ set: (inout HalcyonClient.Configuration) -> Void = { _ in }
    ) -> HalcyonClient {
        var configuration = HalcyonClient.Configuration()
        configuration.retryTimeout = .zero
        set(&configuration)
        return HalcyonClient(URL(string: origin.url("/"))!, key: "secret", configuration: configuration)
    }

    /// Returns an origin whose response depends on the number of the request, starting at 1.
    private static func origin(_ response: @escaping @Sendable (_ attempt: Int) -> [RawOrigin.Step]) -> RawOrigin {
        let attempts = Locked(0)
        return RawOrigin { _ in
            response(
                attempts.withLock { attempt in
                    attempt += 1
                    return attempt
                })
        }
    }

    /// Returns the cursor of a request.
    private static func cursor(_ request: RawOrigin.Request) -> String? {
        request.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("last-event-id: ") }
            .map { String($0.dropFirst(15)) }
    }

    private static let event =
        #"{"id": "ID", "type": "halcyon.image.started", "time": "2026-11-21T10:31:07.250Z", "data": {"job": {"id": "ID"}}}"#

    private static func message(_ id: String) -> String {
        "id: \(id)\ndata: \(event.replacingOccurrences(of: "ID", with: id))\n\n"
    }

    private static func stream(_ text: String, _ then: [RawOrigin.Step]) -> [RawOrigin.Step] {
        [.text("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + text)] + then
    }

    @Test func sendsTheKeyAndTheEncodedPath() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", [], "x") }
        #expect(try await Self.client(origin).imageData(forKey: "halcyon:{é}:/?") == Data("x".utf8))
        let head = try #require(origin.requests.first?.head)
        #expect(head.hasPrefix("GET /v1/images/halcyon%3A%7B%C3%A9%7D%3A%2F%3F HTTP/1.1\r\n"))
        #expect(head.contains("Authorization: Bearer secret\r\n"))
        try await origin.stop()
    }

    @Test(arguments: [false, true]) func limitsTheSizeOfAnImage(hasContentLength: Bool) async throws {
        // Endless, and no faster than a network, because Foundation on Linux drops connections with a delay.
        let parts = Array(repeating: [.zeros(1 << 16), .pause(.milliseconds(5))] as [RawOrigin.Step], count: 100_000)
        let length = hasContentLength ? "Content-Length: \(parts.count << 16)\r\n" : ""
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\n\(length)\r\n")] + parts.joined() }
        let client = Self.client(origin) { $0.maximumImageBytes = 100_000 }
        #expect(try await errorOf { try await client.imageData(forKey: "k") } == .tooLarge(limit: 100_000))
        try await until("the connection was dropped") { origin.cuts == 1 }
        try await origin.stop()
    }

    @Test func doesNotFollowRedirects() async throws {
        let other = RawOrigin { _ in RawOrigin.answer("200 OK", [], "x") }
        let url = other.url("/")
        let origin = RawOrigin { _ in RawOrigin.answer("302 Found", ["Location: \(url)"]) }
        #expect(try await problemOf { try await Self.client(origin).jobState(id: "j") }.status == 302)
        #expect(other.requests.isEmpty)
        try await origin.stop()
        try await other.stop()
    }

    @Test func redirectOfAnImageIsFollowedOnceWithoutTheKey() async throws {
        let store = RawOrigin { request in
            request.path == "/r/a%20b?c"
                ? RawOrigin.answer("200 OK", [], "x") : RawOrigin.answer("302 Found", ["Location: http://127.0.0.1/"])
        }
        let location = Locked(store.url("/r/a%20b?c"))
        let origin = RawOrigin { _ in
            RawOrigin.answer("302 Found", ["Location: \(location.withLock { $0 })"])
        }
        let client = Self.client(origin)
        let image = try await client.imageData(forKey: "k")
        #expect(image == Data("x".utf8))
        let head = try #require(store.requests.first?.head)
        #expect(!head.lowercased().contains("authorization:"))
        location.withLock { $0 = store.url("/again") }
        #expect(try await problemOf { try await client.imageData(forKey: "k") }.status == 302)
        #expect(store.requests.count == 2)
        // A path would be requested from the gateway, with the key.
        location.withLock { $0 = "/v1/batches" }
        guard case .invalidResponse = try await errorOf({ try await client.imageData(forKey: "k") }) else {
            Issue.record("unexpected error")
            return
        }
        #expect(origin.requests.count == 3)
        try await origin.stop()
        try await store.stop()
    }

    @Test func failsAfterTheReadTimeout() async throws {
        let origin = RawOrigin { _ in [.awaitEnd] }
        let client = Self.client(origin) { $0.readTimeout = .seconds(1) }
        guard case .connectionFailed = try await errorOf({ try await client.imageData(forKey: "k") }) else {
            Issue.record("unexpected error")
            return
        }
        try await origin.stop()
    }

    @Test func parsesProblemDetailsAndRetryAfter() async throws {
        let origin = RawOrigin { _ in
            RawOrigin.answer(
                "429 Too Many Requests", ["Content-Type: application/problem+json", "Retry-After: 7"],
                #"{"type": "/problems/too-many-requests", "title": "T", "status": 429, "detail": "D"}"#)
        }
        let problem = try await problemOf { try await Self.client(origin).submit(ImageJob("initials:A", width: 8)) }
        #expect(problem.kind == .tooManyRequests && problem.status == 429 && problem.retryAfter == .seconds(7))
        #expect(problem.title == "T" && problem.detail == "D" && problem.isTransient && problem.code == nil)
        #expect(origin.requests.count == 1, "without a retry timeout requests are not retried")
        try await origin.stop()
    }

    @Test func retriesTransientFailuresWithTheSameID() async throws {
        let origin = Self.origin { attempt in
            switch attempt {
            case 1: [.reset]
            case 2: RawOrigin.answer("503 Service Unavailable", ["Retry-After: 1"])
            default:
                RawOrigin.answer(
                    "202 Accepted", [],
                    #"{"id": "x", "lane": "normal", "status": "/v1/jobs/x", "images": ["/v1/images/halcyon:%7Ba%7D:b"]}"#
                )
            }
        }
        let client = Self.client(origin) { $0.retryTimeout = .seconds(600) }
        let accepted = try await client.submit(ImageJob("initials:A", width: 8))
        #expect(accepted.keys == ["halcyon:{a}:b"] && accepted.lane == .normal && accepted.unknownFields.isEmpty)
        let bodies = origin.requests.map(\.body)
        #expect(
            bodies.count == 3 && Set(bodies).count == 1
                && String(decoding: bodies[0], as: UTF8.self).contains(#""id":"#))
        try await origin.stop()
    }

    @Test func retriesResponsesThatBreakBeforeTheirEnd() async throws {
        let half = RawOrigin.Step.text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim")
        let origin = Self.origin { attempt in
            switch attempt {
            case 1: [half, .close]
            case 2: [half, .reset]
            default: RawOrigin.answer("200 OK", [], "image")
            }
        }
        let client = Self.client(origin) { $0.retryTimeout = .seconds(600) }
        let image = try await client.imageData(forKey: "k")
        #expect(image == Data("image".utf8))
        try await origin.stop()
    }

    @Test func retriesEndAfterTheTimeout() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("503 Service Unavailable", ["Retry-After: 3600"]) }
        let client = Self.client(origin) { $0.retryTimeout = .seconds(10) }
        #expect(try await problemOf { try await client.imageData(forKey: "k") }.retryAfter == .seconds(3600))
        try await origin.stop()
    }

    @Test func yieldsEventsBeforeTheStreamEnds() async throws {
        let origin = RawOrigin { _ in Self.stream(Self.message("1"), [.awaitEnd]) }
        var events = try await Self.client(origin).events(after: "0").makeAsyncIterator()
        let message = try #require(try await events.next())
        #expect(message.cursor == "1" && message.event?.job?.id == "1")
        #expect(origin.cuts == 0, "the stream is still open")
        #expect(Self.cursor(origin.requests[0]) == "0")
        try await origin.stop()
    }

    @Test func streamResumesAtTheLastCursor() async throws {
        let origin = Self.origin { attempt in
            switch attempt {
            case 1: Self.stream("retry: 1\n\nid: 0\n\n", [.awaitEnd])
            case 2: Self.stream("retry: 1\n\n" + Self.message("1") + "id: 2\ndata: {\"id\"", [.close])
            case 3: Self.stream(Self.message("2") + "id: 2b\n\n", [.close])
            case 4: RawOrigin.answer("503 Service Unavailable") + [.close]
            default:
                Self.stream("event: gap\nid: 3\ndata: {\"reason\": \"deleted\"}\n\n" + Self.message("4"), [.awaitEnd])
            }
        }
        var seen: [EventStream.Element] = []
        for try await message in try await Self.client(origin).events(
            EventStream.Filter(types: [.started], jobs: ["a b"]))
        {
            seen.append(message)
            if seen.count == 4 { break }
        }
        #expect(seen.map(\.cursor) == ["1", "2", "3", "4"])
        #expect(seen.map { $0.event?.job?.id } == ["1", "2", nil, "4"])
        #expect(seen[2].content == .gap("deleted"))
        #expect(origin.requests.allSatisfy { $0.path == "/v1/events?type=started&job=a%20b" })
        // The first request determines the current cursor.
        #expect(origin.requests.map(Self.cursor) == [nil, "0", "1", "2b", "2b"])
        try await until("the stream is closed with its reader") { origin.cuts >= 1 }
        try await origin.stop()
    }

    @Test func slowReaderGetsAllEventsWithBoundedBuffering() async throws {
        // 500 events of 10 kB at once, from the cursor of the client, which buffers at most 512 KiB and one event.
        let count = 500
        let padding = String(repeating: " ", count: 10_000)
        let origin = RawOrigin { request in
            let cursor = Self.cursor(request).flatMap { Int($0) } ?? 0
            let rest = (cursor..<count).map {
                Self.message("\($0 + 1)").replacingOccurrences(of: "}}\n", with: "}\(padding)}\n")
            }
            return Self.stream("retry: 1\n\n" + rest.joined(), [.awaitEnd])
        }
        let client = Self.client(origin) { $0.maximumEventBytes = 256 << 10 }
        var seen: [String] = []
        for try await message in try await client.events(after: "0") {
            seen.append(message.cursor)
            // The reader falls behind until its connection is dropped.
            if seen.count == 1 { try await until("the connection is dropped") { origin.cuts >= 1 } }
            if seen.count == count { break }
        }
        #expect(seen == (1...count).map { "\($0)" })
        #expect(origin.connections > 1, "the connection was dropped when the buffer was full")
        try await origin.stop()
    }

    @Test func oversizedEventEndsTheStream() async throws {
        let origin = RawOrigin { _ in Self.stream("data: " + String(repeating: "x", count: 5000), [.awaitEnd]) }
        let client = Self.client(origin) { $0.maximumEventBytes = 1000 }
        var events = try await client.events(after: "0").makeAsyncIterator()
        #expect(try await errorOf { try await events.next() } == .tooLarge(limit: 1000))
        try await origin.stop()
    }

    @Test func rejectsOtherContentTypesForEventStreams() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Content-Type: text/html"], "<p>") }
        guard case .invalidResponse = try await errorOf({ try await Self.client(origin).events() }) else {
            Issue.record("unexpected error")
            return
        }
        try await origin.stop()
    }
}
