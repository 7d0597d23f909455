import Concurrency
import Glibc

/// TCP ports on the loopback address.
public enum LoopbackPort {
    /// Below the ephemeral ports of Linux (`ip_local_port_range`, from 32768). A client could take an ephemeral port
    /// between the check and the server's start.
    private static let range: Range<UInt16> = 10_000..<32_768
    /// The ports returned so far. No port is returned twice.
    private static let given = Lock<Set<UInt16>>([])

    /// Returns a random port of 127.0.0.1 on which no process listens. Another process could take it first, which is
    /// unlikely.
    public static func free() -> UInt16 {
        while true {
            let port = UInt16.random(in: range)
            if given.withLock({ $0.insert(port).inserted }), isFree(port) { return port }
        }
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        precondition(descriptor >= 0, "cannot create a socket: errno \(errno)")
        defer { close(descriptor) }
        return LoopbackAddress.with(port: port) { bind(descriptor, $0, $1) == 0 }
    }

    /// True if a process accepts connections on the port.
    public static func answers(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return LoopbackAddress.with(port: port) { connect(descriptor, $0, $1) == 0 }
    }
}

/// The address 127.0.0.1 in the form of the socket calls.
public enum LoopbackAddress {
    /// Calls `body` with the socket address for a port, and its size.
    public static func with<Result>(
        port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
