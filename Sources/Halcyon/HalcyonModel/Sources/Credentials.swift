import PercentCoding

extension Source {
    /// Its text as everybody may read it: with stars in place of the user and the password of a URL.
    public var shownText: String {
        switch self {
        case .web, .video, .custom: text.withoutCredentials
        case .initials, .file, .data, .s3: text
        }
    }
}

extension String {
    /// A URL with stars in place of its user and password (`https://****@example.org/`); any other text as it is. Where the end of a
    /// password is in doubt, more is hidden rather than less.
    public var withoutCredentials: String {
        let bytes = Array(utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            return self
        }
        let rest = bytes[(colon + 3)...]
        let authority = rest.prefix { !"/?#\\".utf8.contains($0) }
        // What stands behind a colon and is no port is a password, whatever it goes on with.
        let port = authority.firstIndex(of: UInt8(ascii: ":")).map { authority[$0...].dropFirst() }
        let isDoubtful =
            authority.first != UInt8(ascii: "[") && port?.allSatisfy { (0x30...0x39).contains($0) } == false
        let at = authority.lastIndex(of: UInt8(ascii: "@"))
        guard let end = at ?? (isDoubtful ? rest.lastIndex(of: UInt8(ascii: "@")) : nil) else { return self }
        if end == rest.startIndex { return self }
        return String(decoding: bytes[..<rest.startIndex] + "****".utf8 + bytes[end...], as: UTF8.self)
    }
}

extension WebURL {
    /// The user and the password that it names, decoded; nil where it names none, or what cannot be decoded.
    public var userAndPassword: (user: [UInt8], password: [UInt8])? {
        guard hasUser else { return nil }
        let bytes = canonical.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).prefix { $0 != UInt8(ascii: "@") }
        let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = PercentEncoding.decode(parts[0]),
            let password = PercentEncoding.decode(parts.count > 1 ? parts[1] : bytes.suffix(0))
        else { return nil }
        return (user, password)
    }
}
