import Glibc
import Threads

/// Tells a session which servers to try, and judges whom it has found. It belongs to the session's loop.
protocol Guide: AnyObject {
    /// Calls `done` with the servers to try now, in this order: at once or later, and not after the next call of this.
    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void)
    /// What a fresh connection is asked behind the login; nil for nothing.
    var question: [RedisArgument]? { get }
    /// - Throws: when a server that answers ``question`` so is not the right one.
    func judge(_ answer: RedisValue, of server: Server) throws(RedisError)
    /// Whom to call when the right server is another one all of a sudden.
    func whenMoved(_ call: @escaping (RedisAddress) -> Void)
    /// The session is over.
    func close()
}

extension Guide {
    func whenMoved(_ call: @escaping (RedisAddress) -> Void) {}
    func close() {}
}

/// Knows one server, which is always the right one.
final class FixedGuide: Guide {
    private let server: Server

    init(_ server: Server) { self.server = server }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) { done(.success([server])) }
    var question: [RedisArgument]? { nil }
    func judge(_ answer: RedisValue, of server: Server) {}
}

extension RedisEndpoint {
    /// Leads a session to the server that all is to be asked of: the only one, the master, or any node of a cluster.
    func guide(_ settings: RedisSettings, on loop: EventLoop) -> any Guide {
        switch servers {
        case .one(let address): FixedGuide(Server(address: address, login: login))
        case .cluster(let seeds): AnyNodeGuide(seeds, login)
        case .sentinels(let sentinels, let service):
            SentinelGuide(
                to: service, login, asking: sentinels.map { Server(address: $0, login: sentinelLogin) }, settings,
                on: loop)
        }
    }

    /// Whether sentinels say where the master is.
    var isBehindSentinels: Bool { if case .sentinels = servers { true } else { false } }
}

/// Name look-ups, which block, on threads of their own.
enum HostNames {
    /// Calls `done` on the loop, which is the caller's, with the IP addresses of `host`, as text, in the order to try them: at once if
    /// it is an address already.
    static func resolve(
        _ host: String, on loop: EventLoop, _ done: @escaping (Result<[String], RedisError>) -> Void
    ) {
        if isAddress(host) { return done(.success([host])) }
        let done = Carried(done)
        // One at a time and only while not connected: a thread of its own costs nothing that matters.
        _ = WorkThread(name: "redis-names", stackSize: 1 << 18) {
            let result = lookUp(host)
            loop.perform { done.value(result) }
        }
    }

    /// Something of a loop's, on its way through another thread.
    ///
    /// `@unchecked Sendable`: the other thread does not look at it, and brings it back to its own loop.
    private struct Carried<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private static func isAddress(_ host: String) -> Bool {
        var buffer = in6_addr()
        return inet_pton(AF_INET, host, &buffer) == 1 || inet_pton(AF_INET6, host, &buffer) == 1
    }

    private static func lookUp(_ host: String) -> Result<[String], RedisError> {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &found)
        guard code == 0 else {
            return .failure(RedisError(.unavailable, "cannot find \(host): \(String(cString: gai_strerror(code)))"))
        }
        defer { freeaddrinfo(found) }
        var texts: [String] = []
        var next = found
        while let entry = next {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let status = getnameinfo(
                entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            if status == 0 { texts.append(text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }) }
            next = entry.pointee.ai_next
        }
        return .success(texts)
    }
}
