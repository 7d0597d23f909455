/// How long to rest before the next attempt to connect: twice as long each time up to a limit, less a random part, so that many
/// clients of a server that comes back do not all knock at once ("full jitter", here over the upper half).
struct Backoff {
    private let range: ClosedRange<Duration>
    private var failures = 0

    init(_ range: ClosedRange<Duration>) { self.range = range }

    /// The rest after one more failure; `chance` is from 0 to 1.
    mutating func next(chance: Double = .random(in: 0...1)) -> Duration {
        let longest = min(range.upperBound, range.lowerBound * (1 << min(failures, 20)))
        failures += 1
        return longest * (0.5 + chance / 2)
    }

    /// An attempt succeeded.
    mutating func reset() { failures = 0 }
}
