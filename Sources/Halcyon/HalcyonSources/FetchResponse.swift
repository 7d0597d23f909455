import CivilTime
import HTTPFields
import HalcyonModel

/// A source's bytes and what its origin said of them.
public struct LoadedSource: Sendable {
    /// The bytes, decoded from whatever they were transferred in.
    public var body: [UInt8]
    /// What the origin said of them as HTTP header fields: freshness and validators follow from these.
    public var headers: HTTPFields
    /// The response's status, where there was one.
    public var status: Int?
    /// When the last byte had come, in seconds since 1970.
    public var completedAt: Double

    /// Takes the values as they are.
    public init(body: [UInt8], headers: HTTPFields = [:], status: Int? = nil, completedAt: Double) {
        self.body = body
        self.headers = headers
        self.status = status
        self.completedAt = completedAt
    }

    /// Bytes that have just come.
    /// - Parameters:
    ///   - lifetime: how long they are fresh; nil for what is configured.
    ///   - validators: what they can be told from others by, later.
    public init(body: [UInt8], lifetime: Duration? = nil, validators: Validators = Validators()) {
        var headers = HTTPFields()
        headers["Cache-Control"] = lifetime.map { "max-age=\(max(0, $0.components.seconds))" }
        headers["ETag"] = validators.etag
        headers["Last-Modified"] = validators.lastModified
        self.init(body: body, headers: headers, completedAt: Timestamp.now.seconds)
    }

    /// What these bytes can be told from others by, later.
    public var validators: Validators { Validators(of: headers) }
}

/// The response of a provider.
public enum FetchResponse: Sendable {
    /// The bytes.
    case loaded(LoadedSource)
    /// The bytes that the caller has are still those of the source.
    case notModified(Confirmation)

    /// The bytes of a fetch without validators.
    /// - Throws: ``Failure`` `internal` for ``notModified(_:)``, which answers no request without validators.
    public func loaded() throws(Failure) -> LoadedSource {
        guard case .loaded(let loaded) = self else {
            throw Failure(.internal, "a provider said that nothing has changed, and it was not asked")
        }
        return loaded
    }

    /// The origin's confirmation of known bytes.
    public struct Confirmation: Sendable {
        /// Header fields: those of freshness replace the known ones (RFC 9111, section 4.3.4).
        public var headers: HTTPFields
        /// The time at which the origin confirmed them, in seconds since 1970.
        public var completedAt: Double

        /// Takes the values as they are.
        public init(headers: HTTPFields = [:], completedAt: Double = Timestamp.now.seconds) {
            self.headers = headers
            self.completedAt = completedAt
        }
    }
}
