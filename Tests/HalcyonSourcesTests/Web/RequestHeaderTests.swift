import Concurrency
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonSources

/// Headers that a job adds to requests, as origins receive them.
@Suite(.limitedParallelism) struct RequestHeaderTests {
    private static func request(_ url: String, _ headers: [(String, String)]) throws -> SourceRequest {
        SourceRequest(
            try Source(url), headers: try RequestHeaders(headers.map { RequestHeaders.Field($0.0, $0.1) }))
    }

    /// Returns a field of a request as it was sent. The name is in lower case.
    private static func field(_ name: String, _ head: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            guard line.lowercased().hasPrefix("\(name):") else { continue }
            return String(line.dropFirst(name.count + 1).drop { $0 == " " })
        }
        return nil
    }

    private static let secrets = [
        ("Authorization", "Bearer s"), ("Cookie", "a=1; b=2"), ("X-Size", "2"), ("X-Empty", ""),
    ]

    @Test func headersReachOriginUnchanged() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", [], "picture") }
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
        } _: { loader in
            _ = try await loader.load(try Self.request(origin.url("/a"), Self.secrets + [("X-Name", "J\u{fc}")]))
            _ = try await loader.load(
                try Self.request(origin.url("/a"), [("User-Agent", "Reader/1"), ("Accept", "image/webp")]))
            _ = try await loader.load(try Source(origin.url("/a")))
        }
        let heads = origin.requests.map(\.head)
        #expect(Self.field("authorization", heads[0]) == "Bearer s" && Self.field("cookie", heads[0]) == "a=1; b=2")
        #expect(Self.field("x-size", heads[0]) == "2" && Self.field("x-empty", heads[0]) == "")
        #expect(Self.field("x-name", heads[0]) == "J\u{fc}" && Self.field("user-agent", heads[0]) == "Halcyon")
        // They replace Halcyon's own headers.
        for name in ["user-agent", "accept"] {
            #expect(heads[1].lowercased().split(separator: "\r\n").count { $0.hasPrefix("\(name):") } == 1)
        }
        #expect(Self.field("user-agent", heads[1]) == "Reader/1" && Self.field("accept", heads[1]) == "image/webp")
        #expect(Self.field("authorization", heads[2]) == nil && Self.field("cookie", heads[2]) == nil)
        try await origin.stop()
    }

    @Test func headersAuthenticateAtOrigin() async throws {
        let folder = TemporaryFolder("guarded")
        folder.write(Array("picture".utf8), to: "a.jpg")
        let nginx = try await Nginx.start(
            serving: folder.path, #"if ($http_authorization != "Bearer s") { return 401; }"#)
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
        } _: { loader in
            let url = "\(nginx.url)/a.jpg"
            #expect(try await loader.load(Self.request(url, Self.secrets)).body == Array("picture".utf8))
            #expect(try await loader.failure(of: url)?.code == .forbidden)
            // Conditional requests carry them too.
            let known = try await loader.load(Self.request(url, Self.secrets)).validators
            guard case .notModified = try await loader.fetch(Self.request(url, Self.secrets), ifNoneMatch: known) else {
                Issue.record("the unchanged source was loaded again")
                return
            }
        }
        await nginx.stop()
        await folder.remove()
    }

    @Test func redirectsKeepHeadersOnlyWithinTheOrigin() async throws {
        let other = RawOrigin { _ in RawOrigin.answer("200 OK", [], "picture") }
        let back = Lock("")
        let origin = RawOrigin { request in
            switch request.path {
            case "/near": RawOrigin.answer("302 Found", ["Location: /here"])
            case "/far": RawOrigin.answer("301 Moved", ["Location: \(other.url("/there"))"])
            case "/name": RawOrigin.answer("307 Same", ["Location: \(back.withLock { $0 })"])
            default: RawOrigin.answer("200 OK", [], "picture")
            }
        }
        // Another host is another origin, even on the same server.
        back.withLock { $0 = origin.url("/around", host: "127.0.0.2") }
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        } _: { loader in
            for path in ["/near", "/far", "/name"] {
                _ = try await loader.load(Self.request(origin.url(path), Self.secrets))
            }
        }
        let names = ["authorization", "cookie", "x-size", "x-empty"]
        func received(_ path: String) -> [Bool] {
            (origin.requests + other.requests).filter { $0.path == path }
                .flatMap { request in names.map { Self.field($0, request.head) != nil } }
        }
        let (all, none) = ([true, true, true, true], [false, false, false, false])
        #expect(received("/near") == all && received("/here") == all)
        #expect(received("/far") == all && received("/there") == none)
        #expect(received("/name") == all && received("/around") == none)
        try await origin.stop()
        try await other.stop()
    }

    /// They are sent on each hop to their origin. Headers of the job and credentials in its URL take precedence.
    @Test func configuredCredentialsGoOnlyToTheirOrigin() async throws {
        let back = Lock("")
        let other = RawOrigin { _ in RawOrigin.answer("302 Found", ["Location: \(back.withLock { $0 })"]) }
        let origin = RawOrigin { request in
            switch request.path {
            case "/start": RawOrigin.answer("302 Found", ["Location: /near"])
            case "/near": RawOrigin.answer("302 Found", ["Location: \(other.url("/far"))"])
            default: RawOrigin.answer("200 OK", [], "picture")
            }
        }
        back.withLock { $0 = origin.url("/back") }
        let text = origin.url("").replacing("://", with: "://me:p%40ss@")
        let credentials = try #require(OriginCredentials(text))
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
            $0.credentials = [credentials.origin: credentials]
        } _: { loader in
            _ = try await loader.load(try Source(origin.url("/start")))
            _ = try await loader.load(Self.request(origin.url("/own"), [("Authorization", "Bearer s")]))
            _ = try await loader.load(try Source(origin.url("/named").replacing("://", with: "://a:b@")))
        }
        func sent(_ path: String) -> [String?] {
            (origin.requests + other.requests).filter { $0.path == path }.map { Self.field("authorization", $0.head) }
        }
        for path in ["/start", "/near", "/back"] { #expect(sent(path) == ["Basic bWU6cEBzcw=="]) }
        #expect(sent("/far") == [nil] && sent("/own") == ["Bearer s"] && sent("/named") == ["Basic YTpi"])
        try await origin.stop()
        try await other.stop()
    }

    @Test(arguments: [
        "https://e.org", "https://:p@e.org", "https://u:p@e.org/a", "https://u:p@e.org/?a", "https://u:p@e.org/#a",
        "https://u%3a:p@e.org", "https://u:p%0a@e.org", "https://u:p%4@e.org", "ftp://u:p@e.org", "u:p", "",
    ])
    func rejectsMalformedOriginCredentials(text: String) {
        #expect(OriginCredentials(text) == nil)
    }

    @Test func redirectsDoNotRestoreDroppedHeaders() async throws {
        let first = Lock("")
        let other = RawOrigin { _ in RawOrigin.answer("302 Found", ["Location: \(first.withLock { $0 })"]) }
        let origin = RawOrigin { request in
            request.path == "/start"
                ? RawOrigin.answer("302 Found", ["Location: \(other.url("/"))"])
                : RawOrigin.answer("200 OK", [], "picture")
        }
        first.withLock { $0 = origin.url("/end") }
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
        } _: { loader in
            _ = try await loader.load(Self.request(origin.url("/start"), Self.secrets))
        }
        #expect(origin.requests.map(\.path) == ["/start", "/end"])
        #expect(Self.field("authorization", origin.requests[0].head) != nil)
        #expect(Self.field("authorization", origin.requests[1].head) == nil)
        try await origin.stop()
        try await other.stop()
    }

    @Test func resumedRequestsCarryHeaders() async throws {
        let origin = RawOrigin { request in
            guard Self.field("range", request.head) != nil else {
                return [
                    .text("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 8\r\n\r\nabcd"), .pause(.milliseconds(20)),
                    .close,
                ]
            }
            return [.text("HTTP/1.1 206 Partial\r\nContent-Range: bytes 4-7/8\r\nContent-Length: 4\r\n\r\nefgh")]
        }
        try await withLoader {
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
        } _: { loader in
            let loaded = try await loader.load(Self.request(origin.url("/a"), Self.secrets))
            #expect(loaded.body == Array("abcdefgh".utf8))
        }
        #expect(origin.requests.map { Self.field("authorization", $0.head) } == ["Bearer s", "Bearer s"])
        try await origin.stop()
    }

    @Test func fieldsForVaryIncludeJobHeaders() async throws {
        try await withLoader { loader in
            let fields = loader.fields(of: try Self.request("http://h/", [("accept", "image/webp"), ("x-size", "2")]))
            #expect(fields["Accept"] == "image/webp" && fields["X-Size"] == "2" && fields["User-Agent"] == "Halcyon")
            #expect(loader.fields(of: SourceRequest(try Source("http://h/")))["Accept"] == "*/*")
        }
    }
}
