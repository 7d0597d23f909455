import Concurrency
import JSON

/// An exporter that collects spans and sends them in batches in the background. It never blocks its callers: spans that
/// do not fit into the queue are dropped and counted.
public final class SpanExporter: Sendable {
    /// A function that sends the body of one request. It must respond to the cancellation of its task.
    public typealias Send = @Sendable (_ body: [UInt8]) async -> ExportResponse

    private struct State {
        var queue = SpanQueue()
        /// The sleep of the sender, if it is waiting.
        var sleeper: Task<Void, Never>?
        /// True if the sender is waiting for spans, and not for the collector to recover.
        var waitsForSpans = false
        var isClosing = false
        var sender: Task<Void, Never>?
    }

    private let limits: ExportLimits
    private let resource: SpanAttributes
    private let scope: (name: String, version: String)
    private let metrics: SpanMetrics
    private let log: Log
    private let send: Send
    private let state = Lock(State())

    /// Starts the sender. Call ``close(within:)`` at the end.
    /// - Parameters:
    ///   - resource: The attributes of the process.
    ///   - scope: The name and version of the instrumentation scope.
    public init(
        _ limits: ExportLimits = ExportLimits(), resource: SpanAttributes, scope: (name: String, version: String),
        log: Log, metrics: Metrics, send: @escaping Send
    ) {
        self.limits = limits
        self.resource = resource
        self.scope = scope
        self.metrics = SpanMetrics(metrics)
        self.log = log
        self.send = send
        let sender = Task { await run() }
        state.withLock { $0.sender = sender }
    }

    /// Enqueues spans that belong together.
    public func add(_ spans: [Span]) {
        let (dropped, sleeper) = state.withLock { state -> (Int, Task<Void, Never>?) in
            if state.isClosing { return (spans.count, nil) }
            let dropped = state.queue.add(spans, limit: limits.queue)
            let isFull = state.waitsForSpans && state.queue.count >= limits.batch
            return (dropped, isFull ? state.sleeper : nil)
        }
        if dropped > 0 { metrics.dropped.add(dropped) }
        sleeper?.cancel()
    }

    /// Sends the queued spans, each batch once, and stops. Spans not sent within `limit` are dropped. No further spans
    /// are accepted.
    public func close(within limit: Duration) async {
        let (sender, sleeper) = state.withLock { state in
            state.isClosing = true
            return (state.sender, state.sleeper)
        }
        sleeper?.cancel()
        let timer = Task {
            try await Task.sleep(for: limit)
            sender?.cancel()
        }
        await sender?.value
        timer.cancel()
    }

    /// The number of queued spans.
    var queued: Int { state.withLock { $0.queue.count } }

    // MARK: The sender

    private func run() async {
        var isWell = true
        while true {
            let isLast = await wait(limits.interval, forSpans: true)
            while let batch = state.withLock({ $0.queue.take(limits.batch) }) {
                if Task.isCancelled { metrics.dropped.add(batch.count) } else { await deliver(batch, &isWell) }
            }
            if isLast { return }
        }
    }

    /// Tries to send a batch until it is accepted, rejected, or the retry timeout has passed.
    private func deliver(_ batch: [Span], _ isWell: inout Bool) async {
        let body = OTLPRequest(resource: resource, scope: scope, spans: batch).bytes
        let start = ContinuousClock.now
        var backoff = limits.backoff
        while true {
            let reply = await send(body)
            switch reply {
            case .taken(let rejected, let reason):
                let rejected = min(rejected, batch.count)
                metrics.exported.add(batch.count - rejected)
                metrics.dropped.add(rejected)
                if rejected > 0 || !reason.isEmpty {
                    log.warning("trace collector reported a partial success", ["rejected": rejected, "reason": reason])
                }
                if !isWell { log.notice("trace export has recovered") }
                isWell = true
                return
            case .refused(let reason), .unavailable(let reason, _):
                metrics.failures.add()
                if isWell { log.warning("trace export failed; jobs are not affected", ["reason": reason]) }
                isWell = false
                guard case .unavailable(_, let retryAfter) = reply else { return metrics.dropped.add(batch.count) }
                let pause = backoff.next(atLeast: .seconds(retryAfter ?? 0))
                let isClosing = state.withLock { $0.isClosing }
                if isClosing || start.duration(to: .now) + pause > limits.retryTimeout {
                    return metrics.dropped.add(batch.count)
                }
                _ = await wait(pause, forSpans: false)
            }
        }
    }

    /// Waits for `duration`, until the exporter closes, or, if it waits for spans, until a whole batch is queued.
    /// - Returns: True if the exporter is closing.
    private func wait(_ duration: Duration, forSpans: Bool) async -> Bool {
        let sleeper = Task { _ = await Task.sleepUnlessCancelled(for: duration) }
        let needsNone = state.withLock { state in
            state.sleeper = sleeper
            state.waitsForSpans = forSpans
            return state.isClosing || (forSpans && state.queue.count >= limits.batch)
        }
        if needsNone { sleeper.cancel() }
        await sleeper.value
        return state.withLock { state in
            state.sleeper = nil
            return state.isClosing
        }
    }
}

/// The queue of spans to send, oldest first.
struct SpanQueue {
    private var groups: [[Span]] = []
    private(set) var count = 0

    /// Adds spans if there is room for all of them.
    /// - Returns: The number of spans that were dropped.
    mutating func add(_ spans: [Span], limit: Int) -> Int {
        // Incomplete traces are useless, so the spans of a job are queued together or not at all.
        guard !spans.isEmpty, count + spans.count <= limit else { return spans.count }
        groups.append(spans)
        count += spans.count
        return 0
    }

    /// Removes and returns up to `most` spans, but at least one group; nil if the queue is empty.
    mutating func take(_ most: Int) -> [Span]? {
        guard !groups.isEmpty else { return nil }
        var (batch, taken) = (groups[0], 1)
        while taken < groups.count, batch.count + groups[taken].count <= most {
            batch += groups[taken]
            taken += 1
        }
        groups.removeFirst(taken)
        count -= batch.count
        return batch
    }
}

/// Limits of the span export, and its retries.
public struct ExportLimits: Sendable {
    /// Maximum number of queued spans. Further spans are dropped.
    public var queue = 8192
    /// Maximum number of spans in one request.
    public var batch = 512
    /// Time for which a span waits for others to fill a batch.
    public var interval = Duration.seconds(1)
    /// Time after which a batch that the collector does not accept is dropped.
    public var retryTimeout = Duration.seconds(30)
    /// The delays between attempts, unless the collector asks for longer ones.
    var backoff = Backoff(initial: .milliseconds(500), maximum: .seconds(5), jitter: 0.5)

    /// Creates the default limits.
    public init() {}
}

/// The result of sending spans.
public enum ExportResponse: Hashable, Sendable {
    /// The spans were accepted, except for the given number, which was rejected for the given reason.
    case taken(rejected: Int, reason: String)
    /// The spans were rejected permanently.
    case refused(String)
    /// The spans may be accepted later, after the given number of seconds if known.
    case unavailable(String, retryAfter: Double?)

    /// Creates a result from an HTTP response according to OTLP: 429, 502, 503 and 504 are retriable, and no other
    /// errors are.
    /// - Parameters:
    ///   - retryAfter: The header `Retry-After` in seconds; nil if absent.
    ///   - body: The response of the collector, which may be empty.
    public init(status: Int, retryAfter: Double?, body: [UInt8]) {
        switch status {
        case 200..<300: self = Self.partial(body)
        case 429, 502, 503, 504: self = .unavailable("status \(status)", retryAfter: retryAfter)
        default: self = .refused("status \(status)")
        }
    }

    /// Reads the rejected spans from `ExportTraceServiceResponse`. Other responses, such as those of proxies, count as
    /// success.
    private static func partial(_ body: [UInt8]) -> ExportResponse {
        // A response that is not JSON comes from a proxy.
        guard let answer = try? JSON.parse(body, maximumSize: 1 << 20), answer.kind == .object,
            let partial = answer.member("partialSuccess"), partial.kind == .object
        else { return .taken(rejected: 0, reason: "") }
        let count = partial.member("rejectedSpans")
        // A string in the JSON mapping, but some collectors write a number.
        let rejected = count?.asString.flatMap { Int($0) } ?? count?.asInteger.flatMap { Int($0) } ?? 0
        return .taken(rejected: max(0, rejected), reason: partial.member("errorMessage")?.asString ?? "")
    }
}

/// The metrics of an exporter.
struct SpanMetrics: Sendable {
    let exported: Counter
    let dropped: Counter
    let failures: Counter

    init(_ metrics: Metrics) {
        func spans(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_trace_spans_total", help: "Trace spans, by whether they were exported or dropped.",
                labels: ["outcome": outcome])
        }
        exported = spans("exported")
        dropped = spans("dropped")
        failures = metrics.counter(
            "halcyon_trace_export_failures_total", help: "Failed requests to the trace collector.")
    }
}
