/// Where one Redis server or sentinel listens.
public enum RedisAddress: Hashable, Sendable {
    /// A name or an IP address, and a port.
    case tcp(host: String, port: UInt16)
    /// A socket of this machine.
    case unix(path: String)

    /// The name or the IP address; nil for a socket of this machine.
    var host: String? {
        if case .tcp(let host, _) = self { host } else { nil }
    }
}

extension RedisAddress: CustomStringConvertible {
    /// `host:port`, `[address]:port` for IPv6, or `unix:/path`.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
