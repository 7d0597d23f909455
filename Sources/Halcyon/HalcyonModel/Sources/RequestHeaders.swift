import HTTPFields

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
