import Formats

/// An absolute `http` or `https` URL (RFC 3986), validated as far as cache keys and limits require. libcurl parses the
/// rest.
public struct WebURL: StringRepresentableSource {
    /// The URL as given in the job.
    public let text: String
    /// The normalized form for cache keys: scheme and host in lower case, no default port, no fragment, a path of at
    /// least "/" (RFC 3986, section 6.2.2.1 and 6.2.3). The rest is unchanged, because servers may distinguish it.
    public let canonical: String
    /// The host in lower case, without brackets or port.
    public let host: String

    /// The scheme, host and port (RFC 6454, section 4), normalized like ``canonical``.
    let origin: String
    /// True if the URL contains a user.
    public let hasUser: Bool

    /// The name of the image in cache keys in place of the URL; nil for none. URLs with the same name lead to the same
    /// image.
    public private(set) var cacheKeyName: String?
    /// The ``canonical`` form without the query parameters that do not identify the image (``SourceIdentityRule``).
    private var identity: String?

    /// The maximum length of a URL, in bytes.
    public static let longest = 8192

    /// Parses a URL.
    /// - Throws: ``JobError`` `unsupported_source` for another scheme, `invalid_job` for a malformed URL.
    public init(_ text: String) throws(JobError) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: Self.longest)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]) else {
            throw .invalidURL("expected an absolute URL such as https://example.org/cat.jpg")
        }
        let scheme = lowercased(bytes[..<colon])
        guard scheme == "http" || scheme == "https" else {
            throw JobError(
                .unsupportedSource, "no provider for \(scheme): URLs; expected http, https, file, data or s3")
        }
        guard bytes[colon...].starts(with: "://".utf8) else { throw .invalidURL("expected // after \(scheme):") }
        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex(where: endsAuthority) ?? rest.endIndex
        guard rest[end...].first != UInt8(ascii: "\\") else { throw .invalidURL("the path must begin with /, not \\") }

        let authority = try Authority(rest[..<end], defaultPort: scheme == "http" ? 80 : 443)
        let tail = rest[end...].prefix { $0 != UInt8(ascii: "#") }
        let root = tail.first == UInt8(ascii: "/") ? "" : "/"
        self.text = text
        host = authority.host
        hasUser = !authority.user.isEmpty
        origin = "\(scheme)://\(authority.hostAndPort)"
        canonical = "\(scheme)://\(authority.text)\(root)\(String(decoding: tail, as: UTF8.self))"
    }

    /// The identity in cache keys.
    var cacheKey: String { "url:\(cacheKeyName.map { "key=\($0)" } ?? identity ?? canonical)" }

    /// Returns the URL with a name that identifies the image in cache keys.
    /// - Throws: ``JobError`` `invalid_job` for an invalid name.
    public func named(_ name: String) throws(JobError) -> WebURL {
        try DataSource.check(name: name)
        var url = self
        url.cacheKeyName = name
        return url
    }

    /// Returns the URL with the identity that the first rule for its host gives it.
    public func identified(by rules: [SourceIdentityRule]) -> WebURL {
        guard let rule = rules.first(where: { $0.applies(to: host) }) else { return self }
        var url = self
        url.identity = rule.identity(of: canonical)
        return url
    }

    /// Parses a URL that may be a secret, such as a signed URL. Error messages do not quote it.
    /// - Throws: ``JobError`` `invalid_job` if the URL is malformed or has another scheme.
    public init(secret text: String) throws(JobError) {
        do throws(JobError) {
            try self.init(text)
        } catch {
            throw JobError(
                .invalidJob,
                "expected an http or https URL of at most \(Self.longest) bytes, percent-encoded and with an ASCII host"
            )
        }
    }
}

extension WebURL {
    /// Returns true if both have the same text and the same identity in cache keys, byte for byte.
    public static func == (left: WebURL, right: WebURL) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8) && left.cacheKey.utf8.elementsEqual(right.cacheKey.utf8)
    }

    private enum CodingKeys: String, CodingKey {
        case text, cacheKeyName, identity
    }

    /// Decodes and validates the text, and decodes the identity in cache keys.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        try self.init(values.decode(String.self, forKey: .text))
        cacheKeyName = try values.decodeIfPresent(String.self, forKey: .cacheKeyName)
        identity = try values.decodeIfPresent(String.self, forKey: .identity)
    }

    /// Encodes the text and the identity in cache keys.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(text, forKey: .text)
        try values.encodeIfPresent(cacheKeyName, forKey: .cacheKeyName)
        try values.encodeIfPresent(identity, forKey: .identity)
    }
}

/// The authority of a URL: user, host and port (RFC 3986, section 3.2).
///
/// Error messages do not quote it. A password that contains a slash ends the authority, and its beginning is then
/// parsed as a host or port.
private struct Authority {
    /// The user and password with the trailing @; empty if the URL has no user.
    let user: String
    let host: String
    let isIPv6: Bool
    /// The port; nil for the scheme's default port.
    let port: UInt16?

    private static let escapes = "/, ? and # in a user or password as %2F, %3F and %23"

    init(_ bytes: ArraySlice<UInt8>, defaultPort: UInt16) throws(JobError) {
        var hostAndPort = bytes
        if let at = bytes.firstIndex(of: UInt8(ascii: "@")) {
            hostAndPort = bytes[at...].dropFirst()
            guard !hostAndPort.contains(UInt8(ascii: "@")) else {
                throw .invalidURL("more than one @ before the path; write @ in a password as %40")
            }
        }
        user = string(bytes[..<hostAndPort.startIndex])

        let bracket = hostAndPort.firstIndex(of: UInt8(ascii: "]"))
        isIPv6 = hostAndPort.first == UInt8(ascii: "[") && bracket != nil
        let hostEnd: Int
        if isIPv6, let bracket {
            let address = hostAndPort[..<bracket].dropFirst()
            guard !address.isEmpty,
                address.allSatisfy({ isHexadecimal($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else {
                throw .invalidURL("the host in brackets is not an IPv6 address")
            }
            host = lowercased(address)
            hostEnd = bracket + 1
        } else {
            hostEnd = hostAndPort.firstIndex(of: UInt8(ascii: ":")) ?? hostAndPort.endIndex
            let name = hostAndPort[..<hostEnd]
            guard !name.isEmpty else { throw .invalidURL("the URL has no host") }
            // Escapes are rejected: an encoded name could bypass the lists of allowed and denied hosts.
            guard name.allSatisfy(PercentEncoding.isUnreserved) else {
                throw .invalidURL("invalid host; write international names as xn--…, and \(Self.escapes)")
            }
            host = lowercased(name)
        }
        let number = try Self.port(hostAndPort[hostEnd...])
        port = number == defaultPort ? nil : number
    }

    /// Parses the port.
    /// - Parameter bytes: The text after the host: nothing, or a colon and optional digits.
    private static func port(_ bytes: ArraySlice<UInt8>) throws(JobError) -> UInt16? {
        let digits = bytes.dropFirst()
        guard bytes.first == UInt8(ascii: ":") || bytes.isEmpty, digits.allSatisfy(isDigit) else {
            throw .invalidURL("the port is not a number; write \(escapes)")
        }
        if digits.isEmpty { return nil }
        guard let port = UInt16(string(digits)) else { throw .invalidURL("the port is above 65535") }
        return port
    }

    /// The normalized authority.
    var text: String { user + hostAndPort }

    /// The normalized authority without the user.
    var hostAndPort: String {
        let bracketed = isIPv6 ? "[\(host)]" : host
        return "\(bracketed)\(port.map { ":\($0)" } ?? "")"
    }
}

private func endsAuthority(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\\"): true
    default: false
    }
}

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

private func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

// Shared by all kinds of URLs. They are parsed byte by byte, because Swift combines a slash and a following combining
// mark into one character, and other programs do not.

extension JobError {
    static func invalidURL(_ reason: String) -> JobError { JobError(.invalidJob, reason) }
}

/// Checks the length and the characters of a URL.
/// - Throws: ``JobError`` `invalid_job` if the URL is too long or contains spaces or control characters.
func checkCharacters(_ bytes: [UInt8], longest: Int) throws(JobError) {
    guard bytes.count <= longest else { throw .invalidURL("longer than \(longest) bytes") }
    guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
        throw .invalidURL("the URL contains spaces or control characters; percent-encode them, such as %20")
    }
}

/// True if the bytes are a valid scheme (RFC 3986, section 3.1).
func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first, isLetter(first) else { return false }
    return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0) }
}

func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
}

/// Returns the text with ASCII letters in lower case, independent of the locale.
func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { ascii in
        for (place, byte) in bytes.enumerated() { ascii[place] = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
        return bytes.count
    }
}

extension Sequence<UInt8> {
    /// True if one of the bytes is an ASCII control character.
    var hasControlCharacter: Bool { contains { $0 < 0x20 || $0 == 0x7f } }
}
