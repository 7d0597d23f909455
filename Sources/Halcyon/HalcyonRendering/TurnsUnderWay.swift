import Threads

/// The renderings that have a thread, and by when each has to give it back; nil while it waits for memory.
final class TurnsUnderWay: Sendable {
    private let turns = Lock<[ObjectIdentifier: (turn: Turn, limit: ContinuousClock.Instant?)]>([:])

    func enter(_ turn: Turn, until limit: ContinuousClock.Instant?) {
        turns.withLock { $0[ObjectIdentifier(turn)] = (turn, limit) }
    }

    func leave(_ turn: Turn) {
        turns.withLock { $0[ObjectIdentifier(turn)] = nil }
    }

    /// The first limit of them all.
    var firstLimit: ContinuousClock.Instant? {
        turns.withLock { $0.values.lazy.compactMap(\.limit).min() }
    }

    func stopAll() {
        for (turn, _) in turns.withLock({ Array($0.values) }) { turn.stop(.cancelled) }
    }
}
