/// A token bucket: limits the rate of an action to a burst in the short term and to an average in the long term. A pure
/// value that gets the time from its caller.
public struct TokenBucket: Hashable, Sendable {
    /// The number of tokens in a full bucket, at least 1.
    public let burst: Double
    /// The number of tokens added per second, more than 0.
    public let rate: Double
    private var tokens: Double
    private var lastRefill: ContinuousClock.Instant

    /// Creates a full bucket.
    public init(rate: Double, burst: Double, now: ContinuousClock.Instant) {
        precondition(rate > 0, "the refill rate must be positive")
        self.rate = rate
        self.burst = max(1, burst)
        tokens = self.burst
        lastRefill = now
    }

    /// Takes a token, if one is available.
    /// - Returns: Nil if a token was taken, otherwise the time until one is available.
    public mutating func take(at now: ContinuousClock.Instant) -> Duration? {
        tokens = level(at: now)
        lastRefill = max(lastRefill, now)
        guard tokens >= 1 else { return .seconds((1 - tokens) / rate) }
        tokens -= 1
        return nil
    }

    /// Returns a token that was taken and not used.
    public mutating func giveBack() { tokens = min(burst, tokens + 1) }

    /// True if the bucket is full, so that it can be discarded without loss.
    public func isFull(at now: ContinuousClock.Instant) -> Bool { level(at: now) >= burst }

    private func level(at now: ContinuousClock.Instant) -> Double {
        min(burst, tokens + rate * max(0, lastRefill.duration(to: now) / .seconds(1)))
    }
}
