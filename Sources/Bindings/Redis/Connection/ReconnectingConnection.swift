import Concurrency

/// Receives the events and replies of a connection. It lives on the connection's loop.
protocol ConnectionDelegate: AnyObject, SendableMetatype {
    /// A connection is ready for commands.
    func opened(_ connection: Connection)
    /// The next reply arrived on the open connection.
    func received(_ reply: RedisValue)
    /// The open connection was lost, or an attempt to connect failed. Another attempt follows.
    func lost(_ error: RedisError)
    /// The connection was closed for good.
    func closed()
}

/// Maintains a connection to the server that its resolver names. It connects, logs in, and reconnects with backoff
/// after a loss, until it is closed.
///
/// It belongs to the loop's thread, and must only be used there. It is not `Sendable`, so the compiler confines it to
/// its owner.
final class ReconnectingConnection<Talk: ConnectionDelegate> {
    private enum Phase {
        case idle
        /// The resolver is looking for servers.
        case finding
        case resolving
        case connecting(Connection)
        /// Logging in; `left` replies are outstanding.
        case greeting(Connection, left: Int)
        case open(Connection)
        case resting
        case closed
    }

    /// The delegate that uses the connection.
    let talk: Talk
    /// The connected server, or the one tried last.
    private(set) var server: Server?

    private let loop: EventLoop
    private let guide: any EndpointResolver
    private let settings: RedisSettings
    private let onStateChange: (RedisState) -> Void
    private var phase = Phase.idle
    /// The number of attempts so far. Late results of an earlier attempt are ignored.
    private var attempt = 0
    /// The servers left to try.
    private var servers: ArraySlice<Server> = []
    /// The addresses of the current server left to try.
    private var candidates: ArraySlice<Connection.Address> = []
    private var tls: TLS?
    private var backoff: Backoff
    private var timer: EventLoop.Timer?
    private var reportedLoss = false

    init(
        _ talk: Talk, with guide: any EndpointResolver, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping (RedisState) -> Void = { _ in }
    ) {
        self.talk = talk
        self.guide = guide
        self.settings = settings
        self.loop = loop
        self.onStateChange = onStateChange
        backoff = settings.reconnectBackoff
        guide.whenMoved { [unowned self] in serverMoved(to: $0) }
    }

    /// True if a connection is ready for commands.
    var isOpen: Bool { if case .open = phase { true } else { false } }

    /// Starts an attempt to connect.
    func connect() {
        if case .closed = phase { return }
        attempt += 1
        phase = .finding
        limitAttempt()
        guide.findServers { [attempt] result in
            guard self.attempt == attempt, case .finding = self.phase else { return }
            switch result {
            case .success(let servers):
                self.servers = servers[...]
                self.tryNextServer(RedisError(.unavailable, "no server to connect to"))
            case .failure(let error): self.attemptFailed(error)
            }
        }
    }

    /// Drops the open connection, and immediately finds and connects to a server.
    func startAnew(_ error: RedisError) {
        if case .open(let connection) = phase { connection.fail(error) }
        guard case .resting = phase else { return }
        backoff.reset()
        connect()
    }

    /// Closes the connection for good.
    func close() {
        setTimer(nil)
        switch phase {
        case .connecting(let connection), .greeting(let connection, _), .open(let connection): connection.close()
        case .idle, .finding, .resolving, .resting, .closed: break
        }
        phase = .closed
        guide.close()
        talk.closed()
    }

    // MARK: Connecting

    /// Tries the next server, or fails with `error` if none is left.
    private func tryNextServer(_ error: RedisError) {
        guard let next = servers.popFirst() else { return attemptFailed(error) }
        server = next
        switch next.address {
        case .unix(let path):
            candidates = [.unix(path: path)]
            tryNextCandidate(RedisError(.unavailable, "no socket path to try"))
        case .tcp(let host, let port):
            phase = .resolving
            limitAttempt()
            DNSResolver.resolve(host, on: loop) { [attempt] result in
                guard self.attempt == attempt, case .resolving = self.phase, self.server == next else { return }
                switch result {
                case .success(let addresses):
                    self.candidates = addresses.map { .ip($0, port: port) }[...]
                    self.tryNextCandidate(RedisError(.unavailable, "the host name has no address"))
                case .failure(let error): self.tryNextServer(error)
                }
            }
        }
    }

    /// Connects to the server's next address, or tries the next server if no address is left.
    private func tryNextCandidate(_ error: RedisError) {
        guard let server, let candidate = candidates.popFirst() else { return tryNextServer(error) }
        do throws(RedisError) {
            if !server.login.usesTLS { tls = nil }
            if server.login.usesTLS, let host = server.address.host, tls?.host != host {
                tls = try TLS(host: host, authorities: settings.authorities)
            }
            let connection = try Connection(to: candidate, tls: tls, on: loop) { self.handle($0) }
            phase = .connecting(connection)
            limitAttempt()
        } catch {
            tryNextCandidate(error)
        }
    }

    private func handle(_ event: Connection.Event) {
        switch event {
        case .connected:
            if case .connecting(let connection) = phase { greet(connection) }
        case .reply(let reply):
            switch phase {
            case .open: talk.received(reply)
            case .greeting(let connection, let left): greeted(reply, connection, left - 1)
            case .idle, .finding, .resolving, .connecting, .resting, .closed: break
            }
        case .closed(let error):
            switch phase {
            case .connecting: tryNextCandidate(error)
            case .greeting: tryNextServer(error)
            case .open:
                backoff.reset()
                attemptFailed(error)
            case .idle, .finding, .resolving, .resting, .closed: break
            }
        }
    }

    // MARK: Logging in

    /// PING detects a server that requires a password, or that is still loading its data.
    private func greet(_ connection: Connection) {
        var greeting: [[RedisArgument]] = []
        if let credentials = server?.login.credentials {
            let user = credentials.user.map { [RedisArgument.string($0)] } ?? []
            greeting.append(["AUTH"] + user + [.string(credentials.password)])
        }
        if let database = server?.login.database, database != 0 { greeting.append(["SELECT", .integer(database)]) }
        greeting.append(["PING"])
        if let question = guide.question { greeting.append(question) }
        phase = .greeting(connection, left: greeting.count)
        for command in greeting { connection.send(command) }
        connection.flush()
    }

    private func greeted(_ reply: RedisValue, _ connection: Connection, _ left: Int) {
        do throws(RedisError) {
            if case .error(let error) = reply { throw error }
            guard left == 0 else { return phase = .greeting(connection, left: left) }
            if guide.question != nil, let server { try guide.judge(reply, of: server) }
        } catch {
            connection.close()
            return tryNextServer(error)
        }
        phase = .open(connection)
        setTimer(nil)
        reportedLoss = false
        onStateChange(.connected)
        talk.opened(connection)
        connection.flush()
    }

    private func serverMoved(to address: RedisAddress) {
        if isOpen && server?.address == address { return }
        startAnew(RedisError(.unavailable, "the primary is now at \(address)"))
    }

    // MARK: Failures

    /// Replaces the timer. One timer serves both the attempt and the delay after it, which never overlap.
    private func setTimer(_ new: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
        timer = new
    }

    private func limitAttempt() {
        setTimer(loop.schedule(after: settings.connectTimeout) { self.attemptTookTooLong() })
    }

    private func attemptTookTooLong() {
        let error = RedisError(.unavailable, "no connection within \(settings.connectTimeout)")
        switch phase {
        case .connecting(let connection):
            connection.close()
            tryNextCandidate(error)
        case .greeting(let connection, _):
            connection.close()
            tryNextServer(error)
        case .resolving: tryNextServer(error)
        case .finding: attemptFailed(error)
        case .idle, .open, .resting, .closed: break
        }
    }

    private func attemptFailed(_ error: RedisError) {
        phase = .resting
        setTimer(loop.schedule(after: backoff.next()) { self.connect() })
        if !reportedLoss {
            reportedLoss = true
            onStateChange(.lost(error))
        }
        talk.lost(error)
    }
}

/// The grace period for commands while there is no connection, and the error that they fail with after it.
struct OutageState {
    private let grace: Duration
    /// The time until which a command may wait for a connection.
    private(set) var graceEnd: ContinuousClock.Instant
    /// The error of a command that may not wait.
    private(set) var error = RedisError(.unavailable, "not connected yet")

    /// Creates the state of a new client, which has no connection and no failure yet.
    /// - Parameter connecting: the timeout of the first attempt.
    init(grace: Duration, connecting: Duration = .zero, now: ContinuousClock.Instant = .now) {
        self.grace = grace
        graceEnd = now + connecting + grace
    }

    /// Records a failed attempt to connect, or the loss of the connection.
    mutating func note(_ reason: RedisError, hadConnection: Bool, now: ContinuousClock.Instant = .now) {
        if hadConnection { graceEnd = now + grace }
        error = RedisError(.unavailable, "no connection: \(reason.message)")
    }
}
