import Concurrency
import Glibc
import HTTPServer
import TestSupport
import Testing

/// Pending requests, which hold no threads.
@Suite(.limitedParallelism) struct PendingRequestTests {
    /// All clients have one address, as behind a proxy.
    @Test func holdsTwoThousandPendingRequestsOfOneAddress() async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let wanted = min(limit.rlim_max, 8192)
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        let (gate, begun) = (AsyncEvent(), Recorder<Int>())
        try await withServer { request in
            begun.record(1)
            if request.path == ["now"] { return text("now") }
            await gate.wait()
            return text("then")
        } _: { server in
            let clients = try (0..<2_000).map { _ in try RawClient(server.port) }
            for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
            try await until("\(begun.count) requests and \(server.connections) connections are pending") {
                begun.count == 2_000
            }
            let now = try await RawClient(server.port).get("/now")
            #expect(now.text == "now")
            gate.signal()
            for client in clients {
                let answer = try await client.answer()
                #expect(answer.text == "then")
            }
        }
    }

    /// libmicrohttpd takes 128 events at once.
    @Test(arguments: [127, 128, 129, 256]) func servesAllRequestsThatArriveAtOnce(count: Int) async throws {
        let (latch, isBlocked) = (Latch(), AsyncEvent())
        try await withServer {
            $0.threads = 1
        } handler: { request in
            if request.path == ["block"] {
                isBlocked.signal()
                latch.wait()
            }
            return text("served")
        } _: { server in
            let clients = try (0..<count).map { _ in try RawClient(server.port) }
            for client in clients { #expect(try await client.get("/").text == "served") }
            let blocker = try RawClient(server.port)
            try await blocker.send("GET /block HTTP/1.1\r\nHost: a\r\n\r\n")
            await isBlocked.wait()
            for client in clients { try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
            latch.open()
            for client in clients + [blocker] { #expect(try await client.answer().text == "served") }
        }
    }
}
