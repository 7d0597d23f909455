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
