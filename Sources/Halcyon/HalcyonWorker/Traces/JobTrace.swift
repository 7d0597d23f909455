import HalcyonCluster
import HalcyonModel
import Kafka
import Telemetry
import Threads

/// The spans of one job, from its message to its event. There is one only where something is recorded of the job.
///
/// They go out together when the job ends. Work that goes on for others after that, as when the job was cancelled, adds its own one by one.
final class JobTrace: Sendable {
    /// What a job's time goes into, as its spans are called.
    enum Stage: String {
        /// Waiting on Kafka.
        case queue
        /// Waiting for what others make, and for one's turn.
        case lease
        case fetch, decode, process, encode
        /// All of decode, process and encode, where it failed.
        case render
        case store, put, publish
    }

    private struct State {
        var spans: [Span] = []
        var attributes: SpanAttributes
        var links: [TraceContext] = []
        var start: Int64
        /// Since when it is being told what came of the job, and in which topic.
        var publishing: (start: Int64, topic: String)?
        var hasEnded = false
    }

    /// The place of the job: what it causes stands below.
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
        // The producer's clock, or the broker's: it may be ahead of this one.
        let written = record.timestamp > 0 ? min(record.timestamp * 1_000_000, clock.start) : clock.start
        let attributes: SpanAttributes = [
            "messaging.system": "kafka", "messaging.operation.name": "process", "messaging.operation.type": "process",
            "messaging.destination.name": record.topic, "messaging.destination.partition.id": "\(record.partition)",
            "messaging.kafka.offset": record.offset, "messaging.consumer.group.name": group,
            "messaging.message.body.size": record.value?.count ?? 0,
        ]
        state = Lock(State(attributes: attributes, start: written))
    }

    /// What the message says.
    func describe(_ job: JobContext) {
        let attributes: SpanAttributes = [
            "halcyon.job.id": job.job.id, "halcyon.lane": job.lane.rawValue, "halcyon.key": job.keys[0].description,
            "halcyon.variants": job.keys.count, "halcyon.tenant": job.job.tenant,
        ]
        state.withLock { $0.attributes.merge(attributes) }
    }

    /// The job's turn came.
    func queued(until moment: ContinuousClock.Instant) {
        let start = state.withLock { $0.start }
        add(.queue, from: start, to: clock.nanoseconds(of: moment))
    }

    /// A stage is over.
    /// - Parameter error: why it failed, if it did.
    func add(
        _ stage: Stage, _ lap: Lap, _ kind: Span.Kind = .internal, _ attributes: SpanAttributes = [:],
        error: (any Error)? = nil
    ) {
        add(
            stage, from: clock.nanoseconds(of: lap.start), to: clock.nanoseconds(of: lap.end), kind, attributes,
            error.map(Self.status) ?? .unset)
    }

    /// It was served by that work.
    func link(to work: TraceContext) {
        state.withLock { state in if !state.links.contains(work) { state.links.append(work) } }
    }

    /// It is about to be told what came of it. That lasts until the end.
    func publishing(to topic: String) {
        let now = clock.nanoseconds(of: .now)
        state.withLock { $0.publishing = (now, topic) }
    }

    /// The job has ended, for this worker.
    func end(_ end: JobEnd) {
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
        case let failure as Failure: .error(failure.code.rawValue)
        case is CancellationError: .error("cancelled")
        default: .error(FailureCode.internal.rawValue)
        }
    }
}

/// Has what the worker does recorded as traces, where that is wanted.
struct JobTracing: Sendable {
    let tracer: Tracer
    /// The worker's group.
    let group: String

    /// A job was taken.
    /// - Returns: nil when nothing of it is recorded.
    func begin(_ record: ConsumedRecord) -> JobTrace? {
        let parent = record.traceparent.flatMap { TraceContext(traceparent: $0) }
        guard let context = tracer.begin(under: parent) else { return nil }
        return JobTrace(context, under: parent, of: record, group: group, tracer)
    }
}

/// What became of a job on this worker, as its span says it.
struct JobEnd {
    /// `ready`, `failed`, `postponed`, `handed_back` and so on.
    let outcome: String
    /// Why it failed.
    var code: FailureCode?
    private var more = SpanAttributes()

    /// Another worker does it.
    static let handedBack = JobEnd("handed_back")

    /// The message was no job that can be done.
    static func refused(_ code: FailureCode) -> JobEnd { JobEnd("refused", code) }

    private init(_ outcome: String, _ code: FailureCode? = nil) {
        self.outcome = outcome
        self.code = code
    }

    /// What was told of it.
    init(_ outcome: Outcome) {
        switch outcome {
        case .handedBack: self = .handedBack
        case .postponed(let failed, _, let seconds):
            self.init("postponed", failed.failure.code)
            more = [
                "halcyon.attempts": failed.history.count, "halcyon.retry.after_ms": Int((seconds * 1000).rounded()),
            ]
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
            case .started, .progress, .purged: preconditionFailure("no job ends with that")
            }
        }
    }

    /// Whether somebody was told.
    var isTold: Bool { outcome != Self.handedBack.outcome }

    /// What the job's span says of it.
    var attributes: SpanAttributes {
        var all: SpanAttributes = ["halcyon.outcome": outcome, "error.type": code?.rawValue]
        all.merge(more)
        return all
    }
}
