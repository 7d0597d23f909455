/// A circuit breaker: after too many failures it opens, and no request may begin for a while. Then it is half-open: one
/// request, the probe, determines whether it closes again. A pure value that gets the time from its caller.
///
/// `Key` identifies what a request asks for, such as a URL.
public struct CircuitBreaker<Key: Hashable & Sendable>: Sendable {
    /// A point in time on the clock of all deadlines.
    public typealias Instant = ContinuousClock.Instant

    /// The conditions that open a breaker, and for how long.
    public struct Policy: Hashable, Sendable {
        /// The number of failures that open the breaker; 0 for never.
        public var failures: Int
        /// The number of recent requests among which the failures are counted.
        public var samples: Int
        /// The minimum number of distinct keys among the failures.
        public var keys: Int
        /// The age at which a request is no longer counted; nil for no limit.
        public var window: Duration?
        /// The time for which the breaker stays open. It grows with each failed probe.
        public var openTime: Backoff

        /// Creates a policy. Unless `samples` is given, `failures` consecutive failures open the breaker.
        public init(failures: Int, samples: Int? = nil, keys: Int = 1, window: Duration? = nil, openTime: Backoff) {
            self.failures = failures
            self.samples = samples ?? failures
            self.keys = keys
            self.window = window
            self.openTime = openTime
        }
    }

    /// The state of a breaker.
    public enum State: Hashable, Sendable {
        /// Any request may begin.
        case closed
        /// No request may begin before the given time.
        case open(until: Instant)
        /// One request may begin, as the probe.
        case halfOpen
        /// No request may begin because a probe is in flight.
        case probing
    }

    /// The outcome of a request.
    public enum Outcome: Hashable, Sendable {
        /// The request succeeded.
        case success
        /// The request failed.
        case failure
        /// The request was abandoned and is not counted.
        case unknown
    }

    private let policy: Policy
    private var openTime: Backoff
    /// The recent requests, oldest first, recorded as long as one of them failed.
    private var samples: [(end: Instant, failedKey: Key?)] = []
    private var openUntil: Instant?
    private var isProbing = false

    /// Creates a closed breaker.
    public init(_ policy: Policy) {
        self.policy = policy
        openTime = policy.openTime
    }

    /// True if the breaker is closed and has no recorded failures.
    public var isIdle: Bool { samples.isEmpty && openUntil == nil }

    /// Returns the state at the given time.
    public func state(at now: Instant) -> State {
        guard let openUntil else { return .closed }
        if isProbing { return .probing }
        return now < openUntil ? .open(until: openUntil) : .halfOpen
    }

    /// Begins a probe if the state is ``State/halfOpen``.
    /// - Returns: True if the request is the probe.
    public mutating func beginProbe(at now: Instant) -> Bool {
        guard state(at: now) == .halfOpen else { return false }
        isProbing = true
        return true
    }

    /// Abandons the probe without an outcome, so that another one may begin.
    public mutating func abandonProbe() { isProbing = false }

    /// Records the outcome of a request.
    /// - Parameter isProbe: True if the request is the probe. While the breaker is open, other requests are ignored
    ///   because they began earlier.
    public mutating func record(_ outcome: Outcome, of key: Key, isProbe: Bool, at now: Instant) {
        if isProbe { abandonProbe() }
        guard outcome != .unknown, policy.failures > 0 else { return }
        if openUntil == nil {
            if addSample(outcome == .failure ? key : nil, at: now) { open(at: now) }
        } else if isProbe {
            if outcome == .failure { open(at: now) } else { close() }
        }
    }

    /// Adds a sample. Returns true if there are too many failures now.
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
