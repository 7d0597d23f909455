import Concurrency
import HTTPServer
import TestSupport
import Testing

/// Clients that disconnect, and the handlers that work for them.
@Suite(.limitedParallelism) struct DisconnectTests {
    enum Disconnection: CaseIterable { case close, halfClose }

    @Test(arguments: Disconnection.allCases) func cancelsHandlerWhenClientDisconnects(way: Disconnection) async throws {
        let events = Recorder<String>()
        try await withServer { _ in
            events.record("begun")
            try await sleepUntilCancelled(events)
            return text("late")
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try await until("the handler has begun") { events.count == 1 }
            if way == .halfClose { client?.closeWriting() } else { client = nil }
            try await until("the handler is cancelled") { events.all == ["begun", "cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    @Test func cancelsSilentStreamWhenClientDisconnects() async throws {
        let events = Recorder<String>()
        try await withServer { _ in
            HTTPServer.Response(
                status: 200,
                body: .stream(length: nil) { writer in
                    try await writer.write([1])
                    try await sleepUntilCancelled(events)
                })
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let head = try await client?.head()
            #expect(head?.status == 200)
            client = nil
            try await until("the stream is cancelled") { events.all == ["cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    /// The end of a connection is always detected, even if it arrives together with the last bytes.
    @Test func detectsTruncatedUploads() async throws {
        let failures = Recorder<String>()
        try await withServer { request in
            do {
                while let _ = try await request.body.next() {}
                failures.record("complete")
            } catch {
                failures.record("\(error)")
            }
            return text("")
        } _: { server in
            for number in 0..<40 {
                let client = try RawClient(server.port)
                let size = number * 400
                try await client.send(
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16001\r\n\r\n" + String(repeating: "x", count: size))
                if number % 2 == 0 { client.closeWriting() }
            }
            try await until("all handlers have ended") { failures.count == 40 }
            #expect(failures.all.allSatisfy { $0 == "connectionLost" })
            try await until("the connections are closed") { server.connections == 0 }
        }
    }

    /// Nothing is read from the body, so libmicrohttpd does not read the socket, and the sweep detects the disconnect.
    /// (Behind more bytes than kernels hold, the end does not arrive, and the request ends by its timeout.)
    @Test func detectsDisconnectDuringUnreadUpload() async throws {
        let events = Recorder<String>()
        try await withServer { request in
            _ = try await request.body.next()
            events.record("begun")
            try await sleepUntilCancelled(events)
            return text("")
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            try await client?.send([UInt8](repeating: 0, count: 100_000))
            // An earlier disconnect is detected by the read.
            try await until("the handler has read a part") { events.all == ["begun"] }
            client = nil
            try await until("the handler is cancelled") { events.all == ["begun", "cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }
}
