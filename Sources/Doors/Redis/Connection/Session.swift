import Threads

/// What is said on a session's connections. It lives on the session's loop, inside the session.
protocol Conversation: AnyObject, SendableMetatype {
    /// A connection is ready for commands.
    func opened(_ connection: Connection)
    /// The next reply on the open connection.
    func received(_ reply: RedisValue)
    /// The open connection is gone, or an attempt at one failed; another follows.
    func lost(_ error: RedisError)
    /// The session is over.
    func closed()
}

/// Keeps a connection to an endpoint: connects, logs in, and after a loss rests and connects again, until it is closed.
actor Session<Talk: Conversation> {
    private enum Phase {
        case idle
        case resolving
        case connecting(Connection)
        /// Logging in; so many replies are yet to come.
        case greeting(Connection, left: Int)
        case open(Connection)
        case resting
        case closed
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// What is said.
    let talk: Talk

    private let endpoint: RedisEndpoint
    private let settings: RedisSettings
    private let onStateChange: @Sendable (RedisState) -> Void
    private var phase = Phase.idle
    private var candidates: [Connection.Address] = []
    private var tls: TLS?
    private var backoff: Backoff
    private var timer: EventLoop.Timer?
    private var toldOfLoss = false

    init(
        _ talk: sending Talk, with endpoint: RedisEndpoint, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping @Sendable (RedisState) -> Void
    ) {
        self.talk = talk
        self.endpoint = endpoint
        self.settings = settings
        self.loop = loop
        self.onStateChange = onStateChange
        backoff = Backoff(settings.reconnectDelay)
    }

    /// Begins an attempt to connect.
    func connect() {
        if case .closed = phase { return }
        phase = .resolving
        limitAttempt()
        switch endpoint.place {
        case .unix(let path):
            candidates = [.unix(path: path)]
            tryNextCandidate(RedisError(.unavailable, "no socket"))
        case .tcp(let host, let port):
            HostNames.resolve(host) { [self] result in
                loop.perform {
                    self.assumeIsolated { $0.resolved(result.map { $0.map { .ip($0, port: port) } }) }
                }
            }
        }
    }

    /// Ends everything.
    func close() {
        setTimer(nil)
        switch phase {
        case .connecting(let connection), .greeting(let connection, _), .open(let connection): connection.close()
        case .idle, .resolving, .resting, .closed: break
        }
        phase = .closed
        talk.closed()
    }

    // MARK: Connecting

    private func resolved(_ result: Result<[Connection.Address], RedisError>) {
        guard case .resolving = phase else { return }
        switch result {
        case .success(let addresses):
            candidates = addresses
            tryNextCandidate(RedisError(.unavailable, "the name has no address"))
        case .failure(let error): attemptFailed(error)
        }
    }

    /// Connects to the next address, or fails with `error` when there is none left.
    private func tryNextCandidate(_ error: RedisError) {
        guard !candidates.isEmpty else { return attemptFailed(error) }
        do throws(RedisError) {
            if endpoint.usesTLS && tls == nil, case .tcp(let host, _) = endpoint.place {
                tls = try TLS(host: host, authorities: settings.authorities)
            }
            let connection = try Connection(to: candidates.removeFirst(), tls: tls, on: loop) { event in
                self.handle(event)
            }
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
            case .idle, .resolving, .connecting, .resting, .closed: break
            }
        case .closed(let error):
            switch phase {
            case .connecting: tryNextCandidate(error)
            case .greeting: attemptFailed(error)
            case .open:
                backoff.reset()
                attemptFailed(error)
            case .idle, .resolving, .resting, .closed: break
            }
        }
    }

    // MARK: Logging in

    /// PING comes last: it finds out a server that wants a password nobody gave, or that is still loading its data.
    private func greet(_ connection: Connection) {
        var greeting: [[RedisArgument]] = []
        if let password = endpoint.password {
            let user = endpoint.user.map { [RedisArgument.string($0)] } ?? []
            greeting.append(["AUTH"] + user + [.string(password)])
        }
        if endpoint.database != 0 { greeting.append(["SELECT", .integer(endpoint.database)]) }
        greeting.append(["PING"])
        phase = .greeting(connection, left: greeting.count)
        for command in greeting { connection.send(command) }
        connection.flush()
    }

    private func greeted(_ reply: RedisValue, _ connection: Connection, _ left: Int) {
        if case .error(let error) = reply {
            connection.close()
            return attemptFailed(error)
        }
        guard left == 0 else { return phase = .greeting(connection, left: left) }
        phase = .open(connection)
        setTimer(nil)
        toldOfLoss = false
        onStateChange(.connected)
        talk.opened(connection)
        connection.flush()
    }

    // MARK: Failing

    /// One timer serves an attempt and the rest after it: there is never more than one of them.
    private func setTimer(_ new: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
        timer = new
    }

    private func limitAttempt() {
        let limit = settings.connectTimeout
        setTimer(
            loop.schedule(after: limit) { self.attemptTookTooLong() })
    }

    private func attemptTookTooLong() {
        let error = RedisError(.unavailable, "no connection within \(settings.connectTimeout)")
        switch phase {
        case .connecting(let connection):
            connection.close()
            tryNextCandidate(error)
        case .greeting(let connection, _):
            connection.close()
            attemptFailed(error)
        case .resolving: attemptFailed(error)
        case .idle, .open, .resting, .closed: break
        }
    }

    private func attemptFailed(_ error: RedisError) {
        phase = .resting
        setTimer(
            loop.schedule(after: backoff.next()) { self.connect() })
        if !toldOfLoss {
            toldOfLoss = true
            onStateChange(.lost(error))
        }
        talk.lost(error)
    }
}
