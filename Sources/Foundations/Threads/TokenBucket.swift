/// A token bucket: limits how often something may happen, to a burst at once and to a rate in the long run. A pure
/// value, told the time by its caller.
public struct TokenBucket: Hashable, Sendable {
    /// The number of tokens in a full bucket, at least 1.
    public let burst: Double
    /// The number of tokens added per second, more than 0.
    public let rate: Double
    private var tokens: Double
    private var lastRefill: ContinuousClock.Instant

    /// A full bucket.
    public init(rate: Double, burst: Double, now: ContinuousClock.Instant) {
        precondition(rate > 0, "an empty bucket must fill again")
        self.rate = rate
        self.burst = max(1, burst)
        tokens = self.burst
        lastRefill = now
    }

    /// Takes a token, if there is one.
    /// - Returns: nil if it was taken; else the time until there is one.
    public mutating func take(at now: ContinuousClock.Instant) -> Duration? {
        tokens = level(at: now)
        lastRefill = max(lastRefill, now)
        guard tokens >= 1 else { return .seconds((1 - tokens) / rate) }
        tokens -= 1
        return nil
    }

    /// Whether the bucket is full, so that nothing is lost by forgetting it.
    public func isFull(at now: ContinuousClock.Instant) -> Bool { level(at: now) >= burst }

    private func level(at now: ContinuousClock.Instant) -> Double {
        min(burst, tokens + rate * max(0, lastRefill.duration(to: now) / .seconds(1)))
    }
}
