import HalcyonModel

/// The providers that the host program adds to Halcyon's own, by name.
public struct CustomProviders: Sendable {
    private let providers: [String: any CustomSourceProvider]

    /// Names that Halcyon gives a meaning, or would take from jobs that are written for it elsewhere.
    private static let taken: Set = [
        "http", "https", "initials", FileSource.scheme, DataSource.scheme, S3Source.scheme, "base64", "video",
    ]

    /// None.
    public init() { providers = [:] }

    /// - Throws: ``ProviderError`` for a name that is malformed, stands twice, or is Halcyon's own.
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

    /// What jobs may name.
    public var names: Set<String> { Set(providers.keys) }

    /// What the provider of this name knows the source of this reference by: for who reads jobs.
    /// - Throws: ``Failure`` `invalid_job` from the provider; `unsupported_source` where nothing is registered.
    public func cacheKey(_ name: String, for reference: String) throws(Failure) -> String {
        try provider(name).cacheKey(for: reference)
    }

    func provider(_ name: String) throws(Failure) -> any CustomSourceProvider {
        guard let provider = providers[name] else {
            throw Failure(.unsupportedSource, "nothing is registered as \(name)")
        }
        return provider
    }
}

/// Why a provider could not be registered: a mistake in the host program.
public enum ProviderError: Error, Hashable, CustomStringConvertible {
    /// The name is no scheme in lower case.
    case malformed(String)
    /// Halcyon has one of its own by that name.
    case builtIn(String)
    /// Two were given by that name.
    case doubled(String)

    /// For people.
    public var description: String {
        switch self {
        case .malformed(let name):
            "the provider \"\(name)\" needs a name of 1 to 64 of a to z, 0 to 9, \"+\", \"-\" and \".\", a letter first"
        case .builtIn(let name): "\(name) is a kind of source of Halcyon's own"
        case .doubled(let name): "the provider \(name) is registered twice"
        }
    }
}
