import Concurrency
import HalcyonCluster
import HalcyonModel
import Kafka
import Telemetry

/// The spans of one job, from its message to its event. Exists only for jobs that are recorded.
///
/// The spans are exported together when the job ends. Work that continues for other jobs after that, for example when
/// the job was cancelled, exports its own spans individually.
final class JobTrace: Sendable {
    /// The stages of a job, by the names of their spans.
    enum Stage: String {
        /// The wait in Kafka.
        case queue
        /// The wait for operations of other jobs and for a permit.
        case lease
        case fetch, decode, process, encode
        /// The rendering as a whole, if it failed.
        case render
        case store, put, publish
    }

    private struct State {
        var spans: [Span] = []
        var attributes: SpanAttributes
        var links: [TraceContext] = []
        var start: Int64
        /// The start of publishing the outcome, and the topic.
        var publishing: (start: Int64, topic: String)?
        var hasEnded = false
    }

    /// The trace context of the job, the parent of its spans.
    let context: TraceContext
    private let parent: TraceContext?
    private let tracer: Tracer
    private let clock = TraceClock()
    private let state: Lock<State>

    init(
        _ context: TraceContext, under parent: TraceContext?, of record: ConsumedRecord, group: String, _ tracer: Tracer
    ) {
        self.context = context
        self.parent = parent
        self.tracer = tracer
        // The timestamp comes from the clock of the producer or the broker, which may be ahead of the local clock.
        let written = record.timestamp > 0 ? min(record.timestamp * 1_000_000, clock.start) : clock.start
        let attributes: SpanAttributes = [
            "messaging.system": "kafka", "messaging.operation.name": "process", "messaging.operation.type": "process",
            "messaging.destination.name": record.topic, "messaging.destination.partition.id": "\(record.partition)",
            "messaging.kafka.offset": record.offset, "messaging.consumer.group.name": group,
            "messaging.message.body.size": record.value?.count ?? 0,
        ]
        state = Lock(State(attributes: attributes, start: written))
    }

    /// Adds the attributes of the decoded job.
    func describe(_ job: JobContext) {
        let attributes: SpanAttributes = [
            "halcyon.job.id": job.job.id, "halcyon.lane": job.lane.rawValue,
            "halcyon.key": job.keys.first?.description ?? "",
            "halcyon.variants": job.keys.count, "halcyon.tenant": job.job.tenant,
        ]
        state.withLock { $0.attributes.merge(attributes) }
    }

    /// Records the end of the time in the queue.
    func queued(until moment: ContinuousClock.Instant) {
        let start = state.withLock { $0.start }
        add(.queue, from: start, to: clock.nanoseconds(of: moment))
    }

    /// Records a completed stage.
    /// - Parameter error: The error with which it failed, if any.
    func add(
        _ stage: Stage, _ lap: Interval, _ kind: Span.Kind = .internal, _ attributes: SpanAttributes = [:],
        error: (any Error)? = nil
    ) {
        add(
            stage, from: clock.nanoseconds(of: lap.start), to: clock.nanoseconds(of: lap.end), kind, attributes,
            error.map(Self.status) ?? .unset)
    }

    /// Links the job to the work that produced its result.
    func link(to work: TraceContext) {
        state.withLock { state in if !state.links.contains(work) { state.links.append(work) } }
    }

    /// Records that the outcome is about to be published. The span lasts until the end of the job.
    func publishing(to topic: String) {
        let now = clock.nanoseconds(of: .now)
        state.withLock { $0.publishing = (now, topic) }
    }

    /// Ends the trace of the job on this worker.
    func end(_ end: JobSpanOutcome) {
        let now = clock.nanoseconds(of: .now)
        if let (start, topic) = state.withLock({ $0.publishing }) {
            add(
                .publish, from: start, to: now, .producer,
                [
                    "messaging.system": "kafka", "messaging.operation.name": "send",
                    "messaging.operation.type": "send", "messaging.destination.name": topic,
                ], end.isTold ? .unset : .error(end.outcome))
        }
        let spans = state.withLock { state in
            var attributes = state.attributes
            attributes.merge(end.attributes)
            state.hasEnded = true
            let job = Span(
                "halcyon.job", .consumer, context: context, parent: parent, start: state.start, end: now,
                attributes: attributes, links: state.links, status: end.code.map { .error($0.rawValue) } ?? .unset)
            defer { state.spans = [] }
            return [job] + state.spans
        }
        tracer.record(spans)
    }

    private func add(
        _ stage: Stage, from start: Int64, to end: Int64, _ kind: Span.Kind = .internal,
        _ attributes: SpanAttributes = [:], _ status: Span.Status = .unset
    ) {
        let span = Span(
            stage.rawValue, kind, context: context.child(), parent: context, start: start, end: end,
            attributes: attributes, status: status)
        let isLate = state.withLock { state in
            if !state.hasEnded { state.spans.append(span) }
            return state.hasEnded
        }
        if isLate { tracer.record([span]) }
    }

    private static func status(of error: any Error) -> Span.Status {
        switch error {
        case let failure as JobError: .error(failure.code.rawValue)
        case is CancellationError: .error("cancelled")
        default: .error(JobErrorCode.internal.rawValue)
        }
    }
}

/// The recorder of traces for the jobs of a worker.
struct JobTracing: Sendable {
    let tracer: Tracer
    /// The worker's consumer group.
    let group: String

    /// Starts the trace of a job that was received.
    /// - Returns: The trace, or nil if it is not recorded.
    func begin(_ record: ConsumedRecord) -> JobTrace? {
        let parent = record.traceparent.flatMap { TraceContext(traceparent: $0) }
        guard let context = tracer.begin(under: parent) else { return nil }
        return JobTrace(context, under: parent, of: record, group: group, tracer)
    }
}

/// The outcome of a job on this worker, as recorded in its span.
struct JobSpanOutcome {
    /// The name of the outcome: `ready`, `failed`, `postponed`, `handed_back` and so on.
    let outcome: String
    /// The error code, if the job failed.
    var code: JobErrorCode?
    private var more = SpanAttributes()

    /// The outcome of a job that was returned to the queue.
    static let handedBack = JobSpanOutcome("handed_back")

    /// Returns the outcome of a message that did not contain a valid job.
    static func refused(_ code: JobErrorCode) -> JobSpanOutcome { JobSpanOutcome("refused", code) }

    private init(_ outcome: String, _ code: JobErrorCode? = nil) {
        self.outcome = outcome
        self.code = code
    }

    /// Creates the outcome that was published.
    init(_ outcome: Outcome) {
        switch outcome {
        case .handedBack: self = .handedBack
        case .postponed(let failed, _, let seconds):
            self.init("postponed", failed.failure.code)
            more = [
                "halcyon.attempts": failed.history.count, "halcyon.retry.after_ms": Int((seconds * 1000).rounded()),
            ]
        case .scheduled(_, let seconds):
            self.init("scheduled")
            more = ["halcyon.start.after_ms": Int((seconds * 1000).rounded())]
        case .gaveUp(let failed, _):
            self.init("failed", failed.failure.code)
            more = ["halcyon.attempts": failed.history.count]
        case .ended(let body):
            switch body {
            case .ready(let ready):
                self.init("ready")
                more = ["halcyon.origin": ready.origin.rawValue, "halcyon.attempts": ready.attempts]
            case .failed(let failure, let attempts, _):
                self.init("failed", failure.code)
                more = ["halcyon.attempts": attempts]
            case .cancelled: self.init("cancelled")
            case .superseded: self.init("superseded")
            case .started, .progress, .purged: preconditionFailure("a job cannot end with this event")
            }
        }
    }

    /// True if an outcome was published.
    var isTold: Bool { outcome != Self.handedBack.outcome }

    /// The attributes of the job's span.
    var attributes: SpanAttributes {
        var all: SpanAttributes = ["halcyon.outcome": outcome, "error.type": code?.rawValue]
        all.merge(more)
        return all
    }
}
