import Concurrency
import TestSupport
import Testing

@testable import HTTPServer

/// Response bodies that are written while they are sent.
@Suite(.limitedParallelism) struct StreamTests {
    private static func stream(
        length: Int? = nil, _ produce: @escaping @Sendable (HTTPServer.BodyWriter) async throws -> Void
    ) -> HTTPServer.Response {
        HTTPServer.Response(status: 200, body: .stream(length: length, produce))
    }

    @Test func sendsEachPartAsItIsWritten() async throws {
        let (first, second) = (AsyncEvent(), AsyncEvent())
        try await withServer { _ in
            Self.stream { writer in
                await first.wait()
                try await writer.write(Array("one".utf8))
                try await writer.write([])
                await second.wait()
                try await writer.write(Array("two".utf8))
            }
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            // The head does not wait for the body, nor a part for the next.
            let head = try await client.head()
            #expect(head.headers["transfer-encoding"] == "chunked")
            first.signal()
            let one = try await client.chunk()
            #expect(one == Array("one".utf8))
            second.signal()
            let two = try await client.chunk()
            #expect(two == Array("two".utf8))
            let end = try await client.chunk()
            #expect(end == nil)
            let again = try await client.get("/")
            #expect(again.text == "onetwo" && server.connections == 1)
        }
    }

    @Test func sendsLargeBodiesCompletely() async throws {
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        try await withServer { request in
            if request.path == ["bytes"] { return HTTPServer.Response(status: 200, body: .bytes(bytes)) }
            return Self.stream(length: request.path == ["known"] ? bytes.count : nil) { writer in
                for start in stride(from: 0, to: bytes.count, by: 70_001) {
                    try await writer.write(Array(bytes[start..<min(start + 70_001, bytes.count)]))
                }
            }
        } _: { server in
            let client = try RawClient(server.port)
            for path in ["bytes", "known", "chunked", "bytes"] {
                let answer = try await client.get("/\(path)")
                #expect(answer.body == bytes, "\(path)")
            }
            // HTTP/1.0 has no chunks: the end of the connection is that of the body.
            try await client.send("GET /chunked HTTP/1.0\r\n\r\n")
            let old = try await client.answer()
            #expect(old.body == bytes && old.headers["transfer-encoding"] == nil)
        }
    }

    /// The writer is suspended while the client does not read, and the bytes between them are bounded.
    @Test func appliesBackpressureToWriter() async throws {
        let written = Lock(0)
        try await withServer { _ in
            Self.stream { writer in
                let block = [UInt8](repeating: 7, count: 10_000)
                for _ in 0..<2_000 {
                    try await writer.write(block)
                    written.withLock { $0 += block.count }
                }
            }
        } _: { server in
            let client = try RawClient(server.port, receiveBuffer: 1 << 16)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            var (last, quiet) = (-1, 0)
            while quiet < 50 {
                let now = written.withLock { $0 }
                quiet = now == last && now > 0 ? quiet + 1 : 0
                last = now
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(last < 1 << 20, "\(last) bytes are buffered")
            let answer = try await client.answer()
            #expect(answer.body.count == 20_000_000)
        }
    }

    @Test func dropsClientThatDoesNotRead() async throws {
        let (ends, notes) = (Recorder<String>(), Recorder<String>())
        try await withServer {
            $0.limits.stallTime = .milliseconds(300)
            $0.note = { notes.record("\($0)") }
        } handler: { request in
            if request.path == ["bytes"] {
                return HTTPServer.Response(status: 200, body: .bytes([UInt8](repeating: 0, count: 20 << 20)))
            }
            return Self.stream { writer in
                do {
                    while true { try await writer.write([UInt8](repeating: 0, count: 10_000)) }
                } catch {
                    // The task is cancelled just after the end of the connection.
                    try? await Task.sleep(for: .seconds(600))
                    ends.record("\(error) \(Task.isCancelled)")
                    throw error
                }
            }
        } _: { server in
            for (path, count) in [("stream", 1), ("bytes", 2)] {
                let client = try RawClient(server.port, receiveBuffer: 1 << 16)
                try await client.send("GET /\(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                try await until("the client is dropped") {
                    notes.all.count { $0.contains("does not read the response") } == count
                }
                try await until("the connection is closed") { server.connections == 0 }
                _ = try await client.rest()
            }
            try await until("the writer has ended") { ends.count == 1 }
            #expect(ends.all == ["connectionLost true"])
        }
    }

    /// A silent stream is not mistaken for a client that does not read.
    @Test func keepsClientOfSilentStream() async throws {
        try await withServer {
            $0.limits.requestTime = .seconds(2)
            $0.limits.stallTime = .seconds(1)
        } handler: { _ in
            Self.stream { writer in
                try await Task.sleep(for: .seconds(3))
                try await writer.write(Array("late".utf8))
            }
        } _: { server in
            // On a busy machine, the server may be late itself.
            try await until("a stream is kept") { try await RawClient(server.port).get("/").text == "late" }
        }
    }

    /// A stream waits for its writer without a limit, and only for `stallTime` for its client.
    @Test(arguments: [true, false]) func limitsOnlyTheTimeInWhichTheClientIsToRead(isSilent: Bool) throws {
        let limits = HTTPServer.Limits()
        let connection = ConnectionHandle(pointer: try #require(OpaquePointer(bitPattern: 16)))
        var state = HTTPTransactionState(connection, socket: -1, framing: .none, limits: limits)
        (state.stage, state.isSuspended) = (.answering, isSilent)
        switch state.check(state.deadline + limits.stallTime, limits) {
        case .watch: #expect(isSilent)
        case .cut(let reason, _): #expect(!isSilent && reason == "it does not read the response")
        case .fine, .refuse: Issue.record("the stream is not checked")
        }
    }

    @Test(arguments: ["throws", "short", "chunked"])
    func closesConnectionOfIncompleteBody(how: String) async throws {
        struct Failure: Error {}
        let notes = Recorder<String>()
        try await withServer {
            $0.note = { notes.record("\($0)") }
        } handler: { _ in
            Self.stream(length: how == "chunked" ? nil : 10) { writer in
                try await writer.write(Array("half".utf8))
                if how != "short" { throw Failure() }
            }
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await #expect(throws: RawClient.Closed.self) { try await client.answer() }
            #expect(notes.all.contains { $0.contains("Failure") } == (how != "short"))
        }
    }
}
