import Kafka
import Telemetry
import Threads

/// The records that Kafka refuses at present: events and dead letters that wait until an operator has mended what is wrong with their topic.
public final class Refusals: Sendable {
    private struct State {
        var count = 0
        var since: ContinuousClock.Instant?
    }

    private let log: Log
    private let state = Lock(State())

    /// None so far.
    public init(log: Log) { self.log = log }

    /// Since when Kafka has refused records without a break; nil while it refuses none.
    public var since: ContinuousClock.Instant? { state.withLock { $0.since } }

    func begin(_ error: KafkaError, of topics: [String]) {
        let isFirst = state.withLock { state in
            state.count += 1
            if state.count == 1 { state.since = .now }
            return state.count == 1
        }
        guard isFirst else { return }
        log.error(
            "Kafka refuses events; their jobs wait until it takes them",
            ["error": "\(error)", "topics": Set(topics).sorted().joined(separator: ", ")])
    }

    func end() {
        let isLast = state.withLock { state in
            state.count -= 1
            if state.count == 0 { state.since = nil }
            return state.count == 0
        }
        if isLast { log.notice("Kafka refuses no events any more") }
    }
}
