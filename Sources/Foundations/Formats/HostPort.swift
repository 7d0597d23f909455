/// A host and a TCP port.
public struct HostPort: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address, an IPv6 address without brackets.
    public let host: String
    /// 0 leaves the choice to the system, for who listens.
    public let port: UInt16

    /// Takes the parts as they are.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `host:port` or `[address]:port`.
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

    /// The form that reads back.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
