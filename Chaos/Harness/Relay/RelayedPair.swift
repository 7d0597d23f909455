import Glibc
import Processes
import Threads

/// A connection that came, and the one that was made for it. Both are non-blocking; used on the relay's loop alone.
final class RelayedPair {
    /// One direction: what was read and is not written yet.
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

    /// Takes over `client` and connects to the port; nil, and `client` is the caller's, when nobody is there.
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

    /// What is to be waited for.
    func interest(in descriptor: Int32) -> EventLoop.Readiness {
        guard isConnected else { return descriptor == server ? .writable : [] }
        let (reads, writes) = descriptor == client ? (up, down) : (down, up)
        var interest: EventLoop.Readiness = []
        if reads.bytes.isEmpty && !reads.hasEnded { interest.insert(.readable) }
        if !writes.bytes.isEmpty { interest.insert(.writable) }
        return interest
    }

    /// What has become of it by carrying over what can be.
    enum Motion {
        /// It goes on.
        case goesOn
        /// A request stands here that was to be held; nothing of it has gone.
        case isHeld
        /// The connection is over.
        case isOver
    }

    /// Carries over what can be.
    /// - Parameter key: requests of this kind are not carried over; nil for none.
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

    /// Closes both; what was under way is lost.
    func end() {
        Self.reset(client)
        Self.reset(server)
    }

    /// Closes a connection with a reset, unless it has ended in order.
    static func reset(_ descriptor: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(descriptor)
    }

    /// Whether the connection to the server stands; if not, `errno` says EAGAIN while it may still come.
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

    /// - Parameter goOn: shown what was read; false keeps it here.
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
