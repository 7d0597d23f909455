import HalcyonModel

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
