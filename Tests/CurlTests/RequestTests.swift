import Curl
import Formats
import TestSupport
import Testing

/// Requests and responses in the absence of faults.
@Suite(.limitedParallelism) struct RequestTests {
    @Test func returnsStatusHeadersBodyAndAddresses() async throws {
        try await withOrigin { _ in
            RawOrigin.answer(
                "404 Not Found", ["Set-Cookie: a=1", "set-cookie:b=2  ", "X-Folded: one", "  two"], "gone")
        } _: { origin, client in
            let response = try await client.execute(.patient(origin.url("/a?b")))
            #expect(response.status == 404)
            #expect(text(response.body) == "gone")
            #expect(response.headers["content-LENGTH"] == "4")
            #expect(response.headers.all("SET-COOKIE") == ["a=1", "b=2"])
            #expect(response.headers["x-folded"] == "one two")
            #expect(response.headers["absent"] == nil)
            #expect(response.effectiveURL == origin.url("/a?b"))
            #expect(response.remoteAddress == SocketAddress("127.0.0.1", port: origin.port))
            #expect(response.timings.total >= response.timings.firstByte && response.timings.connect > .zero)
        }
    }

    @Test func sendsOnlyHostAcceptAndGivenHeaders() async throws {
        try await withOrigin { _ in
            RawOrigin.answer()
        } _: { origin, client in
            var request = HTTPRequest(.get, origin.url("/"), headers: ["X-One": "1; 2", "Empty": ""])
            request.acceptsCompression = false
            _ = try await client.execute(request)
            let lines = origin.requests[0].head.split(separator: "\r\n")
            #expect(
                lines == ["GET / HTTP/1.1", "Host: 127.0.0.1:\(origin.port)", "Accept: */*", "X-One: 1; 2", "Empty:"])
        }
    }

    @Test(arguments: [HTTPRequest.Method.post, .put])
    func sendsBodies(method: HTTPRequest.Method) async throws {
        try await withOrigin { _ in
            RawOrigin.answer()
        } _: { origin, client in
            let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            _ = try await client.execute(HTTPRequest(method, origin.url("/"), body: body))
            _ = try await client.execute(HTTPRequest(method, origin.url("/")))
            #expect(origin.requests.map(\.body) == [body, []])
            #expect(origin.requests[0].head.hasPrefix("\(method.rawValue) / "))
            #expect(!origin.requests[0].head.lowercased().contains("content-type"))
        }
    }

    @Test func headResponseHasNoBodyDespiteItsLength() async throws {
        try await withOrigin { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")]
        } _: { origin, client in
            let response = try await client.execute(HTTPRequest(.head, origin.url("/")))
            #expect(response.body.isEmpty && response.headers["Content-Length"] == "99999999999")
        }
    }

    @Test(arguments: [
        ("", CurlError.Code.badURL), ("example.org/x", .badURL), ("http:example.org", .badURL), ("http://", .badURL),
        ("http://a b/", .badURL), ("http://a/\u{0}", .badURL), ("http://a/\r\nX: y", .badURL),
        ("http://[::1/", .badURL),
        ("file:///etc/passwd", .unsupportedScheme), ("ftp://127.0.0.1/", .unsupportedScheme),
        ("gopher://127.0.0.1/", .unsupportedScheme),
    ])
    func rejectsMalformedAndUnsupportedURLs(url: String, code: CurlError.Code) async {
        let client = CurlClient()
        await expectFailure(code) { try await client.execute(.patient(url)) }
        await client.close()
    }

    @Test(arguments: [
        HTTPFields.Field("X", "a\r\nY: b"), .init("X", "a\nb"), .init("X", "\u{0}"), .init("", "a"), .init("X Y", "a"),
        .init("X:", "a"), .init("X\r\nY", "a"), .init("Content-Length", "5"), .init("transfer-encoding", "chunked"),
    ])
    func rejectsMalformedAndReservedHeaders(field: HTTPFields.Field) async throws {
        try await withOrigin { _ in
            RawOrigin.answer()
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.headers.add(field.name, field.value)
            await expectFailure(.badRequest) { try await client.execute(request) }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func reusesConnections() async throws {
        try await withOrigin { _ in
            RawOrigin.answer("200 OK", [], "x")
        } _: { origin, client in
            for _ in 0..<50 { _ = try await client.execute(.patient(origin.url("/"))) }
            #expect(origin.connections == 1)
            #expect(origin.requests.count == 50)
        }
    }

    @Test func returnsOnlyTheLastResponse() async throws {
        try await withOrigin { request in
            request.path == "/"
                ? [.text("HTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\n\r\n")]
                    + RawOrigin.answer("302 Found", ["Location: b", "X-First: 1"])
                : [
                    .text(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Last: 1\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"
                    )
                ]
        } _: { origin, client in
            let response = try await client.execute(.patient(origin.url("/")))
            #expect(response.status == 200 && text(response.body) == "abc")
            #expect(response.headers.fields.map(\.name) == ["Transfer-Encoding", "X-Last"])
            #expect(response.effectiveURL == origin.url("/b"))
        }
    }

    @Test func reportsProgress() async throws {
        let (seen, expected) = (NumberRecorder(), NumberRecorder())
        try await withOrigin { request in
            request.path == "/"
                ? [.text("HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"), .zeros(500_000)]
                : [.text("HTTP/1.1 203 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")]
        } _: { origin, client in
            _ = try await client.execute(.patient(origin.url("/"))) {
                seen.record($0.received)
                expected.record($0.status == 200 ? $0.expected ?? 0 : 0)
            }
            #expect(seen.all.last == 500_000 && seen.all == seen.all.sorted() && seen.all.count > 1)
            #expect(Set(expected.all) == [500_000])
            _ = try await client.execute(.patient(origin.url("/unknown"))) {
                #expect($0 == HTTPProgress(status: 203, received: 3, expected: nil))
            }
        }
    }
}
