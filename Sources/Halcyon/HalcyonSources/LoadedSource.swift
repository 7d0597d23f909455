import CivilTime

/// A source's bytes and what its origin said of them.
public struct LoadedSource: Sendable {
    /// The bytes, decoded from whatever they were transferred in.
    public var body: [UInt8]
    /// What the origin said of them as HTTP header fields: freshness follows from these.
    public var headers: [(name: String, value: String)]
    /// The response's status, where there was one.
    public var status: Int?
    /// What these bytes can be told from others by, later.
    public var validators: Validators
    /// When the last byte had come, in seconds since 1970.
    public var completedAt: Double

    /// Takes the values as they are.
    public init(
        body: [UInt8], headers: [(name: String, value: String)] = [], status: Int? = nil,
        validators: Validators = Validators(), completedAt: Double
    ) {
        self.body = body
        self.headers = headers
        self.status = status
        self.validators = validators
        self.completedAt = completedAt
    }

    /// Bytes that have just come.
    /// - Parameter lifetime: how long they are fresh; nil for what is configured.
    public init(body: [UInt8], lifetime: Duration? = nil, validators: Validators = Validators()) {
        self.init(
            body: body, headers: lifetime.map { [Self.freshness($0)] } ?? [], validators: validators,
            completedAt: Timestamp.now.seconds)
    }

    /// As an origin would say it.
    private static func freshness(_ lifetime: Duration) -> (name: String, value: String) {
        ("Cache-Control", "max-age=\(max(0, lifetime.components.seconds))")
    }
}

/// What an origin calls the bytes that it gave (RFC 9110, section 8.8): to ask later whether they have changed.
public struct Validators: Hashable, Sendable {
    /// The entity tag, with its quotes.
    public var etag: String?
    /// The date of the last change, as it was sent.
    public var lastModified: String?

    /// Nothing, unless more is given.
    public init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
    }
}

/// What comes of a load by somebody who has bytes already.
public enum SourceAnswer: Sendable {
    /// Others, or the same again.
    case loaded(LoadedSource)
    /// The known ones are still those of the source.
    case notModified(Confirmation)

    /// What the origin said when it confirmed known bytes.
    public struct Confirmation: Sendable {
        /// Header fields: those of freshness stand in place of the known ones (RFC 9111, section 4.3.4).
        public var headers: [(name: String, value: String)]
        /// When it was said, in seconds since 1970.
        public var completedAt: Double

        /// Takes the values as they are.
        public init(headers: [(name: String, value: String)] = [], completedAt: Double) {
            self.headers = headers
            self.completedAt = completedAt
        }
    }
}
