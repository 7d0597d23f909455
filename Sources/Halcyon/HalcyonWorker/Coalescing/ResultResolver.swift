import Concurrency
import HalcyonCluster
import HalcyonCoordination
import HalcyonModel
import Telemetry

/// Obtains all results of a job that were not cached. The cluster renders each result once at a time, and every job
/// that needs it waits for it.
///
/// A waiting job holds nothing that other jobs need: no fetch permit, no render permit and no connection.
struct ResultResolver: Sendable {
    let lookup: LookupStage
    let render: RenderStage
    let store: StoreStage
    let persist: PersistStage?
    let singleFlight: DistributedSingleFlightGroup<CoalescingKey, CoalescedOutcome>

    /// The maximum number of rounds in which a job looks for a result that was reported as cached but is missing, and
    /// of attempts to join an operation.
    private static let mostRounds = 5

    /// - Parameter cached: The results that are cached.
    /// - Throws: ``JobError``; `CancellationError` if the job is cancelled. The work continues while other jobs wait
    ///   for it.
    func resolve(
        _ job: JobContext, _ cached: [ResultKey: ImageResult], _ start: StartNotifier
    ) async throws -> ResolvedResults {
        start.follow(job)
        if job.job.isPrefetch { return try await prefetch(job, start) }
        let begun = ContinuousClock.now
        var resolved = ResolvedResults(job, cached)
        var round = 0
        while true {
            let missing = resolved.missing
            if missing.isEmpty { break }
            guard round < Self.mostRounds else {
                throw JobError(
                    .internal, "the result was missing from the cache after each of \(round) renderings")
            }
            let work = CoalescedRender(
                render: render, store: store, persist: persist, job: job,
                bypassesCache: job.job.cache.reload || round > 1)
            let context = WorkContext(
                urgency: job.priority, trace: job.trace?.context, start: start.start(isOwn:))
            let keys = missing.map { CoalescingKey(job.keys[$0], of: job) }
            let outcomes = try await Self.joining { try await singleFlight.run(keys, context, work) }
            let failures = resolved.failures.count
            var elsewhere: [ResultKey] = []
            for (key, outcome) in outcomes {
                switch outcome.value {
                case .failed(let failure): try resolved.add(failure, for: key.key)
                case .rendered(let result): resolved.add(result, isOwn: outcome.isOwn)
                case .cached: elsewhere.append(key.key)
                case .restored:
                    elsewhere.append(key.key)
                    if outcome.isOwn { resolved.wasRestored() }
                case .none: break
                }
            }
            if let trace = job.trace {
                for maker in await lookup.makers(of: elsewhere) { trace.link(to: maker) }
            }
            // The TTL policy of another job stored it. The policy of this job may extend the TTL.
            let others = outcomes.filter { !$0.value.isOwn || resolved.rendered[$0.key.key] == nil }.map(\.key.key)
            resolved.add(await lookup.refresh(others, job))
            // Each failed variant uses a separate round.
            if resolved.failures.count == failures { round += 1 }
        }
        return try resolved.finished(after: Interval(from: begun, to: start.moment ?? .now))
    }
}

extension ResultResolver {
    /// Loads the source of a job without variants into the source cache.
    private func prefetch(_ job: JobContext, _ start: StartNotifier) async throws -> ResolvedResults {
        let context = WorkContext(urgency: job.priority, trace: job.trace?.context, start: start.start(isOwn:))
        let fetched = try await Self.joining { try await render.fetch([], of: job, context) }
        return ResolvedResults(job, from: fetched)
    }

    /// Performs shared work, and again if it ends as cancelled although the job is not: the job had joined an operation
    /// that all others had left.
    /// - Throws: An error of `work`.
    private static func joining<Outcome>(_ work: () async throws -> Outcome) async throws -> Outcome {
        for _ in 1..<mostRounds {
            do {
                return try await work()
            } catch is CancellationError where !Task.isCancelled {}
        }
        return try await work()
    }
}

/// The results of a job so far.
struct ResolvedResults: Sendable {
    private let job: JobContext
    /// The cached results.
    private(set) var cached: [ResultKey: ImageResult]
    /// The rendered results, which are to be delivered.
    private(set) var rendered: [ResultKey: RenderedResult] = [:]
    private(set) var failures: [ResultKey: JobError] = [:]
    private(set) var timings = Timings()
    private(set) var origin: CacheStatus
    /// The time spent waiting for other jobs and for the start of the work.
    private(set) var wait = Interval(from: .now, to: .now)

    init(_ job: JobContext, _ cached: [ResultKey: ImageResult]) {
        self.job = job
        self.cached = cached
        origin = job.missing(from: cached).isEmpty ? .memory : .coalesced
    }

    /// Creates the results of a job without variants.
    init(_ job: JobContext, from fetched: FetchedSource) {
        self.init(job, [:])
        origin = fetched.cached.isShared ? .coalesced : fetched.origin
        timings = Timings(fetch: fetched.lap)
    }

    /// Indices of the variants without a result or failure.
    var missing: [Int] {
        job.missing(from: cached).filter { rendered[job.keys[$0]] == nil && failures[job.keys[$0]] == nil }
    }

    /// - Throws: The failure, unless the job accepts partial results and the failure is about a single variant.
    mutating func add(_ failure: JobError, for key: ResultKey) throws(JobError) {
        guard job.job.partial, failure.variant != nil, !failure.isRetryable else {
            throw failure.qualified(
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

    /// Records that this job has found a result in the result store.
    mutating func wasRestored() { if rendered.isEmpty { origin = .store } }

    mutating func add(_ refreshed: [ResultKey: ImageResult]) {
        for (key, result) in refreshed {
            cached[key] = result
            rendered[key] = nil
        }
    }

    /// - Throws: ``JobError`` if all variants failed.
    func finished(after wait: Interval) throws(JobError) -> ResolvedResults {
        if let failure = namedFailures.first, namedFailures.count == job.keys.count { throw failure }
        var finished = self
        finished.wait = wait
        finished.timings[.waited] = wait.milliseconds
        return finished
    }

    /// The failures in the order of the variants, each with the index of its variant.
    var namedFailures: [JobError] {
        job.keys.indices.compactMap { failures[job.keys[$0]]?.qualified([$0], of: job.keys.count) }
    }
}
