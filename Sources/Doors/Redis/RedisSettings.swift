import Threads

/// How patient a client is.
public struct RedisSettings: Hashable, Sendable {
    /// How long a command may wait for its reply. A server that has said nothing at all for so long is given up and connected
    /// to anew. Commands that block on purpose (BLPOP) have no place on a shared connection.
    public var commandTimeout: Duration = .seconds(2)
    /// How long one attempt to connect may take, with TLS, AUTH and SELECT.
    public var connectTimeout: Duration = .seconds(2)
    /// For how long after a connection was lost commands wait for the next one; at the start they wait for ``connectTimeout`` besides. Later
    /// they fail at once, until there is one.
    public var outageGrace: Duration = .milliseconds(500)
    /// The rest between attempts to connect: doubled after each, jittered, within these bounds.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(50)...(.seconds(5))

    var reconnectBackoff: Backoff { reconnectBackoff(atMost: reconnectDelay.upperBound) }

    func reconnectBackoff(atMost maximum: Duration) -> Backoff {
        Backoff(initial: reconnectDelay.lowerBound, maximum: max(reconnectDelay.lowerBound, maximum), jitter: 0.5)
    }

    /// A subscriber that has heard nothing for so long asks the server for a sign of life.
    public var idlePing: Duration = .seconds(10)
    /// A PEM file of certificate authorities to trust with `rediss://` in place of the system's.
    public var authorities: String?

    /// The defaults.
    public init() {}
}

/// Whether a client has its connections. Told once per change.
public enum RedisState: Hashable, Sendable {
    /// Connected, logged in and ready. A cluster is when its map is known and no master that was tried is away.
    case connected
    /// Some masters of a cluster are away, which are tried again; the others serve on.
    case impaired(RedisError)
    /// The connection was lost, or the first attempt failed; no master of a cluster is there. It is tried again until the client is
    /// closed.
    case lost(RedisError)
}
