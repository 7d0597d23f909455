import Glibc
import HTTPServer
import TestSupport
import Testing

/// The requests that handlers receive, and the responses that they return.
@Suite(.limitedParallelism) struct RequestTests {
    @Test func exposesAllPartsOfTheRequest() async throws {
        let seen = Recorder<HTTPServer.Request>()
        try await withServer { request in
            seen.record(request)
            return text("seen")
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send(
                "GET /a%20b/%C3%A4/?q=1+2&flag&x=%26&q=3 HTTP/1.1\r\nhOST: example.org:80\r\nX-A: 1\r\nx-a:2 \r\n\r\n")
            let answer = try await client.answer()
            #expect(answer.status == 200 && answer.text == "seen")
            #expect(answer.headers["date"] != nil && answer.headers["server"] == nil)
            #expect(answer.headers["content-length"] == "4")
        }
        let request = try #require(seen.all.first)
        #expect(request.method == "GET" && request.host == "example.org:80" && request.remoteAddress == "127.0.0.1")
        #expect(request.target == "/a%20b/%C3%A4/?q=1+2&flag&x=%26&q=3")
        #expect(request.path == ["a b", "ä", ""])
        #expect(request.query.map { "\($0.name)=\($0.value)" } == ["q=1 2", "flag=", "x=&", "q=3"])
        #expect(request.value(of: "q") == "1 2" && request.value(of: "Q") == nil)
        #expect(request.headers.all("X-a") == ["1", "2"] && request.headers["x-b"] == nil)
        #expect(request.body.length == 0)
    }

    @Test func answersPipelinedRequestsInOrder() async throws {
        try await withServer { request in
            // The first takes longest and is still answered first.
            if request.path == ["0"] { try await Task.sleep(for: .milliseconds(50)) }
            return text(request.target)
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send((0..<20).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
            for number in 0..<20 {
                let answer = try await client.answer()
                #expect(answer.text == "/\(number)")
            }
            #expect(server.connections == 1)
        }
    }

    @Test func startsHandlersOnServerThread() async throws {
        try await withServer { _ in
            var name = [UInt8](repeating: 0, count: 16)
            guard let file = fopen("/proc/thread-self/comm", "r") else { return text("there is no /proc") }
            let count = fread(&name, 1, name.count, file)
            fclose(file)
            return text(String(decoding: name.prefix(count), as: UTF8.self))
        } _: { server in
            let answer = try await RawClient(server.port).get("/")
            #expect(answer.text.hasPrefix("MHD"))
        }
    }

    @Test func answersHeadWithTheSameHeaders() async throws {
        let ran = Recorder<String>()
        try await withServer { request in
            switch request.path {
            case ["bytes"]: HTTPServer.Response(status: 200, body: .bytes([UInt8](repeating: 1, count: 100_000)))
            case ["stream"]: HTTPServer.Response(status: 200, body: .stream(length: 7) { _ in ran.record("stream") })
            default: HTTPServer.Response(status: 200, body: .stream(length: nil) { _ in ran.record("stream") })
            }
        } _: { server in
            let client = try RawClient(server.port)
            for (path, length) in [("bytes", "100000"), ("stream", "7"), ("chunked", nil)] {
                try await client.send("HEAD /\(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = try await client.answer(toHead: true)
                #expect(answer.status == 200 && answer.headers["content-length"] == length)
            }
            #expect(ran.count == 0)
        }
    }

    @Test func answersHeadOfStreamWithoutBody() async throws {
        try await withServer { _ in
            HTTPServer.Response(status: 200, body: .stream(length: nil) { try await $0.write([1]) })
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let text = String(decoding: try await client.rest(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.hasSuffix("\r\n\r\n"))
            #expect(text.split(separator: "\r\n\r\n", omittingEmptySubsequences: false).count == 2)
        }
    }

    @Test func sendsNoBodyWith204And304() async throws {
        try await withServer { request in
            HTTPServer.Response(status: Int(request.path[0]) ?? 0, headers: ["ETag": "\"a\""], body: .bytes([1, 2]))
        } _: { server in
            let client = try RawClient(server.port)
            for status in [204, 304] {
                let answer = try await client.get("/\(status)")
                #expect(answer.status == status && answer.headers["etag"] == "\"a\"")
            }
            let answer = try await client.get("/404")
            #expect(answer.status == 404 && answer.body == [1, 2])
        }
    }

    @Test func hidesHandlerErrorsFromClients() async throws {
        struct Secret: Error {}
        let notes = Recorder<String>()
        try await withServer {
            $0.note = { notes.record("\($0)") }
        } handler: { request in
            if request.path == ["header"] { return HTTPServer.Response(status: 200, headers: ["X": "a\r\nY: b"]) }
            if request.path == ["length"] { return HTTPServer.Response(status: 200, headers: ["Content-Length": "9"]) }
            if request.path == ["status"] { return HTTPServer.Response(status: 101) }
            throw Secret()
        } _: { server in
            let client = try RawClient(server.port)
            for target in ["/throw", "/header", "/length", "/status"] {
                let answer = try await client.get(target)
                #expect(answer.status == 500 && answer.text == "Internal server error.\n")
                #expect(answer.headers["y"] == nil)
            }
            #expect(notes.count == 4 && notes.all[0].contains("Secret"))
        }
    }

    @Test func usesCustomRefusalResponses() async throws {
        try await withServer {
            $0.refusal = {
                HTTPServer.Response(
                    status: $0.status, headers: ["Content-Type": "application/problem+json"],
                    body: .bytes(Array("{\"title\":\"\($0.reason)\"}".utf8)))
            }
        } handler: { _ in
            text("unreached")
        } _: { server in
            let client = try RawClient(server.port)
            let answer = try await client.get("/%zz")
            #expect(answer.status == 400 && answer.headers["connection"]?.lowercased() == "close")
            #expect(answer.text == "{\"title\":\"Malformed percent-encoding in the request target.\"}")
            let rest = try await client.rest()
            #expect(rest.isEmpty)
        }
    }

    @Test func closesConnectionIfResponseSaysSo() async throws {
        try await withServer { _ in
            var response = text("bye")
            response.closesConnection = true
            return response
        } _: { server in
            let client = try RawClient(server.port)
            let answer = try await client.get("/")
            #expect(answer.text == "bye" && answer.headers["connection"]?.lowercased() == "close")
            let rest = try await client.rest()
            #expect(rest.isEmpty)
        }
    }

    @Test(arguments: [1, 3]) func servesOnAnyNumberOfThreads(threads: Int) async throws {
        let notes = Recorder<String>()
        try await withServer {
            $0.threads = threads
            $0.note = { notes.record("\($0)") }
        } handler: { request in
            await Task.yield()
            return text(request.target)
        } _: { server in
            for number in 0..<20 {
                let answer = try await RawClient(server.port).get("/\(number)")
                #expect(answer.text == "/\(number)")
            }
        }
        #expect(notes.count == 0, "\(notes.all)")
    }

    @Test func reportsListenFailures() async throws {
        try await withServer { _ in
            text("")
        } _: { server in
            let taken = #expect(throws: HTTPServerError.self) {
                try HTTPServer.start(on: "127.0.0.1", port: server.port) { _ in text("") }
            }
            #expect(taken?.description.contains("Address already in use") == true && taken?.isAddressInUse == true)
        }
        let unknown = #expect(throws: HTTPServerError.self) { try HTTPServer.start(on: "nowhere") { _ in text("") } }
        #expect(unknown?.isAddressInUse == false)
    }
}
