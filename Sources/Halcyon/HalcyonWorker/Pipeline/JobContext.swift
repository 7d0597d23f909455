import Concurrency
import Formats
import HalcyonCluster
import HalcyonModel

/// A job in the pipeline, with everything that is known about it from the start. A job with alternative sources has a
/// context for each of them.
///
/// A class, because it is passed from task to task and a job has some fifty fields.
final class JobContext: Sendable {
    /// The job.
    let job: Job
    /// The result key of each variant. Equal variants have equal keys.
    let keys: [ResultKey]
    /// The lane, which determines the priority.
    let lane: Lane
    /// The flow of the tenant, which shares the capacity of its lane with other tenants.
    let flow: Flow
    /// The record that first contained the job.
    let origin: OriginalRecord
    /// The name of the API key with which the job was submitted; nil for none.
    let owner: String?
    /// The trace context that the producer sent, if any.
    let traceparent: String?
    /// The time that a client waits for the result. If it is nil, the wait is unknown and does not limit retries.
    let waitTimeout: WaitTimeout?
    /// The state of a job that waited in a topic. Nil if the record comes from a lane.
    let retry: Retry?
    /// The id of the results that the job refreshes; nil for a job of a producer.
    let refreshID: String?
    /// Human-readable warnings about the message.
    let warnings: [String]
    /// The fields of the message that this version does not know.
    let unknownFields: [String]
    /// The trace of the job. Nil if it is not recorded.
    let trace: JobTrace?
    /// True for the source of the job itself, false for an alternative or the fallback picture.
    let isOwnSource: Bool
    /// The hash of the job's own source.
    private let sourceHash: String
    private let state: JobState

    /// The state of a job that its contexts share.
    private final class JobState: Sendable {
        let isStarted: Lock<Bool>
        let uploaded: Lock<[Int: String]>
        let progressEvents = Lock(0)
        let timings = Lock(Timings())

        init(_ retry: Retry?) {
            isStarted = Lock(retry?.message.hasStarted ?? false)
            uploaded = Lock(retry?.message.uploads ?? [:])
        }
    }

    /// The state of a job that waited in a topic for its next attempt or its start.
    struct Retry: Sendable {
        /// The topic, partition and offset of the message.
        let coordinates: String
        /// The message with the history of the attempts.
        let message: RetryMessage
        /// The index of the retry topic that the job was received from; nil for a delay topic.
        let topic: Int?
        /// The delay of the topic, in seconds.
        let delay: Double

        /// The seconds until the job is due.
        var left: Double { message.left(upTo: delay) }

        /// True if the first attempt of the job is due.
        var isFirstAttempt: Bool { topic == nil && left <= 0 }
    }

    init(
        job: Job, keys: [ResultKey], lane: Lane, flow: Flow, origin: OriginalRecord, owner: String?,
        traceparent: String?, waitTimeout: WaitTimeout? = nil, retry: Retry? = nil, refreshID: String? = nil,
        warnings: [String] = [], unknownFields: [String] = [], trace: JobTrace? = nil
    ) {
        self.job = job
        self.keys = keys
        self.lane = lane
        self.flow = flow
        self.origin = origin
        self.owner = owner
        self.traceparent = traceparent
        self.waitTimeout = waitTimeout
        self.retry = retry
        self.refreshID = refreshID
        self.warnings = warnings
        self.unknownFields = unknownFields
        self.trace = trace
        isOwnSource = true
        // A prefetch has no keys.
        sourceHash = keys.first?.sourceHash ?? job.request.sourceHash
        state = JobState(retry)
    }

    private init(_ other: JobContext, source: Source) {
        job = other.job.using(source)
        keys = job.keys
        lane = other.lane
        flow = other.flow
        origin = other.origin
        owner = other.owner
        traceparent = other.traceparent
        waitTimeout = other.waitTimeout
        retry = other.retry
        refreshID = other.refreshID
        warnings = other.warnings
        unknownFields = other.unknownFields
        trace = other.trace
        isOwnSource = false
        sourceHash = other.sourceHash
        state = other.state
    }

    /// Returns the context of the job with each of its alternative sources, in order.
    var alternatives: [JobContext] {
        job.alternatives.map { JobContext(self, source: $0) }
    }

    /// Returns the context of the job with its fallback picture as the source; nil if it has none.
    var fallback: JobContext? { job.fallback.map { JobContext(self, source: $0) } }

    /// Returns the context of the source that has a result with this key; nil if none has.
    func context(of key: ResultKey) -> JobContext? {
        if keys.contains(key) { return self }
        return (alternatives + [fallback].compactMap(\.self)).first { $0.keys.contains(key) }
    }

    /// True if the `started` event of the job has been published.
    var hasStarted: Bool { state.isStarted.withLock { $0 } }

    /// Marks the job as started.
    /// - Returns: True if the `started` event is to be published. It is published once, however often the job is tried.
    func start() -> Bool {
        state.isStarted.withLock { isStarted in
            defer { isStarted = true }
            return !isStarted
        }
    }

    /// The uploads of this and earlier attempts: the beginning of the SHA-256 of the bytes, by the index of the variant.
    var uploads: [Int: String] { state.uploaded.withLock { $0 } }

    /// Records that the bytes with this SHA-256 were uploaded for a variant.
    func uploaded(_ sha256: String, ofVariant index: Int) {
        state.uploaded.withLock { $0[index] = RetryMessage.uploadMark(sha256) }
    }

    /// Returns true if these bytes were uploaded for a variant by this or an earlier attempt.
    func hasUploaded(_ sha256: String, ofVariant index: Int) -> Bool {
        uploads[index] == RetryMessage.uploadMark(sha256)
    }

    /// True if the job has waited in a retry topic, after an attempt that failed or was postponed.
    var isFromRetryTopic: Bool { retry?.topic != nil }

    /// Returns the number of the next progress event, from 1. Attempts and sources continue the count.
    func nextProgressNumber() -> Int {
        state.progressEvents.withLock { count in
            count += 1
            return count
        }
    }

    /// Records durations of stages of the current attempt, for the event of a job that fails.
    func record(_ timings: Timings) { state.timings.withLock { $0.merge(timings) } }

    /// Returns the recorded durations, and removes them.
    func takeTimings() -> Timings {
        state.timings.withLock { timings in
            defer { timings = Timings() }
            return timings
        }
    }

    /// Returns results by key.
    /// - Parameter cached: The results of the keys, in their order.
    func byKey(_ cached: [ImageResult?]) -> [ResultKey: ImageResult] {
        var results: [ResultKey: ImageResult] = [:]
        for case (let key, let result?) in zip(keys, cached) { results[key] = result }
        return results
    }

    /// Returns the results of the variants that have one, in the order of the job, with the names of the variants.
    func named(_ results: [ResultKey: ImageResult]) -> [ImageResult] {
        keys.indices.compactMap { index in
            var result = results[keys[index]]
            result?.name = job.name(ofVariant: index)
            return result
        }
    }

    /// Returns the indices of the variants that have no result yet. Of equal variants only the first is included.
    func missing(from found: [ResultKey: ImageResult]) -> [Int] {
        var seen: Set<ResultKey> = []
        return keys.indices.filter { found[keys[$0]] == nil && seen.insert(keys[$0]).inserted }
    }

    /// Returns the event of a job whose results are all cached, or nil if some must be rendered or uploaded.
    func ready(from cached: [ResultKey: ImageResult], _ origin: CacheStatus) -> Ready? {
        ready(from: keys.map { cached[$0] }, origin)
    }

    /// Returns the event of a job whose results are all cached, or nil if some must be rendered or uploaded.
    /// - Parameter cached: The results of the keys, in their order.
    func ready(from cached: [ImageResult?], _ origin: CacheStatus = .memory) -> Ready? {
        var results = cached.compactMap(\.self)
        guard !job.delivery.isPut, !job.isPrefetch, results.count == keys.count else { return nil }
        for index in results.indices { results[index].name = job.name(ofVariant: index) }
        return Ready(results: results, origin: origin, timings: Timings())
    }

    /// The identity by which the job is cancelled or superseded.
    var identity: JobIdentity {
        var identity = JobIdentity(
            id: job.id, submitted: origin.submitted, slot: SupersedeToken(job, submitted: submitted))
        (identity.owner, identity.batch, identity.tenant) = (owner, job.batch?.batch, job.tenant)
        (identity.tags, identity.sourceHash) = (job.tags, sourceHash)
        return identity
    }

    /// The priority of the work for the job.
    var priority: WorkPriority { WorkPriority(level: lane.level, flow: flow) }

    /// True if the results are stored in the result cache, which all workers share.
    var sharesResults: Bool { job.cache.memory && ResultTTLPolicy(maxAge: job.maxAge) != .never }

    /// The time at which the job was written to its lane, in seconds since 1970.
    private var submitted: Double { Double(origin.submitted) / 1000 }

    /// The time since the job was submitted, or since it may start, in milliseconds.
    var queued: Double {
        let start = job.notBefore == nil ? Double(origin.submitted) : job.start(submitted: submitted) * 1000
        return max(0, Double(Timestamp.now.milliseconds) - start)
    }

    /// The seconds until the job may start; nil if it may start now.
    var untilStart: Double? {
        guard job.notBefore != nil else { return nil }
        let seconds = job.start(submitted: submitted) - Timestamp.now.seconds
        return seconds > 0 ? seconds : nil
    }

    /// The deadline, in seconds since 1970.
    private var deadline: Double? { job.end(submitted: submitted) }

    /// The seconds until the deadline. Nil if there is none.
    var left: Double? { deadline.map { $0 - Timestamp.now.seconds } }

    /// The seconds for which a retry is useful: until the deadline, or until no client waits for the result.
    var worthRetrying: Double? {
        let waitTimeout = waitTimeout.map { Double($0.milliseconds) / 1000 + submitted - Timestamp.now.seconds }
        return [left, waitTimeout].compactMap(\.self).min()
    }

    /// Checks the deadline.
    /// - Throws: ``JobCancellationReason`` `expired` once the deadline has passed.
    func checkDeadline() throws(JobCancellationReason) {
        if let left, left <= 0 { throw .expired }
    }

    /// The deadline as an instant of the monotonic clock.
    var deadlineInstant: ContinuousClock.Instant? {
        left.map { .now + .seconds($0) }
    }

    /// Returns the error of a job whose deadline has passed.
    func expired(after last: AttemptHistory.Attempt?) -> JobError {
        let moment = deadline.map { " at \(Timestamp(seconds: $0).rfc3339)" } ?? ""
        let before = last.map { "; it had failed before, \($0.code.rawValue): \($0.message)" } ?? ""
        return JobError(.expired, "the deadline passed\(moment)\(before)")
    }
}

extension JobContext {
    /// Calls `body` with the job and, while sources fail, with the job with each of its alternatives.
    /// - Parameters:
    ///   - cached: The cached results of the job's own source.
    ///   - lookup: The stage that looks up the results of alternatives.
    ///   - body: The work on one source, with its cached results.
    /// - Throws: As ``Job/firstSource(_:)``.
    func firstSource(
        _ cached: [ResultKey: ImageResult], _ lookup: LookupStage,
        _ body: (JobContext, [ResultKey: ImageResult]) async throws -> Ready
    ) async throws -> Ready {
        try await job.firstSource { alternative in
            guard let alternative else { return try await body(self, cached) }
            let source = JobContext(self, source: job.alternatives[alternative])
            let (cached, origin) = try await lookup.find(source)
            var ready: Ready
            if let found = source.ready(from: cached, origin) {
                ready = found
            } else {
                ready = try await body(source, cached)
            }
            ready.alternative = source.job.source.shownText
            return ready
        }
    }
}

/// A measured time interval. Timings use its length, and spans of traces also its start and end.
struct Interval: Sendable {
    let start: ContinuousClock.Instant
    let end: ContinuousClock.Instant

    /// Creates an interval from `start` until now.
    init(from start: ContinuousClock.Instant) { self.init(from: start, to: .now) }

    init(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) {
        self.start = start
        self.end = end
    }

    /// The length in milliseconds.
    var milliseconds: Double { start.duration(to: end).milliseconds }
}

/// Measures the durations of consecutive stages.
struct Stopwatch {
    private var last = ContinuousClock.now

    /// Returns the interval since the previous lap.
    mutating func lap() -> Interval {
        let lap = Interval(from: last)
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
