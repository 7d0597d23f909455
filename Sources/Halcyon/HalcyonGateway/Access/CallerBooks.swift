import Threads

/// What callers have taken of what they may take. A pure value.
struct CallerBooks {
    /// What is taken until it is given back.
    enum Kind: Hashable, Sendable {
        /// A request whose answer is made, or sent as a stream that ends by itself.
        case request
        /// An event stream.
        case stream
    }

    private struct Entry {
        var bucket: TokenBucket
        var requests = 0
        var streams = 0

        /// Nothing is lost by forgetting it.
        func isIdle(at now: ContinuousClock.Instant) -> Bool { requests == 0 && streams == 0 && bucket.isFull(at: now) }
    }

    private let limits: CallerLimits
    private var entries: [Caller.Account: Entry] = [:]
    /// Looking whom to forget is done once a second at most: it takes the longer the more there are.
    private var nextTidying: ContinuousClock.Instant?

    init(_ limits: CallerLimits) { self.limits = limits }

    /// How many callers are known.
    var count: Int { entries.count }

    /// The account that a caller's requests are counted to: its own, or that of all others when there is no room for more.
    mutating func account(of account: Caller.Account, at now: ContinuousClock.Instant) -> Caller.Account {
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

    /// Counts a request of an account that ``account(of:at:)`` gave.
    /// - Returns: nil when it may come; else how long until it may.
    mutating func take(_ account: Caller.Account, at now: ContinuousClock.Instant) -> Duration? {
        entries[account]?.bucket.take(at: now)
    }

    /// Takes a place of an account that ``account(of:at:)`` gave. False when it has them all.
    mutating func enter(_ account: Caller.Account, _ kind: Kind) -> Bool {
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

    /// Gives a place back.
    mutating func leave(_ account: Caller.Account, _ kind: Kind) {
        switch kind {
        case .request: entries[account]?.requests -= 1
        case .stream: entries[account]?.streams -= 1
        }
    }
}
