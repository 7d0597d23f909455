import Concurrency

/// The state of the rate limiter: a token bucket and the permits of each caller. A pure value.
struct RateLimiterState {
    /// A kind of permit.
    enum Kind: Hashable, Sendable {
        /// A request that is being processed, or whose response is a finite stream.
        case request
        /// An event stream.
        case stream
    }

    private struct Entry {
        var bucket: TokenBucket
        var requests = 0
        var streams = 0

        /// True if the entry can be removed without a change of behavior.
        func isIdle(at now: ContinuousClock.Instant) -> Bool { requests == 0 && streams == 0 && bucket.isFull(at: now) }
    }

    private let limits: CallerLimits
    private var entries: [Principal.Account: Entry] = [:]
    /// The earliest time of the next cleanup. It runs at most once a second, because its cost grows with the entries.
    private var nextTidying: ContinuousClock.Instant?

    init(_ limits: CallerLimits) { self.limits = limits }

    /// The number of tracked callers.
    var count: Int { entries.count }

    /// Returns the account that a caller's requests count towards: its own, or the shared one if the table is full.
    mutating func account(of account: Principal.Account, at now: ContinuousClock.Instant) -> Principal.Account {
        if entries[account] != nil { return account }
        if entries.count >= limits.mostCallers { tidy(now) }
        let account = entries.count >= limits.mostCallers ? .others : account
        if entries[account] == nil {
            entries[account] = Entry(bucket: TokenBucket(rate: limits.rate, burst: limits.burst, now: now))
        }
        return account
    }

    private mutating func tidy(_ now: ContinuousClock.Instant) {
        if let nextTidying, now < nextTidying { return }
        nextTidying = now + .seconds(1)
        entries = entries.filter { !$0.value.isIdle(at: now) }
    }

    /// Takes a token for a request.
    /// - Parameter account: an account that ``account(of:at:)`` returned.
    /// - Returns: nil if the request is allowed, otherwise the time until the next token.
    mutating func consumeToken(_ account: Principal.Account, at now: ContinuousClock.Instant) -> Duration? {
        entries[account]?.bucket.take(at: now)
    }

    /// Acquires a permit for an account that ``account(of:at:)`` returned. Returns false at the limit.
    mutating func acquirePermit(_ account: Principal.Account, _ kind: Kind) -> Bool {
        switch kind {
        case .request:
            guard let taken = entries[account]?.requests, taken < limits.concurrency else { return false }
            entries[account]?.requests += 1
        case .stream:
            guard let taken = entries[account]?.streams, taken < limits.streams else { return false }
            entries[account]?.streams += 1
        }
        return true
    }

    /// Releases a permit.
    mutating func releasePermit(_ account: Principal.Account, _ kind: Kind) {
        switch kind {
        case .request: entries[account]?.requests -= 1
        case .stream: entries[account]?.streams -= 1
        }
    }
}
