/// A circuit breaker: after too many failures it opens, so that no request may begin for a while. Then one request, the
/// probe, finds out whether it closes again. A pure value, told the time by its caller.
///
/// `Key` is what a request asks for, such as a URL.
public struct CircuitBreaker<Key: Hashable & Sendable>: Sendable {
    /// A moment, by the clock of all time limits.
    public typealias Instant = ContinuousClock.Instant

    /// Settings for when a breaker opens, and for how long.
    public struct Policy: Hashable, Sendable {
        /// The number of failures that open the breaker; 0 for never.
        public var failures: Int
        /// The number of last requests among which the failures are counted.
        public var samples: Int
        /// The number of different keys that the failures must be of at least.
        public var keys: Int
        /// The age at which a request is no longer counted; nil for none.
        public var window: Duration?
        /// The time for which the breaker stays open. It grows with each failure of a probe.
        public var openTime: Backoff

        /// A policy that opens the breaker after `failures` in a row, unless `samples` is given.
        public init(failures: Int, samples: Int? = nil, keys: Int = 1, window: Duration? = nil, openTime: Backoff) {
            self.failures = failures
            self.samples = samples ?? failures
            self.keys = keys
            self.window = window
            self.openTime = openTime
        }
    }

    /// The states of a breaker.
    public enum State: Hashable, Sendable {
        /// Any request may begin.
        case closed
        /// No request may begin before that moment.
        case open(until: Instant)
        /// One request may begin, as the probe.
        case halfOpen
        /// No request may begin: a probe is under way.
        case probing
    }

    /// The outcome of a request.
    public enum Outcome: Hashable, Sendable {
        /// The request succeeded.
        case success
        /// The request failed.
        case failure
        /// The request was given up, and says nothing.
        case unknown
    }

    private let policy: Policy
    private var openTime: Backoff
    /// The last requests, the oldest first, while one of them failed.
    private var samples: [(end: Instant, failedKey: Key?)] = []
    private var openUntil: Instant?
    private var isProbing = false

    /// A closed breaker.
    public init(_ policy: Policy) {
        self.policy = policy
        openTime = policy.openTime
    }

    /// Whether there is nothing to remember.
    public var isIdle: Bool { samples.isEmpty && openUntil == nil }

    /// Returns the state at a moment.
    public func state(at now: Instant) -> State {
        guard let openUntil else { return .closed }
        if isProbing { return .probing }
        return now < openUntil ? .open(until: openUntil) : .halfOpen
    }

    /// Notes that a request begins as the probe, if the state is ``State/halfOpen``.
    /// - Returns: whether it is the probe.
    public mutating func beginProbe(at now: Instant) -> Bool {
        guard state(at: now) == .halfOpen else { return false }
        isProbing = true
        return true
    }

    /// Notes that nothing will be heard of the probe, so that another one may begin.
    public mutating func abandonProbe() { isProbing = false }

    /// Notes the outcome of a request.
    /// - Parameter isProbe: whether it counts while the breaker is open. Requests that began before say nothing new.
    public mutating func record(_ outcome: Outcome, of key: Key, isProbe: Bool, at now: Instant) {
        if isProbe { abandonProbe() }
        guard outcome != .unknown, policy.failures > 0 else { return }
        if openUntil == nil {
            if addSample(outcome == .failure ? key : nil, at: now) { open(at: now) }
        } else if isProbe {
            if outcome == .failure { open(at: now) } else { close() }
        }
    }

    /// Returns whether there are too many failures now.
    private mutating func addSample(_ failedKey: Key?, at now: Instant) -> Bool {
        samples.append((now, failedKey))
        if let window = policy.window { samples.removeAll { $0.end <= now - window } }
        samples = Array(samples.suffix(policy.samples))
        let failedKeys = samples.compactMap(\.failedKey)
        if failedKeys.isEmpty { samples = [] }
        return failedKeys.count >= policy.failures && Set(failedKeys).count >= policy.keys
    }

    private mutating func open(at now: Instant) {
        samples = []
        openUntil = now + openTime.next()
    }

    private mutating func close() {
        openUntil = nil
        openTime.reset()
    }
}
