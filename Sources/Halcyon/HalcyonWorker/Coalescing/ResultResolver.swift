import HalcyonCluster
import HalcyonCoordination
import HalcyonModel
import Telemetry
import Threads

/// Gets a job all results that were not cached: each is rendered once at a time in the cluster, and every job that
/// wants it waits for that.
///
/// A waiting job holds nothing that others need: no permit of a fetch or of the renderer, and no connection.
struct ResultResolver: Sendable {
    let lookup: LookupStage
    let render: RenderStage
    let store: StoreStage
    let flight: DistributedSingleFlight<CoalescingKey, CoalescedOutcome>

    /// The number of times that a job asks again for what was said to be cached and is not.
    private static let mostRounds = 5

    /// - Parameter cached: the results that are cached.
    /// - Throws: ``Failure``; `CancellationError` when the job is cancelled; the work goes on while others wait for it.
    func resolve(
        _ job: JobContext, _ cached: [ResultKey: ReadyResult], _ start: StartNotifier
    ) async throws -> ResolvedResults {
        let begun = ContinuousClock.now
        var resolved = ResolvedResults(job, cached)
        var round = 0
        while true {
            let missing = resolved.missing
            if missing.isEmpty { break }
            guard round < Self.mostRounds else {
                throw Failure(
                    .internal, "the result was made \(round) times and had gone each time when it was looked for")
            }
            let work = CoalescedRender(
                render: render, store: store, job: job, bypassesCache: job.job.cache.reload || round > 1)
            let context = WorkContext(
                urgency: Urgency(level: job.lane.level), trace: job.trace?.context, start: start.start(isOwn:))
            let outcomes: [CoalescingKey: SingleFlight<CoalescingKey, CoalescedOutcome>.Result]
            do {
                outcomes = try await flight.run(missing.map { CoalescingKey(job.keys[$0], of: job) }, context, work)
            } catch is CancellationError where !Task.isCancelled && round < Self.mostRounds - 1 {
                // The job joined an operation that all others had left.
                round += 1
                continue
            }
            let failures = resolved.failures.count
            var elsewhere: [ResultKey] = []
            for (key, outcome) in outcomes {
                switch outcome.value {
                case .failed(let failure): try resolved.add(failure, for: key.key)
                case .rendered(let result): resolved.add(result, isOwn: outcome.isOwn)
                case .cached: elsewhere.append(key.key)
                case .none: break
                }
            }
            if let trace = job.trace {
                for maker in await lookup.makers(of: elsewhere) { trace.link(to: maker) }
            }
            // Another job's rule stored it: this job's own may let it live longer.
            let others = outcomes.filter { !$0.value.isOwn || resolved.rendered[$0.key.key] == nil }.map(\.key.key)
            resolved.add(await lookup.refresh(others, job))
            // Each variant that fails is found by a round of its own.
            if resolved.failures.count == failures { round += 1 }
        }
        return try resolved.finished(after: Lap(from: begun, to: start.moment ?? .now))
    }
}

/// The results of a job so far.
struct ResolvedResults: Sendable {
    private let job: JobContext
    /// Those in the cache.
    private(set) var cached: [ResultKey: ReadyResult]
    /// Those that were rendered, and are to be delivered.
    private(set) var rendered: [ResultKey: RenderedResult] = [:]
    private(set) var failures: [ResultKey: Failure] = [:]
    private(set) var timings = Timings()
    private(set) var origin: ResultOrigin
    /// The wait for other jobs and for the start of the work.
    private(set) var wait = Lap(from: .now, to: .now)

    init(_ job: JobContext, _ cached: [ResultKey: ReadyResult]) {
        self.job = job
        self.cached = cached
        origin = job.missing(from: cached).isEmpty ? .memory : .coalesced
    }

    /// Indices of the variants without a result or failure.
    var missing: [Int] {
        job.missing(from: cached).filter { rendered[job.keys[$0]] == nil && failures[job.keys[$0]] == nil }
    }

    /// - Throws: the failure, unless the job takes partial results and it is about one variant alone.
    mutating func add(_ failure: Failure, for key: ResultKey) throws(Failure) {
        guard job.job.partial, failure.variant != nil, !failure.isRetryable else {
            throw failure.naming(
                job.keys.indices.filter { job.keys[$0] == key }.prefix(1).map(\.self), of: job.keys.count)
        }
        failures[key] = failure
    }

    mutating func add(_ result: RenderedResult, isOwn: Bool) {
        rendered[result.key] = result
        if isOwn {
            origin = result.origin
            timings.merge(result.timings)
        } else if let maker = result.maker {
            job.trace?.link(to: maker)
        }
    }

    mutating func add(_ refreshed: [ResultKey: ReadyResult]) {
        for (key, result) in refreshed {
            cached[key] = result
            rendered[key] = nil
        }
    }

    /// - Throws: ``Failure`` if all variants failed.
    func finished(after wait: Lap) throws(Failure) -> ResolvedResults {
        if let failure = namedFailures.first, namedFailures.count == job.keys.count { throw failure }
        var finished = self
        finished.wait = wait
        finished.timings[.waited] = wait.milliseconds
        return finished
    }

    /// The failures in the order of the variants, each with the variant that it is about.
    var namedFailures: [Failure] {
        job.keys.indices.compactMap { failures[job.keys[$0]]?.naming([$0], of: job.keys.count) }
    }
}
