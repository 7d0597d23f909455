/// How long callers are asked to wait while there is no connection, and what they are told then.
struct Outage {
    private let grace: Duration
    /// Until when a caller may wait for a connection.
    private(set) var graceEnd: ContinuousClock.Instant
    /// What a caller is told who does not wait.
    private(set) var error = RedisError(.unavailable, "not connected yet")

    /// The start of a client: it has no connection, and no reason to complain.
    /// - Parameter connecting: how long the first attempt may take.
    init(grace: Duration, connecting: Duration = .zero, now: ContinuousClock.Instant = .now) {
        self.grace = grace
        graceEnd = now + connecting + grace
    }

    /// There is still, or again, no connection.
    mutating func note(_ reason: RedisError, hadConnection: Bool, now: ContinuousClock.Instant = .now) {
        if hadConnection { graceEnd = now + grace }
        error = RedisError(.unavailable, "no connection: \(reason.message)")
    }
}
