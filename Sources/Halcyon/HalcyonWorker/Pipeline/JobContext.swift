import Formats
import HalcyonCluster
import HalcyonModel
import Threads

/// A job in the pipeline: all that is known of it from the start.
///
/// A class, because it goes from task to task: a job has some fifty fields.
final class JobContext: Sendable {
    /// What is to be done.
    let job: Job
    /// What the result of each variant is called. Equal variants have equal keys.
    let keys: [ResultKey]
    /// How urgent it is.
    let lane: Lane
    /// Where the job was first written.
    let origin: Provenance
    /// The trace that the job belongs to, if its producer named one.
    let traceparent: String?
    /// How long somebody waits for its end; nil where nobody is known to, and the job is tried as often as any other.
    let patience: Patience?
    /// What happened before this worker took it; nil when it comes from its lane.
    let retry: Retry?
    /// Warnings about its message, for people.
    let warnings: [String]
    /// Fields of its message that mean nothing to this version.
    let unknownFields: [String]
    /// What is recorded of it; nil for nothing.
    let trace: JobTrace?
    private let isStarted: Lock<Bool>

    /// An attempt that follows on others, made by whichever worker.
    struct Retry: Sendable {
        /// What they left.
        let message: RetryMessage
        /// Which of the topics of retries it came through.
        let topic: Int
    }

    init(
        job: Job, keys: [ResultKey], lane: Lane, origin: Provenance, traceparent: String?,
        patience: Patience? = nil, retry: Retry? = nil, warnings: [String] = [],
        unknownFields: [String] = [], trace: JobTrace? = nil
    ) {
        self.job = job
        self.keys = keys
        self.lane = lane
        self.origin = origin
        self.traceparent = traceparent
        self.patience = patience
        self.retry = retry
        self.warnings = warnings
        self.unknownFields = unknownFields
        self.trace = trace
        isStarted = Lock(retry?.message.hasStarted ?? false)
    }

    /// Whether it was told that work for the job began.
    var hasStarted: Bool { isStarted.withLock { $0 } }

    /// Work for the job begins.
    /// - Returns: whether that is to be told: it is once, however often the job is tried.
    func start() -> Bool {
        isStarted.withLock { isStarted in
            defer { isStarted = true }
            return !isStarted
        }
    }

    /// Where the variants stand that are still to be made: of equal ones the first.
    func missing(from found: [ResultKey: ReadyResult]) -> [Int] {
        var seen: Set<ResultKey> = []
        return keys.indices.filter { found[keys[$0]] == nil && seen.insert(keys[$0]).inserted }
    }

    /// The event of a job whose results are all cached; nil if some are to be rendered, or bytes to be uploaded.
    func ready(from cached: [ResultKey: ReadyResult]) -> Ready? {
        guard !job.delivery.isPut, missing(from: cached).isEmpty else { return nil }
        return Ready(results: keys.compactMap { cached[$0] }, origin: .memory, timings: Timings())
    }

    /// Its identity for those who cancel or supersede it.
    var identity: JobIdentity {
        JobIdentity(
            id: job.id, submitted: origin.submitted, slot: SlotClaim(job, submitted: submitted))
    }

    /// Whether its results go into the result cache, and so to jobs of other workers.
    var sharesResults: Bool { job.cache.memory && ResultRule(maxAge: job.maxAge) != .never }

    /// When the job was written to its lane, in seconds since 1970.
    private var submitted: Double { Double(origin.submitted) / 1000 }

    /// Milliseconds since then.
    var queued: Double { max(0, Double(Timestamp.now.milliseconds - origin.submitted)) }

    /// When the result is no longer wanted, in seconds since 1970.
    private var deadline: Double? { job.deadline?.moment(submitted: submitted) }

    /// Seconds until then; nil when it is wanted for ever.
    var left: Double? { deadline.map { $0 - Timestamp.now.seconds } }

    /// Seconds for which it is worth being tried again: until its deadline, or until nobody waits for its end any more.
    var worthRetrying: Double? {
        let patience = patience.map { Double($0.milliseconds) / 1000 + submitted - Timestamp.now.seconds }
        return [left, patience].compactMap(\.self).min()
    }

    /// Looks whether anybody still wants the result.
    /// - Throws: ``JobCancellationReason`` `expired` once the deadline has passed.
    func checkDeadline() throws(JobCancellationReason) {
        if let left, left <= 0 { throw .expired }
    }

    /// The deadline by the clock that time limits are kept with.
    var deadlineInstant: ContinuousClock.Instant? {
        left.map { .now + .seconds($0) }
    }

    /// What a job ends with that is no longer wanted.
    func expired(after last: AttemptHistory.Attempt?) -> Failure {
        let moment = deadline.map { " at \(Timestamp(seconds: $0).rfc3339)" } ?? ""
        let before = last.map { "; it had failed before, \($0.code.rawValue): \($0.message)" } ?? ""
        return Failure(.expired, "the deadline passed\(moment)\(before)")
    }
}

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
