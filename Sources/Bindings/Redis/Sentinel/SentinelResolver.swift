import Concurrency

/// Finds the primary of a service. Asks the sentinels for it one after another, verifies its role, and listens for
/// failovers (https://redis.io/docs/latest/develop/reference/sentinel-clients/).
///
/// Each query uses a new connection to the next sentinel, because a sentinel that is partitioned from the others keeps
/// naming the old primary. The last connection stays open to receive failover messages.
final class SentinelResolver: EndpointResolver {
    private let service: String
    private let login: Login
    private let sentinels: ReconnectingConnection<SwitchListener>
    private var done: ((Result<[Server], RedisError>) -> Void)?
    /// The address of the new primary, set while the delegate is notified.
    private var news: RedisAddress?
    private var moved: (RedisAddress) -> Void = { _ in }
    private var hasBegun = false

    init(
        to service: String, _ login: Login, asking sentinels: [Server], _ settings: RedisSettings, on loop: EventLoop
    ) {
        self.service = service
        self.login = login
        let listener = SwitchListener(service, settings, on: loop)
        let inquiry = PrimaryLookup(service, sentinels)
        self.sentinels = ReconnectingConnection(listener, with: inquiry, settings, on: loop)
        listener.hasFailed = { [weak self] in self?.answer(.failure($0)) }
        listener.hasSwitched = { [weak self] in self?.masterIs(at: $0) }
        inquiry.hasAnswered = { [weak self] in self?.masterIs(at: $0) }
    }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) {
        if let news { return done(.success([Server(address: news, login: login)])) }
        // The end of the old connection must not complete the new query.
        self.done = nil
        if hasBegun {
            // Has no effect if a query is already running.
            sentinels.startAnew(RedisError(.unavailable, "switching to another sentinel"))
        } else {
            hasBegun = true
            sentinels.connect()
        }
        self.done = done
    }

    var question: [RedisArgument]? { ["ROLE"] }

    func judge(_ answer: RedisValue, of server: Server) throws(RedisError) {
        guard let role = answer.array?.first?.string, role == "master" else {
            throw RedisError(.unavailable, "\(server.address) is not (yet) the primary of \(service)")
        }
    }

    func whenMoved(_ call: @escaping (RedisAddress) -> Void) { moved = call }

    func close() {
        done = nil
        sentinels.close()
    }

    private func masterIs(at address: RedisAddress) {
        if done != nil { return answer(.success(address)) }
        news = address
        moved(address)
        news = nil
    }

    private func answer(_ result: Result<RedisAddress, RedisError>) {
        guard let done else { return }
        self.done = nil
        done(result.map { [Server(address: $0, login: login)] })
    }
}

/// Resolves to the sentinels in rotation, and asks each for the primary of a service.
private final class PrimaryLookup: EndpointResolver {
    private let service: String
    private var sentinels: [Server]
    var hasAnswered: (RedisAddress) -> Void = { _ in }

    init(_ service: String, _ sentinels: [Server]) {
        self.service = service
        self.sentinels = sentinels
    }

    func findServers(_ done: @escaping (Result<[Server], RedisError>) -> Void) {
        defer { sentinels.append(sentinels.removeFirst()) }
        done(.success(sentinels))
    }

    var question: [RedisArgument]? { ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .string(service)] }

    func judge(_ answer: RedisValue, of server: Server) throws(RedisError) {
        if answer.isNull {
            throw RedisError(.unavailable, "sentinel \(server.address) knows no primary of \(service)")
        }
        guard let address = RedisAddress(answer.array?.map(\.string) ?? []) else {
            throw RedisError(.protocolError, "malformed reply of sentinel \(server.address): \(answer)")
        }
        hasAnswered(address)
    }
}

extension RedisAddress {
    /// Creates an address from a host and a port as sentinels return them.
    init?(_ words: [String?]) {
        guard words.count == 2, let host = words[0], !host.isEmpty, let port = words[1].flatMap({ UInt16($0) }),
            port > 0
        else { return nil }
        self = .tcp(host: host, port: port)
    }
}

/// Listens on a connection to a sentinel for a new primary of the service
/// (https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/, "Pub/Sub messages").
final class SwitchListener: ConnectionDelegate {
    var hasSwitched: (RedisAddress) -> Void = { _ in }
    var hasFailed: (RedisError) -> Void = { _ in }
    private let service: String
    private let pulse: SubscriberKeepAlive

    init(_ service: String, _ settings: RedisSettings, on loop: EventLoop) {
        self.service = service
        pulse = SubscriberKeepAlive(settings, on: loop)
    }

    func opened(_ connection: Connection) {
        connection.send(["SUBSCRIBE", "+switch-master"])
        pulse.begin(connection)
    }

    func received(_ reply: RedisValue) {
        guard let parts = reply.array, parts.count == 3, parts[0].string == "message", let text = parts[2].string else {
            return
        }
        // <service> <old host> <old port> <new host> <new port>
        let words = text.split(separator: " ").map(String.init)
        guard words.count == 5, words[0] == service, let address = RedisAddress(words[3...].map { $0 }) else { return }
        hasSwitched(address)
    }

    func lost(_ error: RedisError) {
        pulse.end()
        hasFailed(error)
    }

    func closed() { pulse.end() }
}
