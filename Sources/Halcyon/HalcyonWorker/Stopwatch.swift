/// From one moment to a later one, as it was measured: timings tell how long it was, and spans of traces when, too.
struct Lap: Sendable {
    let start: ContinuousClock.Instant
    let end: ContinuousClock.Instant

    /// Until now.
    init(from start: ContinuousClock.Instant) { self.init(from: start, to: .now) }

    init(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) {
        self.start = start
        self.end = end
    }

    /// How long it was.
    var milliseconds: Double { start.duration(to: end).milliseconds }
}

/// Measures from one stage's end to the next one's.
struct Stopwatch {
    private var last = ContinuousClock.now

    /// What passed since the last lap.
    mutating func lap() -> Lap {
        let lap = Lap(from: last)
        last = lap.end
        return lap
    }
}

extension Duration {
    var milliseconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }
}
