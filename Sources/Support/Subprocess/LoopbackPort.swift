import Concurrency
import Glibc

/// TCP ports on the loopback address.
public enum LoopbackPort {
    /// Below the ephemeral ports of Linux (`ip_local_port_range`, from 32768), which clients use.
    private static let range: Range<UInt16> = 10_000..<32_768

    /// Reserves a random port of 127.0.0.1 until this process exits.
    ///
    /// A socket of this process is bound to the port and does not listen. Meanwhile the kernel gives the port to no
    /// client, and no other process can reserve it. A server that sets SO_REUSEADDR, as redis-server, nginx and the JVM
    /// do, can listen on it, also again after it was killed (socket(7)). Clients are refused while no server listens.
    public static func reserve() -> UInt16 {
        while true {
            let port = UInt16.random(in: range)
            if hold(port) { return port }
        }
    }

    private static func hold(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        precondition(descriptor >= 0, "cannot create a socket: errno \(errno)")
        // SO_REUSEADDR is set afterwards: with it, bind(2) would also succeed on a port that another process has reserved.
        var yes: Int32 = 1
        guard LoopbackAddress.with(port: port, { bind(descriptor, $0, $1) }) == 0,
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size)) == 0
        else {
            close(descriptor)
            return false
        }
        return true
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
