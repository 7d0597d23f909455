import Glibc

/// An IP address and a port: the address that a connection is opened to, whatever the host name was.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in network order: 4 bytes for IPv4, 16 for IPv6.
    public let bytes: [UInt8]
    /// The port number.
    public let port: UInt16

    /// Creates an address from its bytes; nil unless there are 4 or 16 of them.
    public init?(bytes: [UInt8], port: UInt16) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
        self.port = port
    }

    /// Creates an address from its text, such as `127.0.0.1` or `::1`; nil if the text is invalid.
    public init?(_ text: String, port: UInt16) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: Array(bytes.prefix(4)), port: port)
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes: bytes, port: port)
        } else {
            return nil
        }
    }

    /// Creates an address from the system's structure; nil for families other than IPv4 and IPv6.
    init?(family: Int32, _ address: UnsafeRawBufferPointer) {
        switch family {
        case AF_INET where address.count >= MemoryLayout<sockaddr_in>.size:
            let address = address.loadUnaligned(as: sockaddr_in.self)
            self.init(
                bytes: withUnsafeBytes(of: address.sin_addr) { Array($0) }, port: UInt16(bigEndian: address.sin_port))
        case AF_INET6 where address.count >= MemoryLayout<sockaddr_in6>.size:
            let address = address.loadUnaligned(as: sockaddr_in6.self)
            self.init(
                bytes: withUnsafeBytes(of: address.sin6_addr) { Array($0) }, port: UInt16(bigEndian: address.sin6_port))
        default: return nil
        }
    }

    /// The address without the port, as text.
    public var host: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The address and the port, as in a URL.
    public var description: String { bytes.count == 4 ? "\(host):\(port)" : "[\(host)]:\(port)" }
}
