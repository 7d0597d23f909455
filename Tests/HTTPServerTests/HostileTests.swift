import Concurrency
import HTTPServer
import TestSupport
import Testing

/// Malformed and ambiguous requests, as raw bytes. Each gets its status, none is read as two requests, none blocks a
/// thread, and the server keeps serving.
@Suite(.limitedParallelism) struct HostileTests {
    /// A request smuggled in behind another, which must never reach the handler.
    private static let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

    /// Before its version 1, libmicrohttpd sends the head of its own 400 for a malformed length twice.
    private static let repeatsItsHead = HTTPServer.libraryVersion.hasPrefix("0.")

    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        /// The accepted statuses. 0 is a connection that is closed without a response.
        let statuses: Set<Int>
        /// True if the client shuts down its sending side after the bytes.
        var isHalfClosed = false
        var testDescription: String { name }

        init(_ name: String, _ text: String, _ statuses: Set<Int>, halfClosed: Bool = false) {
            self.name = name
            bytes = Array(text.utf8)
            self.statuses = statuses
            isHalfClosed = halfClosed
        }
    }

    private static func post(_ headers: String, _ body: String = smuggled) -> String {
        "POST / HTTP/1.1\r\nHost: a\r\n\(headers)\r\n\r\n\(body)"
    }

    private static let rows: [Row] = framing + chunks + heads + targets + lines

    private static let framing = [
        Row("two equal lengths", post("Content-Length: 3\r\nContent-Length: 3", "abc" + smuggled), [400]),
        Row("two lengths", post("Content-Length: 37\r\nContent-Length: 0"), [400]),
        Row("two lengths, the other way", post("Content-Length: 0\r\nContent-Length: 37"), [400]),
        Row("a list of lengths", post("Content-Length: 3, 3", "abc" + smuggled), [400]),
        Row("a length with a sign", post("Content-Length: +3", "abc" + smuggled), [400]),
        Row("a negative length", post("Content-Length: -1"), [400]),
        Row("a hexadecimal length", post("Content-Length: 0x3", "abc" + smuggled), [400]),
        Row("an empty length", post("Content-Length: "), [400]),
        Row("a length of words", post("Content-Length: three"), [400]),
        Row("a length with a blank", post("Content-Length: 1 0"), [400]),
        Row("a length past 64 bits", post("Content-Length: 99999999999999999999999"), [400, 413]),
        Row("a length of 63 bits", post("Content-Length: 9223372036854775807"), [413]),
        Row(
            "a length with chunks", post("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + smuggled),
            [400]),
        Row(
            "chunks with a length", post("Transfer-Encoding: chunked\r\nContent-Length: 37", "0\r\n\r\n" + smuggled),
            [400]),
        Row("an unknown encoding", post("Transfer-Encoding: xchunked"), [400, 501]),
        Row("identity", post("Transfer-Encoding: identity"), [400, 501]),
        Row("gzip and chunks", post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n" + smuggled), [400, 501]),
        Row("chunks twice", post("Transfer-Encoding: chunked, chunked", "0\r\n\r\n" + smuggled), [400, 501]),
        Row("two encodings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n"), [400]),
        Row("an encoding with a tab", post("Transfer-Encoding:\tchunked\u{b}", "0\r\n\r\n" + smuggled), [400, 501]),
        Row("a quoted encoding", post("Transfer-Encoding: \"chunked\"", "0\r\n\r\n" + smuggled), [400, 501]),
        Row("chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, [400]),
        Row("a blank before the colon of a length", post("Content-Length : 37"), [400]),
        Row("a tab before the colon of an encoding", post("Transfer-Encoding\t: chunked", "0\r\n\r\n"), [400]),
    ]

    private static let chunks = [
        Row("a chunk's size of words", post("Transfer-Encoding: chunked", "zz\r\n" + smuggled), [400]),
        Row("a negative chunk", post("Transfer-Encoding: chunked", "-1\r\n" + smuggled), [400]),
        Row("a chunk's size with 0x", post("Transfer-Encoding: chunked", "0x3\r\nabc\r\n0\r\n\r\n"), [400]),
        Row("a chunk's size past 64 bits", post("Transfer-Encoding: chunked", "fffffffffffffffff\r\n"), [400, 413]),
        Row("a chunk longer than declared", post("Transfer-Encoding: chunked", "3\r\nabcdef\r\n0\r\n\r\n"), [400]),
        Row("a trailer without a colon", post("Transfer-Encoding: chunked", "0\r\nnone\r\n\r\n"), [200, 400]),
    ]

    private static let heads = [
        Row("no Host", "GET / HTTP/1.1\r\n\r\n", [400]),
        Row("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [400]),
        Row("two equal Hosts", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", [400]),
        Row("a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", [400]),
        Row("a list of Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", [400]),
        Row("a blank before a colon", "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", [400]),
        Row("a header without a name", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", [400]),
        Row("a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nnone\r\n\r\n", [400]),
        Row("a header's name in brackets", "GET / HTTP/1.1\r\nHost: a\r\n(X): y\r\n\r\n", [400]),
        Row("a control character in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\u{1}b\r\n\r\n", [400]),
        Row("a bare carriage return in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n", [400]),
        Row("a blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", [400]),
        Row(
            "an unknown expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nContent-Length: 1\r\n\r\n",
            [417]),
        Row(
            "giant headers", "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 100_000))\r\n\r\n", [431]),
        Row("a giant target", "GET /\(String(repeating: "x", count: 100_000)) HTTP/1.1\r\nHost: a\r\n\r\n", [414]),
        Row("an unknown method", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", [501]),
        Row("a method in lower case", "get / HTTP/1.1\r\nHost: a\r\n\r\n", [501]),
        Row("an invalid method", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a tunnel", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", [501]),
        Row("HTTP/0.9", "GET /\r\n\r\n", [400]),
        Row("HTTP/2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", [505]),
        Row("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505]),
        Row("no version at all", "GET / FTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a version in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("one word", "HELLO\r\n\r\n", [0, 400]),
        Row("the beginning of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\n\r\n", [0, 400]),
    ]

    private static let targets = [
        Row("an invalid escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("an escape that ends early", "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a zero in the path", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("escapes that are not UTF-8", "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("an escape in the query", "GET /?a=%g1 HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("bytes past ASCII in the target", "GET /ä HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a fragment", "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a host for a target", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a star", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("a target without a host", "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        Row("another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
    ]

    private static let lines = [
        Row("a folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", [400]),
        Row("a folded header with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tTransfer-Encoding: b\r\n\r\n", [400]),
        Row("a folded last header", "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n", [400]),
        Row("bare line feeds", "GET / HTTP/1.1\nHost: a\n\n", [400]),
        Row("a bare line feed behind the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", [400]),
        Row("a bare line feed behind a header", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", [400]),
        Row("a bare line feed at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n" + smuggled, [400]),
        Row("a zero in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", [400]),
        Row("a zero at a header's end", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0\r\n\r\n", [400]),
        Row("zeros that look like lines", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0\0Y\0b\r\n\r\n", [400]),
        Row("zeros that look like the end", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0\0\0\0" + smuggled, [400]),
        Row("a zero in a header's name", "GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n", [400]),
        Row("a zero in the version", "GET / HTTP/1.1\0\r\nHost: a\r\n\r\n", [0, 400]),
        Row("a zero in the target", "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", [0, 400]),
        Row("two blanks in the request line", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", [0, 400]),
        Row("a blank behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", [0, 400]),
        Row("a zero in the method", "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n", [0, 400, 501]),
        Row("a nameless line before a length", post(": y\r\nContent-Length: 37"), [400]),
        Row("a nameless line before a request", "GET / HTTP/1.1\r\nHost: a\r\n:\r\n" + smuggled, [400]),
    ]

    /// libmicrohttpd 0.9.75 does not always detect the end of a connection. The time limit ends the request then.
    private static let ends = [
        Row("half a head, half closed", "GET / HTTP/1.1\r\nHos", [0, 408], halfClosed: true),
        Row("half a body, half closed", post("Content-Length: 10", "abc"), [0, 408], halfClosed: true),
        Row("half a chunk, half closed", post("Transfer-Encoding: chunked", "5\r\nab"), [0, 408], halfClosed: true),
        Row("half a head, left open", "GET / HTTP/1.1\r\nHos", [408]),
        Row("half a body, left open", post("Content-Length: 10", "abc"), [408]),
        Row("half a chunk, left open", post("Transfer-Encoding: chunked", "5\r\nab"), [408]),
        Row("no end of the chunks", post("Transfer-Encoding: chunked", "1\r\na\r\n"), [408]),
        Row("nothing, half closed", "", [0], halfClosed: true),
    ]

    @Test func rejectsEachAndKeepsServing() async throws {
        #expect(Self.rows.count >= 40)
        try await Self.expectRejection(of: Self.rows)
    }

    @Test func endsIncompleteRequestsAndKeepsServing() async throws {
        try await Self.expectRejection(of: Self.ends) {
            // Handlers read the bodies within that time on any machine.
            $0.limits.headTime = .seconds(12)
            $0.limits.requestTime = .seconds(12)
        }
    }

    private static func expectRejection(
        of rows: [Row], _ change: (inout HTTPServer.Settings) -> Void = { _ in }
    ) async throws {
        let seen = Recorder<String>()
        try await withServer(change) { request in
            seen.record(request.target)
            _ = try await request.body.collect(upTo: 1000)
            return text("served")
        } _: { server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for row in rows {
                    group.addTask {
                        let client = try RawClient(server.port)
                        try await client.send(row.bytes)
                        if row.isHalfClosed { client.closeWriting() }
                        let answer = try? await client.answer()
                        #expect(row.statuses.contains(answer?.status ?? 0), "\(row.name): \(answer?.status ?? 0)")
                        if answer?.status == 200 { return }
                        // The connection is closed after exactly one response.
                        let rest = try await client.rest()
                        if Self.repeatsItsHead && String(decoding: rest, as: UTF8.self).contains("Content-Length</b>") {
                            return
                        }
                        #expect(rest.isEmpty, "\(row.name): \(String(decoding: rest, as: UTF8.self))")
                    }
                }
                try await group.waitForAll()
            }
            #expect(!seen.all.contains("/smuggled"))
            let answer = try await RawClient(server.port).get("/after")
            #expect(answer.text == "served")
            try await until("no connection is left") { server.connections == 0 }
        }
    }

    /// Unusual but valid requests.
    @Test(arguments: [
        ("GET http://b:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "b:80 x"),
        ("GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "b "),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "a "),
        ("\r\nGET /x HTTP/1.1\r\nHost:a\r\n\r\n", "a x"),
        ("GET /x HTTP/1.0\r\n\r\n", " x"),
        ("GET //a/..//b HTTP/1.1\r\nHost: \r\n\r\n", " |a|..||b"),
        ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0003\r\n\r\nabc", "a x"),
        ("POST /x HTTP/1.1\r\nHost: a\r\ntransfer-encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "a x"),
        ("GET /x HTTP/1.1\r\nHost: [::1]:80\r\nX: \u{e9}\r\n\r\n", "[::1]:80 x"),
    ])
    func acceptsUnusualValidRequests(bytes: String, seen: String) async throws {
        try await withServer { request in
            text("\(request.host) \(request.path.joined(separator: "|"))")
        } _: { server in
            let client = try RawClient(server.port)
            try await client.send(bytes)
            let answer = try await client.answer()
            #expect(answer.status == 200 && answer.text == seen)
        }
    }

    /// A chunked request that is sent byte by byte.
    @Test func readsRequestByteByByte() async throws {
        try await withServer { request in
            text("\(request.target) \(try await request.body.collect(upTo: 100).count)")
        } _: { server in
            let client = try RawClient(server.port)
            let bytes = "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            for byte in bytes.utf8 {
                try await client.send([byte])
                await Task.yield()
            }
            let answer = try await client.answer()
            #expect(answer.text == "/1 3")
        }
    }
}
