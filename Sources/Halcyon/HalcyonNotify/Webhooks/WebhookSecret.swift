import Digests

/// What webhooks are signed with: a symmetric secret as the Standard Webhooks specification (1.0.0, "Signature scheme") has it.
public struct WebhookSecret: Hashable, Sendable {
    private let key: [UInt8]

    private static let prefix = "whsec_"
    /// Bytes of a secret.
    public static let lengths = 24...64

    /// Reads `whsec_` and the base64 of 24 to 64 bytes; nil for anything else.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let key = Base64.decode(String(text.dropFirst(Self.prefix.count))),
            Self.lengths.contains(key.count)
        else { return nil }
        self.key = key
    }

    /// As it is read: not for logs.
    public var text: String { Self.prefix + Base64.encode(key) }

    /// What a header `webhook-signature` says for this secret.
    /// - Parameter timestamp: of the attempt, in seconds since 1970.
    public func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        let code = HMACSHA256.code(of: Array("\(id).\(timestamp).".utf8) + body, key: key)
        return "v1,\(Base64.encode(code.bytes))"
    }
}
