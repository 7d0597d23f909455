import Formats

/// An absolute `http` or `https` URL (RFC 3986), checked as far as keys and limits need it; libcurl reads the rest.
public struct WebURL: TextualSource {
    /// As the job gave it.
    public let text: String
    /// The form that keys are made of: scheme and host in lower case, no default port, no fragment, a path of at least "/"
    /// (RFC 3986, section 6.2.2.1 and 6.2.3). Nothing else is touched: servers may tell the rest apart.
    public let canonical: String
    /// The host in lower case, without brackets or port.
    public let host: String

    /// Whether it names a user.
    public let hasUser: Bool

    /// Bytes of the longest URL taken.
    public static let longest = 8192

    /// - Throws: ``Failure`` `unsupported_source` for another scheme, `invalid_job` for what is no URL.
    public init(_ text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: Self.longest)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isScheme(bytes[..<colon]) else {
            throw .invalidURL("expected an absolute URL such as https://example.org/cat.jpg")
        }
        let scheme = lowercased(bytes[..<colon])
        guard scheme == "http" || scheme == "https" else {
            throw Failure(
                .unsupportedSource, "no provider for \(scheme): URLs; http, https, file, data and s3 are served")
        }
        guard bytes[colon...].starts(with: "://".utf8) else { throw .invalidURL("expected // after \(scheme):") }
        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex(where: endsAuthority) ?? rest.endIndex
        guard rest[end...].first != UInt8(ascii: "\\") else { throw .invalidURL("a backslash is no path") }

        let authority = try Authority(rest[..<end], defaultPort: scheme == "http" ? 80 : 443)
        let tail = rest[end...].prefix { $0 != UInt8(ascii: "#") }
        let root = tail.first == UInt8(ascii: "/") ? "" : "/"
        self.text = text
        host = authority.host
        hasUser = !authority.user.isEmpty
        canonical = "\(scheme)://\(authority.text)\(root)\(String(decoding: tail, as: UTF8.self))"
    }

    /// A URL that may be a secret, such as a signed one: what is wrong with it is told without a word of it.
    /// - Throws: ``Failure`` `invalid_job`.
    public init(secret text: String) throws(Failure) {
        do throws(Failure) {
            try self.init(text)
        } catch {
            throw Failure(
                .invalidJob,
                "expected an http or https URL of at most \(Self.longest) bytes, its host in ASCII, all else percent-encoded"
            )
        }
    }
}

/// User, host and port of a URL (RFC 3986, section 3.2).
private struct Authority {
    /// With the @ behind it; empty when there is none.
    let user: String
    let host: String
    let isIPv6: Bool
    /// nil for the scheme's own.
    let port: UInt16?

    init(_ bytes: ArraySlice<UInt8>, defaultPort: UInt16) throws(Failure) {
        var hostAndPort = bytes
        if let at = bytes.firstIndex(of: UInt8(ascii: "@")) {
            hostAndPort = bytes[at...].dropFirst()
            guard !hostAndPort.contains(UInt8(ascii: "@")) else {
                throw .invalidURL("more than one @ before the path; write those of the password as %40")
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
                throw .invalidURL("[\(string(address))] is no IPv6 address")
            }
            host = lowercased(address)
            hostEnd = bracket + 1
        } else {
            hostEnd = hostAndPort.firstIndex(of: UInt8(ascii: ":")) ?? hostAndPort.endIndex
            let name = hostAndPort[..<hostEnd]
            guard !name.isEmpty else { throw .invalidURL("the URL names no host") }
            // One spelling for one host: a name that means another one once it is decoded would pass a list of hosts.
            guard name.allSatisfy(PercentEncoding.isUnreserved) else {
                throw .invalidURL("\(string(name)) is no host; write international names in ASCII, as xn--…")
            }
            host = lowercased(name)
        }
        let number = try Self.port(hostAndPort[hostEnd...])
        port = number == defaultPort ? nil : number
    }

    /// - Parameter bytes: what follows the host: nothing, or a colon and perhaps digits.
    private static func port(_ bytes: ArraySlice<UInt8>) throws(Failure) -> UInt16? {
        let digits = bytes.dropFirst()
        guard bytes.first == UInt8(ascii: ":") || bytes.isEmpty, digits.allSatisfy(isDigit) else {
            throw .invalidURL("\(string(bytes)) is no port")
        }
        if digits.isEmpty { return nil }
        guard let port = UInt16(string(digits)) else { throw .invalidURL("ports end at 65535") }
        return port
    }

    /// The canonical one.
    var text: String {
        let bracketed = isIPv6 ? "[\(host)]" : host
        return "\(user)\(bracketed)\(port.map { ":\($0)" } ?? "")"
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

// What the kinds of URLs have in common. They are taken apart byte by byte: to Swift a slash with a combining mark behind
// it is another character, to every other program it is a slash.

extension Failure {
    static func invalidURL(_ reason: String) -> Failure { Failure(.invalidJob, reason) }
}

/// - Throws: ``Failure`` `invalid_job` for what is too long or has characters that no URL has.
func checkCharacters(_ bytes: [UInt8], longest: Int) throws(Failure) {
    guard bytes.count <= longest else { throw .invalidURL("longer than \(longest) bytes") }
    guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
        throw .invalidURL("a URL has no spaces or control characters; write them as %20 and the like")
    }
}

/// RFC 3986, section 3.1.
func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first, isLetter(first) else { return false }
    return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0) }
}

func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
}

/// ASCII alone, as every language can do it.
func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { ascii in
        for (place, byte) in bytes.enumerated() { ascii[place] = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
        return bytes.count
    }
}

extension Sequence<UInt8> {
    /// Whether one of the bytes is an ASCII control character.
    var hasControlCharacter: Bool { contains { $0 < 0x20 || $0 == 0x7f } }
}
