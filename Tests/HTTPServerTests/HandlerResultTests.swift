import HTTPServer
import TestSupport
import Testing

/// Results of handlers that need no task.
@Suite(.limitedParallelism) struct HandlerResultTests {
    /// Runs `body` with a server whose handler is `reply`, and with the notes of the server.
    private func with(
        _ reply: @escaping HTTPServer.RequestHandler, _ body: (HTTPServer, Recorder<String>) async throws -> Void
    ) async throws {
        let notes = Recorder<String>()
        var settings = HTTPServer.Settings.patient
        settings.note = { notes.record("\($0)") }
        let server = try HTTPServer.start(on: "127.0.0.1", settings, syncHandler: reply)
        let result: Result<Void, any Error>
        do { result = .success(try await body(server, notes)) } catch { result = .failure(error) }
        await server.shutdown(gracePeriod: .zero)
        try result.get()
    }

    private static func ok(_ body: HTTPServer.Response.Body) -> HTTPServer.Response {
        HTTPServer.Response(status: 200, headers: ["ETag": "\"a\"", "Content-Type": "image/png"], body: body)
    }

    @Test func sendsImmediateAndDeferredResponses() async throws {
        let large = [UInt8](repeating: 7, count: 1_000_000)
        try await with { request in
            switch request.path {
            case ["large"]: .immediate(Self.ok(.bytes(large)))
            case ["stream"]: .immediate(Self.ok(.stream(length: nil) { try await $0.write(Array("streamed".utf8)) }))
            case ["wrong"]: .immediate(HTTPServer.Response(status: 200, headers: ["Date": "today"]))
            case ["later"]: .deferred { Self.ok(.bytes(Array("later".utf8))) }
            default: .immediate(Self.ok(.bytes(Array("now".utf8))))
            }
        } _: { server, notes in
            let client = try RawClient(server.port)
            for _ in 0..<3 {
                #expect(try await client.get("/").text == "now")
                #expect(try await client.get("/large").body == large)
                #expect(try await client.get("/stream").text == "streamed")
                #expect(try await client.get("/later").text == "later")
                let head = try await client.ask("HEAD", "/")
                #expect(head.headers["content-length"] == "3" && head.headers["etag"] == "\"a\"")
            }
            #expect(server.connections == 1 && notes.count == 0)
            #expect(try await client.get("/wrong").status == 500)
            #expect(notes.all == ["unsendable(status: 200)"])
        }
    }

    /// One unread body is short enough to be discarded, and the other is not.
    @Test func earlyResponseKeepsConnectionUnlessBodyIsLong() async throws {
        let shared = try #require(HTTPServer.SharedResponse(Self.ok(.bytes(Array("shared".utf8)))))
        try await with {
            $0.path == ["shared"] ? .cached(shared) : .immediate(Self.ok(.bytes(Array("now".utf8))))
        } _: { server, _ in
            for name in ["shared", "now"] {
                let client = try RawClient(server.port)
                for _ in 0..<2 {
                    try await client.send(
                        "POST /\(name) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
                    let answer = try await client.answer()
                    #expect(answer.text == name && answer.headers["connection"] != "close")
                }
                try await client.send("POST /\(name) HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc")
                let answer = try await client.answer()
                #expect(answer.text == name && answer.headers["connection"] == "close")
                await #expect(throws: RawClient.Closed.self) { try await client.line() }
            }
        }
    }

    @Test func sharesOneResponseAmongConnections() async throws {
        let body = (0..<HTTPServer.SharedResponse.mostBytes).map { UInt8(truncatingIfNeeded: $0) }
        let shared = try #require(HTTPServer.SharedResponse(Self.ok(.bytes(body))))
        let missing = try #require(HTTPServer.SharedResponse(HTTPServer.Response(status: 404)))
        try await with {
            .cached($0.path == ["missing"] ? missing : shared)
        } _: { server, _ in
            let port = server.port
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        let client = try RawClient(port)
                        for _ in 0..<20 {
                            let answer = try await client.get("/")
                            #expect(answer.status == 200 && answer.body == body && answer.headers["etag"] == "\"a\"")
                            #expect(answer.headers["date"] != nil && answer.headers["content-type"] == "image/png")
                            let head = try await client.ask("HEAD", "/")
                            #expect(head.headers["content-length"] == "\(body.count)")
                            #expect(try await client.get("/missing").status == 404)
                        }
                        // Only the response to a client that closes says `close`.
                        let last = try await client.get("/", "Connection: close\r\n")
                        #expect(last.body == body && last.headers["connection"] == "close")
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// The handler releases the response while it is still being sent to clients.
    @Test func sharedResponseLivesUntilItIsSent() async throws {
        let made = Recorder<Int>()
        try await with { _ in
            made.record(1)
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: made.count), count: 60_000)
            return HTTPServer.SharedResponse(Self.ok(.bytes(bytes))).map { .cached($0) } ?? .immediate(Self.ok(.none))
        } _: { server, _ in
            let clients = try (0..<20).map { _ in try RawClient(server.port, receiveBuffer: 4096) }
            for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
            try await until("all responses are made") { made.count == clients.count }
            var seen: Set<UInt8> = []
            for client in clients {
                let body = try await client.answer().body
                #expect(body.count == 60_000 && Set(body).count == 1)
                seen.formUnion(body)
            }
            #expect(!seen.isEmpty)
        }
    }

    @Test func doesNotShareIndividualResponses() {
        let long = [UInt8](repeating: 0, count: HTTPServer.SharedResponse.mostBytes + 1)
        #expect(HTTPServer.SharedResponse(Self.ok(.bytes(long))) == nil)
        #expect(HTTPServer.SharedResponse(Self.ok(.stream(length: 3) { _ in })) == nil)
        #expect(HTTPServer.SharedResponse(HTTPServer.Response(status: 200, headers: ["Date": "x"])) == nil)
        #expect(HTTPServer.SharedResponse(HTTPServer.Response(status: 99)) == nil)
        var closing = Self.ok(.none)
        closing.closesConnection = true
        #expect(HTTPServer.SharedResponse(closing) == nil)
    }
}
