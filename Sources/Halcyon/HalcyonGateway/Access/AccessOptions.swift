import Digests

/// Who may do what, how often, and from where.
public struct AccessOptions: Sendable {
    /// The keys. Without any, and without ``urlKeys``, everybody may do everything.
    public var keys: [APIKey] = []
    /// Whether a gateway that asks for no key may listen where other machines reach it.
    public var isOpen = false
    /// What each caller may take.
    public var limits = CallerLimits()
    /// The secrets of signed URLs by their `keyId`, each at least 32 random bytes; several while one takes another's place.
    public var urlKeys: [String: [UInt8]] = [:]
    /// Whether a signed URL must say when it ends.
    public var requiresExpiry = true
    /// The origins whose pages may read answers (CORS), such as `https://example.org`; `*` for all. None unless set.
    public var origins: [String] = []

    /// The defaults.
    public init() {}

    /// Whether nobody may do anything without a key or a signed URL. Secrets of signed URLs alone are enough for that: what they open would
    /// else be open without them.
    var asksForKeys: Bool { !keys.isEmpty || !urlKeys.isEmpty }

    /// Whether a gateway may listen on an address: one that lets everybody do everything does so on this machine alone, unless it is
    /// said to be open.
    func allowsListening(on host: String) -> Bool {
        asksForKeys || isOpen || host == "::1" || host.hasPrefix("127.")
    }
}

/// What a caller may take: the bearers of a key together, and without a key an address (of IPv6 its first 64 bits, which is what one
/// customer has).
public struct CallerLimits: Hashable, Sendable {
    /// Requests a second in the long run, above 0.
    public var rate = 1000.0
    /// Requests at once before the rate counts, at least 1.
    public var burst = 2000.0
    /// Requests under way at once, until their answers are made, and streamed ones until they have ended.
    public var concurrency = 256
    /// Event streams under way at once, which are counted apart.
    public var streams = 100
    /// Callers that are known at once. More than that have one allowance together, so that memory is bounded.
    public var mostCallers = 10_000

    /// The defaults.
    public init() {}
}

/// Somebody whom nobody was to let in could come in.
public struct OpenGatewayError: Error, CustomStringConvertible {
    /// The address that it was to listen on.
    let host: String

    /// What would mend it.
    public var description: String {
        "without keys the gateway would let everybody on \(host) do everything: set gateway.keys, listen on 127.0.0.1, or set gateway.open if something else keeps watch"
    }
}

/// A key that somebody has been given.
public struct APIKey: Hashable, Sendable {
    /// What it is called in logs, and what its limits are counted under.
    public let name: String
    /// What its bearer may do.
    public let scopes: Set<Scope>
    /// Of its secret, which is not kept. A secret is drawn at random, so nobody finds it by trying words, and the hash needs neither salt nor slowness.
    let digest: Digest256

    /// - Parameter secret: what its bearer sends, in visible ASCII; at least 32 random characters.
    public init(name: String, secret: String, scopes: Set<Scope>) {
        self.name = name
        self.scopes = scopes
        digest = SHA256.hash(secret)
    }

    /// Whether its bearer may do what needs this scope: `admin` may do all.
    func allows(_ scope: Scope) -> Bool { scopes.contains(scope) || scopes.contains(.admin) }
}

extension [APIKey] {
    /// The key of this secret. All of them are compared, each to its end: how long it takes tells nothing of them.
    func key(of secret: String) -> APIKey? {
        let digest = SHA256.hash(secret)
        var found: APIKey?
        for key in self where key.digest.isSame(inConstantTimeAs: digest) { found = key }
        return found
    }
}

/// What the bearer of a key may do.
public enum Scope: String, CaseIterable, Hashable, Sendable {
    /// Give jobs, cancel one's own, have images rendered.
    case submit
    /// Read images, events and the state of jobs.
    case read
    /// Purge, replay dead letters, and see what concerns everybody; and all that the others may.
    case admin
}
