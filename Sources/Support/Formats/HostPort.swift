/// A host and a TCP port.
public struct HostPort: Hashable, Sendable, CustomStringConvertible {
    /// The name or address; an IPv6 address has no brackets.
    public let host: String
    /// The port. For a listener, 0 lets the system choose.
    public let port: UInt16

    /// Creates a host and port, without checking them.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port` or `[address]:port`.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") }), let port = UInt16(digits) else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(":") {
            return nil
        }
        let isClean = host.utf8.allSatisfy { $0 > UInt8(ascii: " ") && !"/@[],".utf8.contains($0) }
        guard !host.isEmpty, isClean else { return nil }
        self.init(host: String(host), port: port)
    }

    /// The text that parses back to the same value.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
