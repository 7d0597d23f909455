import Concurrency
import Glibc
import Subprocess

/// An accepted connection and the connection to the server. Both are non-blocking and used only on the relay's event
/// loop.
final class RelayedPair {
    /// One direction: the bytes that were read and not yet written.
    private struct Way {
        var bytes: [UInt8] = []
        var hasEnded = false
    }

    static let socketKind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    private static let most = 1 << 16

    let client: Int32
    let server: Int32
    private var up = Way()
    private var asked = RequestKeys()
    private var down = Way()
    private var isConnected = false
    private var buffer = [UInt8](repeating: 0, count: RelayedPair.most)

    /// Connects to the port and takes ownership of `client`. Returns nil if the connection is refused; the caller then
    /// still owns `client`.
    init?(client: Int32, to port: UInt16) {
        let server = socket(AF_INET, Self.socketKind, 0)
        let result = LoopbackAddress.with(port: port) { connect(server, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else {
            close(server)
            return nil
        }
        _ = fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_NONBLOCK)
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        for descriptor in [client, server] {
            var one: Int32 = 1
            setsockopt(
                descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout.size(ofValue: one)))
        }
        self.client = client
        self.server = server
    }

    /// Returns the events to wait for on a descriptor.
    func interest(in descriptor: Int32) -> EventLoop.Readiness {
        guard isConnected else { return descriptor == server ? .writable : [] }
        let (reads, writes) = descriptor == client ? (up, down) : (down, up)
        var interest: EventLoop.Readiness = []
        if reads.bytes.isEmpty && !reads.hasEnded { interest.insert(.readable) }
        if !writes.bytes.isEmpty { interest.insert(.writable) }
        return interest
    }

    /// The state of the pair after forwarding.
    enum Motion {
        /// The pair is open.
        case goesOn
        /// A request that is to be held was read. None of it has been forwarded.
        case isHeld
        /// The connection is closed.
        case isOver
    }

    /// Forwards all data that can be forwarded.
    /// - Parameter key: Requests with this key are held; nil for none.
    func move(upTo key: Int16?) -> Motion {
        guard connected() else { return errno == EAGAIN ? .goesOn : .isOver }
        var isHeld = false
        let isUp = carry(&up, from: client, to: server) { bytes in
            isHeld = asked.see(bytes).contains { $0 == key }
            return !isHeld
        }
        if isHeld { return .isHeld }
        guard isUp, carry(&down, from: server, to: client, { _ in true }) else { return .isOver }
        return up.hasEnded && down.hasEnded && up.bytes.isEmpty && down.bytes.isEmpty ? .isOver : .goesOn
    }

    /// Closes both connections. Data in flight is lost.
    func end() {
        Self.reset(client)
        Self.reset(server)
    }

    /// Closes a connection with a reset, unless it was shut down properly.
    static func reset(_ descriptor: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(descriptor)
    }

    /// True if the connection to the server is established. If it is still pending, `errno` is EAGAIN.
    private func connected() -> Bool {
        if isConnected { return true }
        var poll = pollfd(fd: server, events: Int16(POLLOUT), revents: 0)
        guard Glibc.poll(&poll, 1, 0) == 1 else {
            errno = EAGAIN
            return false
        }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout.size(ofValue: code))
        getsockopt(server, SOL_SOCKET, SO_ERROR, &code, &size)
        isConnected = code == 0
        errno = code
        return isConnected
    }

    /// Forwards data in one direction.
    /// - Parameter goOn: Called with the data that was read. If it returns false, the data is not forwarded.
    private func carry(
        _ way: inout Way, from: Int32, to: Int32, _ goOn: (ArraySlice<UInt8>) -> Bool
    ) -> Bool {
        while true {
            while !way.bytes.isEmpty {
                let count = way.bytes.withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard count > 0 else { return errno == EAGAIN }
                way.bytes.removeFirst(count)
            }
            if way.hasEnded { return true }
            let count = read(from, &buffer, buffer.count)
            if count < 0 { return errno == EAGAIN }
            if count == 0 {
                way.hasEnded = true
                shutdown(to, Int32(SHUT_WR))
                return true
            }
            way.bytes = Array(buffer[..<count])
            if !goOn(buffer[..<count]) { return true }
        }
    }
}
