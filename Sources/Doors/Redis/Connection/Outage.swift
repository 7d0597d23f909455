/// How long callers are asked to wait while there is no connection, and what they are told then.
struct Outage {
    private let grace: Duration
    /// Until when a caller may wait for a connection.
    private(set) var graceEnd: ContinuousClock.Instant
    /// What a caller is told who does not wait.
    private(set) var error = RedisError(.unavailable, "not connected yet")

    /// The start of a client: it has no connection, and no reason to complain.
    init(grace: Duration, now: ContinuousClock.Instant = .now) {
        self.grace = grace
        graceEnd = now + grace
    }

    /// There is still, or again, no connection.
    mutating func note(_ reason: RedisError, hadConnection: Bool, now: ContinuousClock.Instant = .now) {
        if hadConnection { graceEnd = now + grace }
        error = RedisError(.unavailable, "no connection: \(reason.message)")
    }
}
