import Formats
import HalcyonModel

/// Gives the bytes of one kind of source, and says how long they are good for.
///
/// All kinds are the same to caching, sizing, coalescing and events: providers fetch, and know of nothing else.
public protocol SourceProvider<Reference>: Sendable {
    /// What says which source is meant: a value that was checked when the job was taken.
    associatedtype Reference: Sendable

    /// Fetches the bytes.
    ///
    /// Called on the cooperative pool: blocking work belongs elsewhere. A cancelled task ends the work soon.
    /// - Parameter known: ``LoadedSource/validators`` of the bytes that the caller has; nil if it has none. A provider
    ///   that cannot tell cheaply whether they have changed ignores them.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled; any other error becomes `provider_error`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse
}

/// A provider of the host program's own. Jobs name it as a scheme, `"gallery:42"`, or with parameters,
/// `{"gallery": {"id": 42}}`.
///
/// ```swift
/// struct Gallery: CustomSourceProvider {
///     let name = "gallery"
///
///     func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
///         .loaded(LoadedSource(body: try await archive.picture(reference), lifetime: .seconds(3600)))
///     }
/// }
/// ```
public protocol CustomSourceProvider: SourceProvider where Reference == String {
    /// What jobs call it: 1 to 64 of `a` to `z`, `0` to `9`, `+`, `-` and `.`, a letter first; no scheme of Halcyon's own.
    var name: String { get }

    /// What the source is known by in keys: one line, the same for references to the same bytes and for no others. It is
    /// made of the reference alone, when the job is taken, and on any machine.
    ///
    /// - Parameter reference: what follows `name:`, or the parameters as compact JSON, its members in the order of their names.
    /// - Throws: ``Failure`` `invalid_job`, with what was expected, for a reference that names no source.
    func cacheKey(for reference: String) throws(Failure) -> String
}

extension CustomSourceProvider {
    /// The reference itself: takes any that is not empty and has no control characters.
    public func cacheKey(for reference: String) throws(Failure) -> String { reference }
}

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

/// Gives the bytes that came with the job.
struct DataProvider: SourceProvider {
    func fetch(_ source: DataSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        // The same key is the same bytes: nothing there can change.
        .loaded(LoadedSource(body: source.bytes, lifetime: .unchanging))
    }
}

extension Duration {
    /// A year: for what is always the same.
    static let unchanging = Duration.seconds(31_536_000)
}
