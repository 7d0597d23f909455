import Glibc

/// A socket that listens, which it owns.
struct Listener: ~Copyable {
    let socket: Int32
    let port: UInt16

    /// - Throws: ``HTTPServerError`` when the address is none of this machine's, or is taken.
    init(on address: String, port: UInt16) throws(HTTPServerError) {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, "\(port)", &hints, &found) == 0, let found else {
            throw HTTPServerError("\(address.debugDescription) is no IP address to listen on")
        }
        defer { freeaddrinfo(found) }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(found.pointee.ai_family, kind, 0)
        guard socket >= 0 else { throw HTTPServerError("no socket: \(String(cString: strerror(errno)))") }
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard bind(socket, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0, listen(socket, SOMAXCONN) == 0,
            let bound = Self.port(of: socket)
        else {
            let reason = String(cString: strerror(errno))
            close(socket)
            throw HTTPServerError("cannot listen on \(address), port \(port): \(reason)")
        }
        self.socket = socket
        self.port = bound
    }

    deinit { close(socket) }

    /// Gives the socket away.
    consuming func release() -> Int32 {
        let socket = socket
        discard self
        return socket
    }

    private static func port(of socket: Int32) -> UInt16? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
        guard code == 0 else { return nil }
        // The port stands in the same place for IPv4 and IPv6.
        return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }
}
