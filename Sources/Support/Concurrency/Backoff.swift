/// Exponential backoff: the delays before repeated attempts, each longer than the one before up to a maximum. A pure
/// value.
///
/// With jitter, a part of each delay is random, so that the clients of a recovering server do not all retry at the same
/// time.
public struct Backoff: Hashable, Sendable {
    /// The longest delay after the first failure.
    public let initial: Duration
    /// The longest delay after any number of failures.
    public let maximum: Duration
    /// The growth of the delay with each failure.
    public let factor: Double
    /// The part of each delay that is random, from 0, for none, to 1, for "full jitter".
    public let jitter: Double
    /// The delay after the next failure without its random part.
    private var ceiling: Duration

    /// Creates a backoff without failed attempts.
    public init(initial: Duration, maximum: Duration, factor: Double = 2, jitter: Double = 0) {
        (self.initial, self.maximum, self.factor, self.jitter) = (initial, maximum, factor, jitter)
        ceiling = min(initial, maximum)
    }

    /// Returns the delay after one more failure.
    /// - Parameter least: The minimum delay, as requested by a server. It may exceed the maximum.
    public mutating func next(atLeast least: Duration = .zero) -> Duration {
        var random = SystemRandomNumberGenerator()
        return next(atLeast: least, using: &random)
    }

    /// Returns the delay after one more failure, its random part drawn from `random`.
    public mutating func next(
        atLeast least: Duration = .zero, using random: inout some RandomNumberGenerator
    ) -> Duration {
        let delay = jitter > 0 ? ceiling * (1 - jitter * .random(in: 0..<1, using: &random)) : ceiling
        ceiling = ceiling < maximum / factor ? ceiling * factor : maximum
        return max(least, delay)
    }

    /// Resets the delay to the initial one after a successful attempt.
    public mutating func reset() { ceiling = min(initial, maximum) }
}
