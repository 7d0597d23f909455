import Formats
import HalcyonModel

/// A provider of one kind of source. It returns the bytes and their freshness.
///
/// Caching, sizing, coalescing and events treat all kinds of sources alike. Providers only fetch.
public protocol SourceProvider<Reference>: Sendable {
    /// The reference that identifies a source. It is validated when the job is accepted.
    associatedtype Reference: Sendable

    /// Fetches the bytes.
    ///
    /// Called on the cooperative pool, so it must not block. When the task is cancelled, it must stop promptly.
    /// - Parameter known: The ``LoadedSource/validators`` of the bytes that the caller has; nil if it has none. A
    ///   provider that cannot cheaply check for changes ignores them.
    /// - Throws: ``JobError``; `CancellationError` when the task is cancelled; any other error, and a
    ///   `CancellationError` of other origin, becomes `provider_error`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse
}

/// A provider that the host program implements. Jobs refer to it by a scheme, `"gallery:42"`, or with parameters,
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
    /// The name that jobs use: 1 to 64 characters of `a` to `z`, `0` to `9`, `+`, `-` and `.`, starting with a letter.
    /// It must not be one of Halcyon's built-in schemes.
    var name: String { get }

    /// Returns the string that identifies the source in cache keys.
    ///
    /// It is a single line. References to the same bytes have the same string, and references to different bytes have
    /// different strings. It is derived from the reference alone when the job is accepted, and is the same on any
    /// machine.
    ///
    /// - Parameter reference: The text after `name:`, or the parameters as compact JSON with members sorted by name.
    /// - Throws: ``JobError`` `invalid_job` that says what was expected, if the reference names no source.
    func cacheKey(for reference: String) throws(JobError) -> String
}

extension CustomSourceProvider {
    /// Returns the reference. Every reference that is not empty and has no control characters is valid.
    public func cacheKey(for reference: String) throws(JobError) -> String { reference }
}

/// The bytes of a source and the response metadata of its origin.
public struct LoadedSource: Sendable {
    /// The bytes, after removal of any content encoding.
    public var body: [UInt8]
    /// The response's header fields, from which freshness and validators are derived.
    public var headers: HTTPFields
    /// The response's status; nil if there was no HTTP response.
    public var status: Int?
    /// The time at which the last byte was received, in seconds since 1970.
    public var completedAt: Double

    /// Creates a loaded source.
    public init(body: [UInt8], headers: HTTPFields = [:], status: Int? = nil, completedAt: Double) {
        self.body = body
        self.headers = headers
        self.status = status
        self.completedAt = completedAt
    }

    /// Creates a source from bytes that were received just now.
    /// - Parameters:
    ///   - lifetime: The time for which they are fresh; nil for the configured default.
    ///   - validators: The validators for later conditional requests.
    public init(body: [UInt8], lifetime: Duration? = nil, validators: Validators = Validators()) {
        var headers = HTTPFields()
        headers["Cache-Control"] = lifetime.map { "max-age=\(max(0, $0.components.seconds))" }
        headers["ETag"] = validators.etag
        headers["Last-Modified"] = validators.lastModified
        self.init(body: body, headers: headers, completedAt: Timestamp.now.seconds)
    }

    /// The validators for later conditional requests.
    public var validators: Validators { Validators(of: headers) }
}

/// The response of a provider.
public enum FetchResponse: Sendable {
    /// The bytes.
    case loaded(LoadedSource)
    /// The bytes that the caller has are still current.
    case notModified(Confirmation)

    /// Returns the bytes of a fetch without validators.
    /// - Throws: ``JobError`` `internal` for ``notModified(_:)``, which is not a valid response to a request without
    ///   validators.
    public func loaded() throws(JobError) -> LoadedSource {
        guard case .loaded(let loaded) = self else {
            throw JobError(.internal, "unexpected \"not modified\" response to an unconditional provider request")
        }
        return loaded
    }

    /// The origin's confirmation of known bytes.
    public struct Confirmation: Sendable {
        /// Header fields: those of freshness replace the known ones (RFC 9111, section 4.3.4).
        public var headers: HTTPFields
        /// The time at which the origin confirmed them, in seconds since 1970.
        public var completedAt: Double

        /// Creates a confirmation.
        public init(headers: HTTPFields = [:], completedAt: Double = Timestamp.now.seconds) {
            self.headers = headers
            self.completedAt = completedAt
        }
    }
}

/// A provider of bytes that are part of the job.
struct DataProvider: SourceProvider {
    func fetch(_ source: DataSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        // The key is derived from the bytes, so they cannot change.
        .loaded(LoadedSource(body: source.bytes, lifetime: .unchanging))
    }
}

extension Duration {
    /// One year, the lifetime of sources that never change.
    static let unchanging = Duration.seconds(31_536_000)
}

/// The custom source providers of the host program, by name.
public struct CustomProviders: Sendable {
    private let providers: [String: any CustomSourceProvider]

    /// Names that Halcyon uses itself, or reserves because jobs written for other systems use them.
    private static let taken: Set = [
        "http", "https", "initials", FileSource.scheme, DataSource.scheme, S3Source.scheme, "base64", "video",
    ]

    /// Creates an empty set of providers.
    public init() { providers = [:] }

    /// Creates a set of providers.
    /// - Throws: ``ProviderError`` for a name that is malformed, registered twice, or built in.
    public init(_ providers: [any CustomSourceProvider]) throws(ProviderError) {
        var named: [String: any CustomSourceProvider] = [:]
        for provider in providers {
            let name = provider.name
            guard (1...64).contains(name.utf8.count), Source.scheme(of: "\(name):") == name else {
                throw .malformed(name)
            }
            guard !Self.taken.contains(name) else { throw .builtIn(name) }
            guard named.updateValue(provider, forKey: name) == nil else { throw .doubled(name) }
        }
        self.providers = named
    }

    /// The names that jobs may use.
    public var names: Set<String> { Set(providers.keys) }

    /// Returns the cache key that the named provider derives from a reference.
    /// - Throws: ``JobError`` `invalid_job` from the provider; `unsupported_source` if no provider has this name.
    public func cacheKey(_ name: String, for reference: String) throws(JobError) -> String {
        try provider(name).cacheKey(for: reference)
    }

    func provider(_ name: String) throws(JobError) -> any CustomSourceProvider {
        guard let provider = providers[name] else {
            throw JobError(.unsupportedSource, "no source provider is registered as \(name)")
        }
        return provider
    }
}

/// The reason why a provider could not be registered: a mistake in the host program.
public enum ProviderError: Error, Hashable, CustomStringConvertible {
    /// The name is not a valid lower-case scheme.
    case malformed(String)
    /// The name belongs to a built-in provider.
    case builtIn(String)
    /// Two providers have this name.
    case doubled(String)

    /// A message for logs and error output.
    public var description: String {
        switch self {
        case .malformed(let name):
            "invalid provider name \"\(name)\"; use 1 to 64 of a to z, 0 to 9, \"+\", \"-\", \".\", a letter first"
        case .builtIn(let name): "the provider name \(name) is reserved for a built-in source"
        case .doubled(let name): "the provider \(name) is registered twice"
        }
    }
}
