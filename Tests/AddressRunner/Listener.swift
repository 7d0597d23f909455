import Concurrency
import Glibc
import HalcyonSources

/// An origin at every address, which records the addresses at which connections arrive. `/redirect/URL` redirects to
/// the URL; other paths return a few bytes.
final class Listener: Sendable {
    private let arrived = Lock<[String]>([])

    /// Listens on IPv4 and IPv6.
    init(port: UInt16) {
        let socket = Glibc.socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
        precondition(bound == 0 && listen(socket, 64) == 0, "cannot listen: errno \(errno)")
        _ = NamedThread(name: "listener") { [self] in while true { serve(accept(socket, nil, nil)) } }
    }

    /// Returns the addresses at which connections have arrived since the last call.
    func arrivals() -> [String] {
        arrived.withLock { arrived in
            defer { arrived = [] }
            return arrived
        }
    }

    private func serve(_ connection: Int32) {
        guard connection >= 0 else { return }
        defer { close(connection) }
        let place = Self.ownAddress(connection)
        arrived.withLock { $0.append(place) }
        var request = [UInt8](repeating: 0, count: 4096)
        let count = recv(connection, &request, request.count, 0)
        let path =
            String(decoding: request.prefix(max(0, count)), as: UTF8.self).split(separator: " ").dropFirst().first
            ?? "/"
        let head =
            path.hasPrefix("/redirect/")
            ? "HTTP/1.1 302 Found\r\nLocation: \(path.dropFirst("/redirect/".count))\r\nContent-Length: 0\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
        let answer = Array((head + "Connection: close\r\n\r\n" + (path.hasPrefix("/redirect/") ? "" : "hello")).utf8)
        send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
    }

    private static func ownAddress(_ connection: Int32) -> String {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(connection, $0, &length) }
        }
        return withUnsafeBytes(of: &address.sin6_addr) { IPAddress(bytes: $0)?.description ?? "?" }
    }
}
