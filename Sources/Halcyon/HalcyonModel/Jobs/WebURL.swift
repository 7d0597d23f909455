/// An absolute `http` or `https` URL (RFC 3986), checked as far as keys and limits need it; libcurl reads the rest.
public struct WebURL: Hashable, Sendable {
    /// As the job gave it.
    public let text: String
    /// The form that keys are made of: scheme and host in lower case, no default port, no fragment, a path of at least "/"
    /// (RFC 3986, section 6.2.2.1 and 6.2.3). Nothing else is touched: servers may tell the rest apart.
    public let canonical: String
    /// The host in lower case, without brackets or port.
    public let host: String

    /// Bytes of the longest URL taken.
    public static let longest = 8192

    /// - Throws: ``Failure`` `unsupported_source` for another scheme, `invalid_job` for what is no URL.
    public init(_ text: String) throws(Failure) {
        func invalid(_ reason: String) -> Failure { Failure(.invalidJob, "source: \(reason)") }
        guard text.utf8.count <= Self.longest else { throw invalid("longer than \(Self.longest) bytes") }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw invalid("a URL has no spaces or control characters; write them as %20 and the like")
        }
        guard let colon = text.firstIndex(of: ":"), Self.isScheme(text[..<colon]) else {
            throw invalid("expected an absolute URL such as https://example.org/cat.jpg")
        }
        let scheme = text[..<colon].lowercased()
        guard let defaultPort = ["http": "80", "https": "443"][scheme] else {
            throw Failure(.unsupportedSource, "source: no provider for \(scheme): URLs; http and https are served")
        }
        guard text[colon...].hasPrefix("://") else { throw invalid("expected // after \(scheme):") }
        let afterScheme = text[text.index(colon, offsetBy: 3)...]
        let authorityEnd = afterScheme.firstIndex { "/?#\\".contains($0) } ?? afterScheme.endIndex
        let authority = afterScheme[..<authorityEnd]
        let tail = afterScheme[authorityEnd...].prefix { $0 != "#" }
        guard !tail.hasPrefix("\\") else { throw invalid("a backslash is no path") }

        let userEnd = authority.lastIndex(of: "@").map { authority.index(after: $0) } ?? authority.startIndex
        let (host, port) = try Self.hostAndPort(authority[userEnd...])
        guard !host.isEmpty else { throw invalid("the URL names no host") }
        let shownPort = port.isEmpty || port == defaultPort ? "" : ":\(port)"
        self.text = text
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        canonical =
            "\(scheme)://\(authority[..<userEnd])\(host)\(shownPort)\(tail.hasPrefix("/") ? "" : "/")\(tail)"
    }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, Self.isLetter(first) else { return false }
        return text.utf8.allSatisfy { isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }
    }

    /// The host in lower case with its brackets, and the port's digits.
    private static func hostAndPort(_ text: Substring) throws(Failure) -> (host: String, port: String) {
        let portColon: Substring.Index?
        if text.hasPrefix("["), let bracket = text.lastIndex(of: "]") {
            let next = text.index(after: bracket)
            portColon = next == text.endIndex ? nil : next
        } else {
            portColon = text.lastIndex(of: ":")
        }
        guard let portColon else { return (text.lowercased(), "") }
        let port = text[portColon...].dropFirst()
        guard text[portColon] == ":", port.utf8.allSatisfy(isDigit), port.isEmpty || UInt16(port) != nil else {
            throw Failure(.invalidJob, "source: \(port) is no port")
        }
        return (text[..<portColon].lowercased(), String(UInt16(port).map(String.init) ?? ""))
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
