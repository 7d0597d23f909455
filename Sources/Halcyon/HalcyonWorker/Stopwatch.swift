import HalcyonModel

/// Milliseconds from one stage's end to the next one's.
struct Stopwatch {
    private let start: ContinuousClock.Instant
    private var last: ContinuousClock.Instant

    init(since start: ContinuousClock.Instant = .now) {
        self.start = start
        last = start
    }

    /// Milliseconds since the last lap.
    mutating func lap() -> Double {
        let now = ContinuousClock.now
        defer { last = now }
        return last.duration(to: now).milliseconds
    }

    /// Milliseconds since the start.
    func total() -> Double { start.duration(to: .now).milliseconds }
}

extension Duration {
    var milliseconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }
}
