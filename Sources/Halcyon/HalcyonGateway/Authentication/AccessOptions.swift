import Hashing

/// Settings for authentication, authorization, rate limits and CORS.
public struct AccessOptions: Sendable {
    /// The API keys. Without keys and ``urlKeys``, every client may do everything.
    public var keys: [APIKey] = []
    /// True if a gateway without keys may listen on addresses that other machines can reach.
    public var isOpen = false
    /// The limits of each caller.
    public var limits = CallerLimits()
    /// The secrets of signed URLs by their `keyId`, each at least 32 random bytes. Several are valid at once during key
    /// rotation.
    public var urlKeys: [String: [UInt8]] = [:]
    /// True if a signed URL must have an expiry time.
    public var requiresExpiry = true
    /// True if the URLs of other image servers are signed, which requires a key for all other requests.
    var hasCompatibleKeys = false
    /// The origins whose pages may read responses (CORS), such as `https://example.org`; `*` for all. Empty by default.
    public var origins: [String] = []

    /// Creates options with default values.
    public init() {}

    /// True if every request needs a key or a signed URL. Secrets of signed URLs are enough to require this, because
    /// the signatures would otherwise protect nothing.
    var asksForKeys: Bool { !keys.isEmpty || !urlKeys.isEmpty || hasCompatibleKeys }

    /// True if a gateway may listen on an address. Without keys it may only listen on loopback addresses, unless
    /// ``isOpen`` is set.
    func allowsListening(on host: String) -> Bool {
        asksForKeys || isOpen || host == "::1" || host.hasPrefix("127.")
    }
}

/// The limits of one caller: all clients with the same key, or without a key an IP address (for IPv6 its first 64 bits,
/// which usually belong to one customer).
public struct CallerLimits: Hashable, Sendable {
    /// The sustained rate in requests per second, above 0.
    public var rate = 1000.0
    /// The burst size of the token bucket, at least 1.
    public var burst = 2000.0
    /// The maximum number of concurrent requests. A streamed response counts until it ends.
    public var concurrency = 256
    /// The maximum number of concurrent event streams, which do not count as requests.
    public var streams = 100
    /// The maximum number of tracked callers. Further callers share one allowance, so that memory is bounded.
    public var mostCallers = 10_000

    /// Creates options with default values.
    public init() {}
}

/// An error thrown if a gateway without keys is to listen on an address that other machines can reach.
public struct OpenGatewayError: Error, CustomStringConvertible {
    /// The address that was configured.
    let host: String

    /// A message that names the settings that fix the error.
    public var description: String {
        "without keys every client on \(host) could do everything; set gateway.keys, listen on 127.0.0.1, or set "
            + "gateway.allowAnonymous if another component authenticates clients"
    }
}

/// An API key.
public struct APIKey: Hashable, Sendable {
    /// The name of the key in logs, which also identifies its rate limit.
    public let name: String
    /// The scopes of the key.
    public let scopes: Set<Scope>
    /// The SHA-256 of the secret, which is not stored. Secrets are random, so the hash needs neither salt nor
    /// stretching.
    let digest: Digest256

    /// - Parameter secret: the secret that clients send, in visible ASCII; at least 32 random characters.
    public init(name: String, secret: String, scopes: Set<Scope>) {
        self.name = name
        self.scopes = scopes
        digest = SHA256.hash(secret)
    }

    /// True if the key grants a scope. The scope `admin` includes all others.
    func allows(_ scope: Scope) -> Bool { scopes.contains(scope) || scopes.contains(.admin) }
}

extension [APIKey] {
    /// Returns the key with this secret. Compares all keys in constant time, so that the duration reveals nothing.
    func key(of secret: String) -> APIKey? {
        let digest = SHA256.hash(secret)
        var found: APIKey?
        for key in self where key.digest.isSame(inConstantTimeAs: digest) { found = key }
        return found
    }
}

/// An authorization scope of a key.
public enum Scope: String, CaseIterable, Hashable, Sendable {
    /// Submits jobs, cancels the key's own jobs, renders images.
    case submit
    /// Reads images, events and job states.
    case read
    /// Purges results, replays dead letters, reads the state of the cluster. Includes all other scopes.
    case admin
}
