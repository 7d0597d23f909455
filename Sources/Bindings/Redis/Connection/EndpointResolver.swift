import Concurrency
import Glibc

/// Finds the servers that a connection tries, and checks the one it has reached. It belongs to the connection's loop.
protocol EndpointResolver: AnyObject {
    /// Calls `done` with the servers to try, in order. It is called immediately or later, but not after the next call
    /// of this method.
    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void)
    /// The command sent on a new connection after the login, or nil.
    var question: [RedisArgument]? { get }
    /// Checks the reply to ``question``.
    /// - Throws: an error if the server is not the right one.
    func judge(_ answer: RedisValue, of server: Server) throws(RedisError)
    /// Sets the callback for a change of the right server.
    func whenMoved(_ call: @escaping (RedisAddress) -> Void)
    /// Stops the resolver when the connection is closed.
    func close()
}

extension EndpointResolver {
    func whenMoved(_ call: @escaping (RedisAddress) -> Void) {}
    func close() {}
}

/// Resolves to one fixed server and accepts it always.
final class StaticEndpointResolver: EndpointResolver {
    private let server: Server

    init(_ server: Server) { self.server = server }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) { done(.success([server])) }
    var question: [RedisArgument]? { nil }
    func judge(_ answer: RedisValue, of server: Server) {}
}

extension RedisEndpoint {
    /// Creates a resolver for the server that commands are sent to: the only one, the primary, or any node of a
    /// cluster.
    func guide(_ settings: RedisSettings, on loop: EventLoop) -> any EndpointResolver {
        switch servers {
        case .one(let address): StaticEndpointResolver(Server(address: address, login: login))
        case .cluster(let seeds): ClusterEndpointResolver(seeds, login)
        case .sentinels(let sentinels, let service):
            SentinelResolver(
                to: service, login, asking: sentinels.map { Server(address: $0, login: sentinelLogin) }, settings,
                on: loop)
        }
    }

    /// True if sentinels name the primary.
    var isBehindSentinels: Bool { if case .sentinels = servers { true } else { false } }
}

/// DNS lookups, which block and therefore run on separate threads.
enum DNSResolver {
    /// Calls `done` with the IP addresses of `host` as text, in the order to try them. It is called on the caller's
    /// loop, immediately if `host` already is an address.
    static func resolve(
        _ host: String, on loop: EventLoop, _ done: @escaping (Result<[String], RedisError>) -> Void
    ) {
        if isAddress(host) { return done(.success([host])) }
        let done = Carried(done)
        // Lookups run one at a time and only while not connected, so the cost of a thread is negligible.
        _ = NamedThread(name: "redis-names") {
            let result = lookUp(host)
            loop.perform { done.value(result) }
        }
    }

    /// A value of the loop that passes through another thread.
    ///
    /// `@unchecked Sendable`: the other thread does not access it, and returns it to its own loop.
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
            return .failure(RedisError(.unavailable, "cannot resolve \(host): \(String(cString: gai_strerror(code)))"))
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
