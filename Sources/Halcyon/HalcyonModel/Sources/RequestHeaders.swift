import Formats

/// Header fields that a job adds to requests for its source, with unique names (RFC 9110, section 5).
///
/// Values may be secrets. They are sent only to the origin, and ``description`` contains only the names.
public struct RequestHeaders: Hashable, Sendable, CustomStringConvertible {
    /// A header field.
    public typealias Field = HTTPFields.Field

    /// The maximum number of fields.
    public static let mostFields = 32
    /// The maximum size of all names and values together, in bytes.
    public static let longest = 8 << 10

    /// The fields, with lower-case names, sorted by name.
    public let fields: [Field]

    /// Creates an empty set of fields.
    public init() { fields = [] }

    /// Validates and normalizes header fields.
    /// - Throws: ``JobError`` `invalid_job`, which names the field but never its value.
    public init(_ given: [Field]) throws(JobError) {
        guard given.count <= Self.mostFields else {
            throw JobError(.invalidJob, "\(given.count) fields, and at most \(Self.mostFields) are allowed")
        }
        let bytes = given.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard bytes <= Self.longest else {
            throw JobError(.invalidJob, "\(bytes) bytes, and at most \(Self.longest) are allowed")
        }
        var names: Set<String> = []
        for field in given {
            try field.checkForRequest()
            guard names.insert(field.name.lowercased()).inserted else {
                throw JobError(.invalidJob, "\(field.name): duplicate field; header names are case-insensitive")
            }
        }
        // Names are ASCII tokens, so string order equals byte order.
        fields = given.map { Field($0.name.lowercased(), $0.value) }.sorted { $0.name < $1.name }
    }

    /// True if there are no fields.
    public var isEmpty: Bool { fields.isEmpty }

    /// The fields that may change the origin's response and are therefore part of cache keys: all except tracing
    /// fields.
    public var deciding: [Field] { fields.filter { !Self.tracing.contains($0.name) } }

    /// The names of the fields, without values.
    public var description: String { fields.map(\.name).joined(separator: " ") }

    /// The fields of W3C Trace Context and Baggage, and common correlation ids.
    private static let tracing: Set = ["traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id"]
}

extension HTTPFields.Field {
    /// Checks that a job may add this field to a request.
    /// - Throws: ``JobError`` `invalid_job` if the name is reserved or the field is malformed.
    fileprivate func checkForRequest() throws(JobError) {
        guard name.isToken else {
            throw JobError(.invalidJob, "\"\(name)\" is not a valid header name")
        }
        let lowercase = name.lowercased()
        if let reason = Self.reserved[lowercase] ?? (lowercase.hasPrefix("if-") ? Self.byCaches : nil)
            ?? (lowercase.hasPrefix("proxy-") ? Self.byConnections : nil)
        {
            throw JobError(.invalidJob, "\(name): is set by \(reason) and cannot be set by a job")
        }
        guard !value.utf8.hasControlCharacter, value.utf8.first != 0x20, value.utf8.last != 0x20 else {
            throw JobError(
                .invalidJob, "\(name): expected a value without control characters or surrounding spaces")
        }
    }

    private static let byCaches = "Halcyon's caches"
    private static let byConnections = "each connection"
    private static let byMessage = "the request itself"

    /// Reserved names and the component that sets each. A job that set them could corrupt the connection, or cause a
    /// partial response to be cached as the whole.
    private static let reserved = [
        "host": "the source's URL", "content-length": byMessage, "transfer-encoding": byMessage,
        "content-encoding": byMessage, "expect": byMessage, "trailer": byMessage,
        "connection": byConnections, "keep-alive": byConnections, "te": byConnections, "upgrade": byConnections,
        "http2-settings": byConnections, "range": "Halcyon to resume transfers",
        "accept-encoding": "Halcyon, which decodes responses",
    ]
}

extension Source {
    /// The text for logs and events, with the user and password of a URL masked.
    public var shownText: String {
        switch self {
        case .web, .video, .custom: text.withoutCredentials
        case .initials, .file, .data, .s3: text
        }
    }
}

extension String {
    /// The URL with its user and password masked (`https://****@example.org/`); any other text unchanged. If the end of
    /// a password is ambiguous, more is masked rather than less.
    public var withoutCredentials: String {
        let bytes = Array(utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return self
        }
        let rest = bytes[(colon + 3)...]
        let authority = rest.prefix { !"/?#\\".utf8.contains($0) }
        // Text after a colon that is not a port number is a password, up to the last @.
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
    /// The decoded user and password; nil if the URL has none or they cannot be decoded.
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
