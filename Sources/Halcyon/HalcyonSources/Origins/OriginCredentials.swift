import Digests
import HalcyonModel

/// Who Halcyon is to an origin (HTTP's Basic scheme, RFC 7617). The operator's, and the same for all jobs.
public struct OriginCredentials: Hashable, Sendable {
    /// Whom they are for, and nobody else.
    public let origin: Origin
    /// The value of `Authorization`.
    let authorization: String

    /// From a URL such as `https://user:password@img.example.org:8443`, both percent-encoded.
    ///
    /// nil for what has no user, one that HTTP cannot say, or more than an origin.
    public init?(_ text: String) {
        // Settings say of what is nil that it is no such URL.
        guard let url = try? WebURL(text), let (user, password) = url.userAndPassword, !user.isEmpty,
            !user.contains(UInt8(ascii: ":")), (user + password).allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        let path = url.canonical.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).drop { $0 != UInt8(ascii: "/") }
        guard path.count == 1, !text.utf8.contains(UInt8(ascii: "#")) else { return nil }
        origin = Origin(url)
        authorization = "Basic \(Base64.encode(user + [UInt8(ascii: ":")] + password))"
    }
}
