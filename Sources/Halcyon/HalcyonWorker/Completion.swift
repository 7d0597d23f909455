import HalcyonCluster
import HalcyonModel
import Threads

/// Gets a job all results that were not there: made for it, or for another that wants the same.
struct Completion: Sendable {
    let line: Line
    let work: Work
    let taken: TakenRecord
    /// Which attempt at the job it is, from 1.
    let attempt: Int

    /// How often a job asks again for what was said to be there and is not.
    private static let mostRounds = 5

    /// - Parameter found: what is there.
    /// - Throws: ``Failure``; `CancellationError` when the job is taken off its work.
    func run(_ found: [ResultKey: ReadyResult]) async throws -> Ready {
        let beginning = Beginning(taken, line, work, attempt)
        let start = ContinuousClock.now
        do {
            let ready = try await complete(found, beginning, since: start)
            await beginning.told()
            return ready
        } catch {
            work.trace?.add(.lease, Lap(from: start, to: beginning.moment ?? .now))
            // Nothing is told of a job after its end.
            await beginning.told()
            throw error
        }
    }

    private func complete(
        _ found: [ResultKey: ReadyResult], _ beginning: Beginning, since start: ContinuousClock.Instant
    ) async throws -> Ready {
        var (results, made, failures) = (found, [ResultKey: Made](), [ResultKey: Failure]())
        var timings = Timings()
        var origin = work.missing(from: found).isEmpty ? ResultOrigin.memory : .coalesced
        var round = 0
        while true {
            let missing = work.missing(from: results).filter {
                made[work.keys[$0]] == nil && failures[work.keys[$0]] == nil
            }
            if missing.isEmpty { break }
            guard round < Self.mostRounds else {
                throw Failure(
                    .internal, "the result was made \(round) times and had gone each time when it was looked for")
            }
            let arrivals: [ResultKey: Flights<Wish, Making>.Arrival]
            do {
                arrivals = try await line.coalesce.obtain(
                    missing, of: work, anew: work.job.cache.reload || round > 1, onBegin: beginning.begin)
            } catch is CancellationError where !Task.isCancelled && round < Self.mostRounds - 1 {
                // Not this job's: it came aboard work that others had left.
                round += 1
                continue
            }
            // Each of those that fail is found by a round of its own, and then done with.
            let failed = failures.count
            var elsewhere: [ResultKey] = []
            for (key, arrival) in arrivals {
                switch arrival.value {
                case .failed(let failure):
                    guard work.job.partial, failure.variant != nil, !failure.isRetryable else {
                        throw failure.naming([work.keys.firstIndex(of: key)!], of: work.keys.count)
                    }
                    failures[key] = failure
                case .made(let result) where arrival.isOwn:
                    made[key] = result
                    origin = result.origin
                    timings.merge(result.timings)
                case .made(let result):
                    made[key] = result
                    if let maker = result.maker { work.trace?.link(to: maker) }
                case .there: elsewhere.append(key)
                case .none: break
                }
            }
            if let trace = work.trace {
                for maker in await line.lookup.makers(of: elsewhere) { trace.link(to: maker) }
            }
            // What was made for others is there by their rule: this job's own may let it live longer.
            let others = arrivals.filter { !$0.value.isOwn || made[$0.key] == nil }
            for (key, result) in await line.lookup.lookAgain(for: others.map(\.key), work) {
                results[key] = result
                made[key] = nil
            }
            if failures.count == failed { round += 1 }
        }
        let named = work.keys.indices.compactMap { place in
            failures[work.keys[place]]?.naming([place], of: work.keys.count)
        }
        if named.count == work.keys.count { throw named[0] }
        let waited = Lap(from: start, to: beginning.moment ?? .now)
        timings[.waited] = waited.milliseconds
        var stopwatch = Stopwatch()
        results = try await line.deliver.deliver(Array(made.values), beside: results, work)
        let stored = stopwatch.lap()
        timings[.store] = (timings[.store] ?? 0) + stored.milliseconds
        if let trace = work.trace {
            trace.add(.lease, waited)
            // Nothing is left to be stored of what was stored when it was made.
            if !made.values.allSatisfy(\.isStored) { trace.add(.store, stored) }
        }
        return Ready(results: work.keys.compactMap { results[$0] }, failures: named, origin: origin, timings: timings)
    }
}

/// The moment at which the work on a job gets to its point of no return: from then on it is done by this worker.
private final class Beginning: Sendable {
    private struct State {
        var moment: ContinuousClock.Instant?
        var telling: Task<Void, Never>?
        var reporting: Task<Void, Never>?
        var isOver = false
    }

    private let taken: TakenRecord
    private let line: Line
    private let work: Work
    private let attempt: Int
    private let state = Lock(State())

    init(_ taken: TakenRecord, _ line: Line, _ work: Work, _ attempt: Int) {
        self.taken = taken
        self.line = line
        self.work = work
        self.attempt = attempt
    }

    /// A job that is recalled is taken off the work in any case. A job that found the work under way gets progress events alone, and
    /// one that is content with what is there may end at once.
    /// - Returns: whether the job stays.
    @Sendable func begin(isOwn: Bool) -> Bool {
        guard taken.begin() else { return false }
        state.withLock { state in
            // The flight may call this just after the job has left it.
            if state.isOver { return }
            if isOwn, state.moment == nil {
                state.moment = .now
                if !work.job.cache.onlyIfCached, work.start() {
                    state.telling = Task { [line, work] in await line.publish.started(work) }
                }
            }
            if state.reporting == nil { state.reporting = line.progress.begin(work, attempt) }
        }
        return true
    }

    /// When the job's own work began.
    var moment: ContinuousClock.Instant? { state.withLock { $0.moment } }

    /// Waits until all of it has been told, so that this comes before the end.
    func told() async {
        let (telling, reporting) = state.withLock { state in
            state.isOver = true
            return (state.telling, state.reporting)
        }
        reporting?.cancel()
        await telling?.value
        await reporting?.value
    }
}
