import Formats

/// Header fields that a job adds to the requests for its source, each name once (RFC 9110, section 5).
///
/// Values may be secrets: they are told to the origin and to nobody else, and a text of these fields has their names alone.
public struct RequestHeaders: Hashable, Sendable, CustomStringConvertible {
    /// One of them.
    public typealias Field = HTTPFields.Field

    /// Fields at most.
    public static let mostFields = 32
    /// Bytes of all names and values together at most.
    public static let longest = 8 << 10

    /// Names in lower case, in the order of their bytes.
    public let fields: [Field]

    /// None.
    public init() { fields = [] }

    /// - Throws: ``Failure`` `invalid_job`, which names the field and never its value.
    public init(_ given: [Field]) throws(Failure) {
        guard given.count <= Self.mostFields else {
            throw Failure(.invalidJob, "\(given.count) fields, and at most \(Self.mostFields) are taken")
        }
        let bytes = given.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard bytes <= Self.longest else {
            throw Failure(.invalidJob, "\(bytes) bytes, and at most \(Self.longest) are taken")
        }
        var names: Set<String> = []
        for field in given {
            try field.checkForRequest()
            guard names.insert(field.name.lowercased()).inserted else {
                throw Failure(.invalidJob, "\(field.name): stands twice; names are the same in either case")
            }
        }
        // Tokens are ASCII, whose characters are in the order of their bytes.
        fields = given.map { Field($0.name.lowercased(), $0.value) }.sorted { $0.name < $1.name }
    }

    /// Whether there are none.
    public var isEmpty: Bool { fields.isEmpty }

    /// Those that may change what an origin answers, and so are part of keys: all but those that follow a request's way.
    public var deciding: [Field] { fields.filter { !Self.tracing.contains($0.name) } }

    /// Names alone.
    public var description: String { fields.map(\.name).joined(separator: " ") }

    /// Trace Context and Baggage of W3C, and what is common beside them.
    private static let tracing: Set = ["traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id"]
}

extension HTTPFields.Field {
    /// - Throws: ``Failure`` `invalid_job` for what no job may add to a request.
    fileprivate func checkForRequest() throws(Failure) {
        guard name.isToken else {
            throw Failure(.invalidJob, "\"\(name)\" is no name of a header field")
        }
        let lowercase = name.lowercased()
        if let reason = Self.reserved[lowercase] ?? (lowercase.hasPrefix("if-") ? Self.byCaches : nil)
            ?? (lowercase.hasPrefix("proxy-") ? Self.byConnections : nil)
        {
            throw Failure(.invalidJob, "\(name): is set by \(reason), and by no job")
        }
        guard !value.utf8.hasControlCharacter, value.utf8.first != 0x20, value.utf8.last != 0x20 else {
            throw Failure(.invalidJob, "\(name): expected a value without control characters, and no space around it")
        }
    }

    private static let byCaches = "Halcyon's caches"
    private static let byConnections = "each connection for itself"
    private static let byMessage = "the request itself"

    /// Who sets what: a job that did would cut off what follows on the connection, or have a part kept as the whole.
    private static let reserved = [
        "host": "the source's URL", "content-length": byMessage, "transfer-encoding": byMessage,
        "content-encoding": byMessage, "expect": byMessage, "trailer": byMessage,
        "connection": byConnections, "keep-alive": byConnections, "te": byConnections, "upgrade": byConnections,
        "http2-settings": byConnections, "range": "Halcyon, where a transfer broke off",
        "accept-encoding": "Halcyon, which undoes encodings",
    ]
}

extension Source {
    /// Its text as everybody may read it: with stars in place of the user and the password of a URL.
    public var shownText: String {
        switch self {
        case .web, .video, .custom: text.withoutCredentials
        case .initials, .file, .data, .s3: text
        }
    }
}

extension String {
    /// A URL with stars in place of its user and password (`https://****@example.org/`); any other text as it is. Where the end of a
    /// password is in doubt, more is hidden rather than less.
    public var withoutCredentials: String {
        let bytes = Array(utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return self
        }
        let rest = bytes[(colon + 3)...]
        let authority = rest.prefix { !"/?#\\".utf8.contains($0) }
        // What stands behind a colon and is no port is a password, whatever it goes on with.
        let port = authority.firstIndex(of: UInt8(ascii: ":")).map { authority[$0...].dropFirst() }
        let isDoubtful =
            authority.first != UInt8(ascii: "[") && port?.allSatisfy { (0x30...0x39).contains($0) } == false
        let at = authority.lastIndex(of: UInt8(ascii: "@"))
        guard let end = at ?? (isDoubtful ? rest.lastIndex(of: UInt8(ascii: "@")) : nil) else { return self }
        if end == rest.startIndex { return self }
        return String(decoding: bytes[..<rest.startIndex] + "****".utf8 + bytes[end...], as: UTF8.self)
    }
}

extension WebURL {
    /// The user and the password that it names, decoded; nil where it names none, or what cannot be decoded.
    public var userAndPassword: (user: [UInt8], password: [UInt8])? {
        guard hasUser else { return nil }
        let bytes = canonical.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).prefix { $0 != UInt8(ascii: "@") }
        let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = PercentEncoding.decode(parts[0]),
            let password = PercentEncoding.decode(parts.count > 1 ? parts[1] : bytes.suffix(0))
        else { return nil }
        return (user, password)
    }
}
