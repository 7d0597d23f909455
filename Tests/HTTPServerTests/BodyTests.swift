import Concurrency
import HTTPServer
import TestSupport
import Testing

/// Request bodies, which are read on demand and within limits.
@Suite(.limitedParallelism) struct BodyTests {
    @Test func deliversBodiesInParts() async throws {
        try await withServer { request in
            var (total, parts) = (0, 0)
            while let part = try await request.body.next() {
                total += part.reduce(0) { $0 + Int($1) }
                parts += 1
            }
            return text("\(request.body.length.map { "\($0)" } ?? "chunked") \(total) \(parts > 0)")
        } _: { server in
            let client = try RawClient(server.port)
            let body = [UInt8](repeating: 1, count: 300_000)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n")
            try await client.send(body)
            let whole = try await client.answer()
            #expect(whole.text == "300000 300000 true")
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<100 { try await client.send("a\r\n\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\r\n") }
            try await client.send("0\r\nX-Trailer: a\r\n\r\n")
            let chunked = try await client.answer()
            #expect(chunked.text == "chunked 1000 true")
            let none = try await client.get("/")
            #expect(none.text == "0 0 false")
            #expect(server.connections == 1)
        }
    }

    /// 32 MiB are offered and not read. The server takes only what kernels and one buffer hold.
    @Test func appliesBackpressureToUnreadBodies() async throws {
        let gate = AsyncEvent()
        let total = 32 << 20
        try await withServer {
            $0.limits.bodyBytes = total
        } handler: { request in
            let first = try await request.body.next()
            await gate.wait()
            var count = first?.count ?? 0
            while let part = try await request.body.next() {
                #expect(part.count <= 2 << 16)
                count += part.count
            }
            return text("\(count)")
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(total)\r\n\r\n")
            let block = [UInt8](repeating: 0, count: 1 << 18)
            var (sent, quiet) = (0, 0)
            // Until nothing is taken for half a second.
            while quiet < 50 {
                let count = client.offer(block[...])
                sent += count
                quiet = count == 0 ? quiet + 1 : 0
                if count == 0 { try await Task.sleep(for: .milliseconds(10)) }
            }
            #expect(sent < 16 << 20)
            gate.signal()
            while sent < total {
                let count = client.offer(block.prefix(total - sent))
                try #require(count >= 0)
                sent += count
                if count == 0 { try await Task.sleep(for: .milliseconds(2)) }
            }
            let answer = try await client.answer()
            #expect(answer.text == "\(total)")
        }
    }

    @Test func sends100ContinueWhenTheBodyIsRead() async throws {
        let gate = AsyncEvent()
        try await withServer { request in
            if request.path == ["refuse"] { return HTTPServer.Response(status: 403, text: "no") }
            await gate.wait()
            return text(String(decoding: try await request.body.collect(upTo: 10), as: UTF8.self))
        } _: { server in
            let expecting = "Host: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
            let refused = try RawClient(server.port)
            try await refused.send("POST /refuse HTTP/1.1\r\n" + expecting)
            let head = try await refused.head()
            #expect(head.status == 403)
            let client = try RawClient(server.port)
            try await client.send("POST / HTTP/1.1\r\n" + expecting)
            try await Task.sleep(for: .milliseconds(100))
            #expect(client.receive()?.isEmpty == true)
            gate.signal()
            let interim = try await client.head()
            #expect(interim.status == 100)
            try await client.send("hello")
            let answer = try await client.answer()
            #expect(answer.status == 200 && answer.text == "hello")
        }
    }

    @Test func answers413ToOversizedBodies() async throws {
        let notes = Recorder<String>()
        try await withServer {
            $0.limits.bodyBytes = 100_000
            $0.note = { notes.record("\($0)") }
        } handler: { request in
            text("\(try await request.body.collect(upTo: request.path == ["small"] ? 10 : 1 << 30).count)")
        } _: { server in
            // By the length, before any of the body is sent: by the limit of the server, and by that of the handler.
            for (path, length) in [("", 100_001), ("small", 11)] {
                let client = try RawClient(server.port)
                try await client.send("POST /\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n")
                try await client.send("Expect: 100-continue\r\n\r\n")
                let answer = try await client.answer()
                #expect(answer.status == 413)
            }
            // By the bytes received: of a body that ends soon, and of one that goes on.
            for (path, chunks) in [("small", 3), ("", 10_000)] {
                let client = try RawClient(server.port)
                try await client.send("POST /\(path) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                let chunk = Array("400\r\n\(String(repeating: "x", count: 1024))\r\n".utf8)
                for _ in 0..<chunks { try await client.send(chunk) }
                try await client.send("0\r\n\r\n")
                let answer = try await client.answer()
                #expect(answer.status == 413)
            }
            let exact = try RawClient(server.port)
            try await exact.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
            try await exact.send([UInt8](repeating: 0, count: 100_000))
            let answer = try await exact.answer()
            #expect(answer.text == "100000")
            #expect(notes.all.contains { $0.contains("413") })
        }
    }

    @Test func keepsConnectionAfterShortUnreadBody() async throws {
        try await withServer {
            $0.limits.unreadBytes = 1000
        } handler: { request in
            text(request.target)
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
            try await client.send([UInt8](repeating: 0, count: 1000))
            let first = try await client.answer()
            #expect(first.text == "/1")
            let second = try await client.get("/2")
            #expect(second.text == "/2")
            try await client.send("POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
            let third = try await client.answer()
            #expect(third.text == "/3" && third.headers["connection"]?.lowercased() == "close")
            let rest = try await client.rest()
            #expect(rest.isEmpty)
        }
    }

    @Test func cancellationEndsPendingRead() async throws {
        let hasEnded = Lock(false)
        try await withServer { request in
            let read = Task { try await request.body.next() }
            try await Task.sleep(for: .milliseconds(20))
            read.cancel()
            let result = await read.result
            hasEnded.withLock { $0 = true }
            switch result {
            case .success: return text("some")
            case .failure(let error): return text("\(error)")
            }
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
            try await until("the read has ended") { hasEnded.withLock { $0 } }
            try await client.send("x")
            let answer = try await client.answer()
            #expect(answer.text == "connectionLost")
        }
    }
}
