/// Milliseconds from one stage's end to the next one's.
struct Stopwatch {
    private var last = ContinuousClock.now

    /// Milliseconds since the last lap.
    mutating func lap() -> Double {
        let now = ContinuousClock.now
        defer { last = now }
        return last.duration(to: now).milliseconds
    }
}

extension Duration {
    var milliseconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }
}
