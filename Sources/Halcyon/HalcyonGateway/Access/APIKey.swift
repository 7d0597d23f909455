import Digests

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
