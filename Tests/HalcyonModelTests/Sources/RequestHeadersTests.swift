import HalcyonModel
import Testing

@Suite struct RequestHeadersTests {
    private static func headers(_ pairs: (String, String)...) throws(JobError) -> RequestHeaders {
        try RequestHeaders(pairs.map { RequestHeaders.Field($0.0, $0.1) })
    }

    @Test func equalityIgnoresOrderAndCaseOfNames() throws {
        let one = try Self.headers(("X-B", "1"), ("Accept", "image/*"))
        let other = try Self.headers(("accept", "image/*"), ("x-b", "1"))
        #expect(one == other && one.hashValue == other.hashValue)
        #expect(one.fields.map(\.name) == ["accept", "x-b"])
        #expect(try one != Self.headers(("accept", "image/*"), ("x-b", "2")))
        // Canonically equivalent, but different bytes.
        #expect(try Self.headers(("a", "\u{e9}")) != Self.headers(("a", "e\u{301}")))
    }

    @Test func tracingHeadersAreNotDeciding() throws {
        let headers = try Self.headers(
            ("TraceParent", "00"), ("tracestate", "a"), ("Baggage", "b"), ("X-Request-Id", "1"),
            ("X-Correlation-ID", "2"), ("X-Size", "3"))
        #expect(headers.fields.count == 6)
        #expect(headers.deciding.map(\.name) == ["x-size"])
    }

    @Test func canonicalTextHasALinePerHeader() throws {
        let source = try Source("http://h/")
        let headers = try Self.headers(("B", "x=y"), ("traceparent", "00"), ("A", ""))
        #expect(
            SourceRequest(source, headers: headers).canonicalText
                == "halcyon-source/1\nheader: a=\nheader: b=x=y\nurl:http://h/\n")
        #expect(
            SourceRequest(source, tenant: "t", headers: headers).canonicalText
                == "halcyon-source/1\ntenant:t\nheader: a=\nheader: b=x=y\nurl:http://h/\n")
    }

    @Test(arguments: [
        ("Host", "the source's URL"), ("content-LENGTH", "the request itself"), ("Transfer-Encoding", "the request"),
        ("Connection", "each connection"), ("Keep-Alive", "each connection"), ("TE", "each connection"),
        ("Proxy-Authorization", "each connection"), ("Range", "Halcyon to resume"),
        ("If-None-Match", "Halcyon's caches"),
        ("if-anything", "Halcyon's caches"), ("Accept-Encoding", "Halcyon, which decodes"),
    ])
    func rejectsReservedNames(name: String, owner: String) throws {
        let failure = try #require(throws: JobError.self) { try Self.headers(("Accept", "a"), (name, "secret")) }
        #expect(failure.code == .invalidJob && failure.message.hasPrefix("\(name): is set by \(owner)"))
    }

    @Test(arguments: ["a\r\nHost: b", "a\n", "\u{0}", "a\tb", "\u{7f}", " a", "a "])
    func rejectsInvalidValues(value: String) throws {
        let failure = try #require(throws: JobError.self) { try Self.headers(("X", value)) }
        #expect(failure.code == .invalidJob && failure.message.hasPrefix("X: expected a value without control"))
    }

    @Test(arguments: ["", "a b", "a:", "\u{e9}", "a\n", "(a)"])
    func rejectsInvalidNames(name: String) throws {
        let failure = try #require(throws: JobError.self) { try Self.headers((name, "1")) }
        #expect(failure.message == "\"\(name)\" is not a valid header name")
    }

    @Test func rejectsDuplicateNames() throws {
        let failure = try #require(throws: JobError.self) { try Self.headers(("A", "1"), ("a", "1")) }
        #expect(failure.message.hasPrefix("a: duplicate field"))
    }

    @Test func limitsCountAndSize() throws {
        func fields(_ count: Int, bytes: Int) -> [RequestHeaders.Field] {
            (0..<count).map { .init("n\(10 + $0)", String(repeating: "v", count: bytes / count - 3)) }
        }
        #expect(try RequestHeaders(fields(32, bytes: 8192)).fields.count == 32)
        let many = try #require(throws: JobError.self) { try RequestHeaders(fields(33, bytes: 330)) }
        #expect(many.message == "33 fields, and at most 32 are allowed")
        let much = try #require(throws: JobError.self) { try RequestHeaders(fields(1, bytes: 8193)) }
        #expect(much.message == "8193 bytes, and at most 8192 are allowed")
    }

    @Test func descriptionsContainNoValues() throws {
        let headers = try Self.headers(("Authorization", "Bearer secret"), ("X", "secret"))
        #expect("\(headers)" == "authorization x")
        #expect(!"\(SourceRequest(try Source("http://h/"), headers: headers))".contains("secret"))
    }
}
