import Concurrency
import HalcyonModel
import Telemetry

/// A limiter store that renews the leases of this worker's loads in a shared store. A load whose lease of
/// ``OriginLimits/lease`` expires no longer counts, because its worker has crashed.
final class OriginLeaseRenewer: OriginLimiterStore {
    private struct State {
        var loads: [Origin: Set<String>] = [:]
        var isRunning = false
    }

    private let store: any OriginLimiterStore
    private let interval: Duration
    private let errors: ToleratedErrors
    private let state = Lock(State())

    init(_ store: any OriginLimiterStore, lease: Duration, _ errors: ToleratedErrors) {
        self.store = store
        self.errors = errors
        // Two of three renewals may fail.
        interval = lease / 3
    }

    func acquire(_ origin: Origin, load: String) async throws -> OriginAnswer {
        let answer = try await store.acquire(origin, load: load)
        if answer == .go { store(load, of: origin) }
        return answer
    }

    func release(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws {
        state.withLock { state in
            state.loads[origin]?.remove(load)
            if state.loads[origin]?.isEmpty == true { state.loads[origin] = nil }
        }
        try await store.release(origin, load: load, of: url, outcome)
    }

    func prolong(_ loads: [Origin: Set<String>]) async throws { try await store.prolong(loads) }

    private func store(_ load: String, of origin: Origin) {
        let mustStart = state.withLock { state in
            state.loads[origin, default: []].insert(load)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { Task { await run() } }
    }

    /// Renews leases until there are no more loads.
    private func run() async {
        while true {
            await Task.sleepUnlessCancelled(for: interval)
            let loads = state.withLock { state in
                state.isRunning = !state.loads.isEmpty
                return state.loads
            }
            if loads.isEmpty { return }
            // A failed renewal is retried in the next round.
            await errors.tolerating { try await prolong(loads) }
        }
    }
}

/// Metrics about origins, aggregated over all of them. Origins are not a label, because their names come from jobs and
/// are unbounded.
struct OriginMetrics: Sendable {
    /// The open circuit breakers that loads of this worker have met, and when they become half-open.
    private final class BreakerProbe: Sendable {
        private let ends = Lock<[Origin: ContinuousClock.Instant]>([:])

        func note(_ origin: Origin, for seconds: Double) {
            ends.withLock { ends in
                // Removes expired entries here, so that the map stays small even if the gauge is never read.
                ends = ends.filter { .now < $0.value }
                ends[origin] = .now + .seconds(seconds)
            }
        }

        var count: Int { ends.withLock { $0.values.count { .now < $0 } } }
    }

    private let resting = BreakerProbe()
    private let waiting: Gauge
    private let refused: Counter
    private let loads: [OriginOutcome: Counter]

    init(_ metrics: Metrics) {
        waiting = metrics.gauge(
            "halcyon_origin_waiting",
            help: "Loads waiting for the rate or concurrency limit of their origin, or for a fetch permit.")
        refused = metrics.counter(
            "halcyon_origin_refusals_total",
            help: "Loads rejected because the circuit breaker of their origin was open.")
        loads = Dictionary(
            uniqueKeysWithValues: OriginOutcome.allCases.map { outcome in
                let counter = metrics.counter(
                    "halcyon_origin_loads_total",
                    help: "Loads from origins, by outcome.",
                    labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
        metrics.observable(
            .gauge, "halcyon_origin_circuit_breakers_open",
            help: "Origins whose circuit breaker is open, as seen by jobs of this worker."
        ) { [resting] in Double(resting.count) }
    }

    /// Counts a load as waiting while `enter` runs.
    /// - Throws: The errors of `enter`. A ``JobError`` means that the circuit breaker is open.
    func waiting<OriginPermit: Sendable>(for origin: Origin, _ enter: () async throws -> OriginPermit) async throws
        -> OriginPermit
    {
        waiting.add(1)
        defer { waiting.add(-1) }
        do {
            return try await enter()
        } catch let failure as JobError {
            refused.add()
            resting.note(origin, for: failure.retryAfter ?? 0)
            throw failure
        }
    }

    /// Counts a load that has ended.
    func count(_ outcome: OriginOutcome) { loads[outcome]?.add() }
}
