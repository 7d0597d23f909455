import HalcyonModel
import Telemetry
import Threads

/// A book that several workers have, told again and again that the loads of this one go on: a load of which nothing is heard for
/// ``OriginLimits/lease`` counts as over, for its worker has died.
final class OriginKeeper: OriginBook {
    private struct State {
        var loads: [Origin: Set<String>] = [:]
        var isRunning = false
    }

    private let book: any OriginBook
    private let interval: Duration
    private let errors: ToleratedErrors
    private let state = Lock(State())

    init(_ book: any OriginBook, lease: Duration, _ errors: ToleratedErrors) {
        self.book = book
        self.errors = errors
        // Two of three may fail.
        interval = lease / 3
    }

    func enter(_ origin: Origin, load: String) async throws -> OriginAnswer {
        let answer = try await book.enter(origin, load: load)
        if answer == .go { keep(load, of: origin) }
        return answer
    }

    func leave(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws {
        state.withLock { state in
            state.loads[origin]?.remove(load)
            if state.loads[origin]?.isEmpty == true { state.loads[origin] = nil }
        }
        try await book.leave(origin, load: load, of: url, outcome)
    }

    func prolong(_ loads: [Origin: Set<String>]) async throws { try await book.prolong(loads) }

    private func keep(_ load: String, of origin: Origin) {
        let mustStart = state.withLock { state in
            state.loads[origin, default: []].insert(load)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { Task { await run() } }
    }

    /// For as long as there are loads.
    private func run() async {
        while true {
            await Task.sleepUnlessCancelled(for: interval)
            let loads = state.withLock { state in
                state.isRunning = !state.loads.isEmpty
                return state.loads
            }
            if loads.isEmpty { return }
            // What Redis does not hear this time it hears the next.
            await errors.tolerating { try await prolong(loads) }
        }
    }
}

/// What is counted of origins, all together: their names come from jobs and have no bound, so none is a label.
struct OriginMetrics: Sendable {
    /// Origins that are left alone, and until when, as far as loads of this worker have met with it.
    private final class Resting: Sendable {
        private let ends = Lock<[Origin: ContinuousClock.Instant]>([:])

        func note(_ origin: Origin, for seconds: Double) {
            ends.withLock { ends in
                // So it stays as small as what rests, whether or not anybody asks.
                ends = ends.filter { .now < $0.value }
                ends[origin] = .now + .seconds(seconds)
            }
        }

        var count: Int { ends.withLock { $0.values.count { .now < $0 } } }
    }

    private let resting = Resting()
    private let waiting: Gauge
    private let refused: Counter
    private let loads: [OriginOutcome: Counter]

    init(_ metrics: Metrics) {
        waiting = metrics.gauge("halcyon_origin_waiting", help: "Loads that wait until their origin may be asked.")
        refused = metrics.counter(
            "halcyon_origin_refusals_total",
            help: "Loads that were not begun: their origin had failed too often and is left alone for a while.")
        loads = Dictionary(
            uniqueKeysWithValues: OriginOutcome.allCases.map { outcome in
                let counter = metrics.counter(
                    "halcyon_origin_loads_total",
                    help: "Loads from origins, by how they went as far as the origin is concerned.",
                    labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
        metrics.reading(
            .gauge, "halcyon_origins_resting",
            help: "Origins that are left alone now after failures, as far as jobs of this worker asked for them."
        ) { [resting] in Double(resting.count) }
    }

    /// Counts a load as waiting while it does.
    /// - Throws: what `enter` throws; a ``Failure`` of it says that the origin is left alone.
    func waiting<Pass: Sendable>(for origin: Origin, _ enter: () async throws -> Pass) async throws -> Pass {
        waiting.add(1)
        defer { waiting.add(-1) }
        do {
            return try await enter()
        } catch let failure as Failure {
            refused.add()
            resting.note(origin, for: failure.retryAfter ?? 0)
            throw failure
        }
    }

    /// A load has ended.
    func count(_ outcome: OriginOutcome) { loads[outcome]?.add() }
}
