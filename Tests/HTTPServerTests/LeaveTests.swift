import Concurrency
import HTTPServer
import TestSupport
import Testing

/// Clients that leave: whoever works for them hears of it.
@Suite(.limitedParallelism) struct LeaveTests {
    enum Way: CaseIterable { case close, halfClose }

    @Test(arguments: Way.allCases) func cancelsAHandlerThatNobodyWaitsFor(way: Way) async throws {
        let noted = Noted<String>()
        try await withServer { _ in
            noted.note("begun")
            try await untilCancelled(noted)
            return text("late")
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try await until("it has begun") { noted.count == 1 }
            if way == .halfClose { client?.closeWriting() } else { client = nil }
            try await until("it is cancelled") { noted.all == ["begun", "cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    @Test func cancelsASilentStream() async throws {
        let noted = Noted<String>()
        try await withServer { _ in
            HTTPServer.Response(
                status: 200,
                body: .stream(length: nil) { writer in
                    try await writer.write([1])
                    try await untilCancelled(noted)
                })
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let head = try await client?.head()
            #expect(head?.status == 200)
            client = nil
            try await until("it is cancelled") { noted.all == ["cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }

    /// The end of an upload that comes along with its last bytes is seen, always.
    @Test func noticesUploadsThatWereCutShort() async throws {
        let failures = Noted<String>()
        try await withServer { request in
            do {
                while let _ = try await request.body.next() {}
                failures.note("complete")
            } catch {
                failures.note("\(error)")
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
            try await until("all are noticed") { failures.count == 40 }
            #expect(failures.all.allSatisfy { $0 == "connectionLost" })
            try await until("the connections are closed") { server.connections == 0 }
        }
    }

    /// Nobody pulls, so libmicrohttpd does not read: the sweep sees it. (Behind more than kernels hold, the client's end does
    /// not come through; the request's time ends it then.)
    @Test func noticesAnUploadThatNobodyReads() async throws {
        let noted = Noted<String>()
        try await withServer { request in
            _ = try await request.body.next()
            noted.note("begun")
            try await untilCancelled(noted)
            return text("")
        } _: { server in
            var client: RawClient? = try RawClient(server.port)
            try await client?.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            try await client?.send([UInt8](repeating: 0, count: 100_000))
            // Whoever leaves before is noticed by the read.
            try await until("it has read something") { noted.all == ["begun"] }
            client = nil
            try await until("it is cancelled") { noted.all == ["begun", "cancelled"] }
            try await until("the connection is closed") { server.connections == 0 }
        }
    }
}
