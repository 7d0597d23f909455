/// How often something may happen: so often at once, and so often a second in the long run. A pure value.
struct TokenBucket: Hashable {
    /// How much may come at once, at least 1.
    let burst: Double
    /// How much comes back in a second.
    let rate: Double
    private var tokens: Double
    private var last: ContinuousClock.Instant

    /// A full one.
    init(rate: Double, burst: Double, now: ContinuousClock.Instant) {
        (self.rate, self.burst, tokens, last) = (rate, max(1, burst), max(1, burst), now)
    }

    /// Takes one.
    /// - Returns: nil when there was one; else how long until there is.
    mutating func take(at now: ContinuousClock.Instant) -> Duration? {
        tokens = min(burst, tokens + rate * max(0, last.duration(to: now) / .seconds(1)))
        last = max(last, now)
        if tokens >= 1 {
            tokens -= 1
            return nil
        }
        return .seconds((1 - tokens) / rate)
    }

    /// Whether it is as full as it can be, so that nothing is lost by forgetting it.
    func isFull(at now: ContinuousClock.Instant) -> Bool {
        tokens + rate * max(0, last.duration(to: now) / .seconds(1)) >= burst
    }
}
