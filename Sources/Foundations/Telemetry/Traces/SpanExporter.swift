import JSON
import Threads

/// Collects spans and has them sent, in batches and in the background. It never holds up who adds: what it has no room for is dropped, and
/// counted.
public final class SpanExporter: Sendable {
    /// Sends the body of one request. It must heed the cancellation of its task.
    public typealias Send = @Sendable (_ body: [UInt8]) async -> ExportReply

    private struct State {
        var queue = SpanQueue()
        /// What the sender waits with, when it does.
        var sleeper: Task<Void, Never>?
        /// Whether it waits for spans, and not for the collector to be well again.
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

    /// Starts to send. ``close(within:)`` must be called in the end.
    /// - Parameters:
    ///   - resource: what the process says of itself.
    ///   - scope: who makes the spans, and in which version.
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

    /// Takes spans that belong together.
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

    /// Sends what is there, each batch once, and ends; what is not sent within `limit` is dropped. Nothing is taken from here on.
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

    /// How many spans wait to be sent.
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

    /// Tries to send a batch until it is taken, refused, or has been tried for long enough.
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
                    log.warning("the collector of traces has a say", ["rejected": rejected, "reason": reason])
                }
                if !isWell { log.notice("traces are exported again") }
                isWell = true
                return
            case .refused(let reason), .unavailable(let reason, _):
                metrics.failures.add()
                if isWell { log.warning("traces are not exported; jobs go on", ["reason": reason]) }
                isWell = false
                guard case .unavailable(_, let retryAfter) = reply else { return metrics.dropped.add(batch.count) }
                let pause = backoff.next(atLeast: .seconds(retryAfter ?? 0))
                let isClosing = state.withLock { $0.isClosing }
                if isClosing || start.duration(to: .now) + pause > limits.patience {
                    return metrics.dropped.add(batch.count)
                }
                _ = await wait(pause, forSpans: false)
            }
        }
    }

    /// Waits for so long, or until the end is near; and, if it is for spans, until there is a whole batch of them.
    /// - Returns: whether the end is near.
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

/// Spans that wait to be sent, the oldest first.
struct SpanQueue {
    private var groups: [[Span]] = []
    private(set) var count = 0

    /// Takes as many as there is room for.
    /// - Returns: how many there was none for.
    mutating func add(_ spans: [Span], limit: Int) -> Int {
        // A trace with holes helps nobody: the spans of a job go in whole or not at all.
        guard !spans.isEmpty, count + spans.count <= limit else { return spans.count }
        groups.append(spans)
        count += spans.count
        return 0
    }

    /// Takes out at most so many, but at least one group; nil when there is none.
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

/// What the export of spans may cost, and how long it tries.
public struct ExportLimits: Sendable {
    /// How many spans wait to be sent, at most; what does not fit is dropped.
    public var queue = 8192
    /// How many go in one request, at most.
    public var batch = 512
    /// How long a span waits for others to go with.
    public var interval = Duration.seconds(1)
    /// For how long a batch is tried that the collector does not take now.
    public var patience = Duration.seconds(30)
    /// The delays between attempts, unless the collector asks for longer ones.
    var backoff = Backoff(initial: .milliseconds(500), maximum: .seconds(5), jitter: 0.5)

    /// The defaults.
    public init() {}
}

/// What came of sending spans.
public enum ExportReply: Hashable, Sendable {
    /// They were taken, but for so many; why these were not.
    case taken(rejected: Int, reason: String)
    /// They are not taken, now or later.
    case refused(String)
    /// They may be taken later, where it is known after so many seconds.
    case unavailable(String, retryAfter: Double?)

    /// An answer over HTTP, as OTLP reads it: 429, 502, 503 and 504 may pass, and nothing else does.
    /// - Parameters:
    ///   - retryAfter: seconds, as the header `Retry-After` has them; nil without one.
    ///   - body: what the collector said of it; it need not say anything.
    public init(status: Int, retryAfter: Double?, body: [UInt8]) {
        switch status {
        case 200..<300: self = Self.partial(body)
        case 429, 502, 503, 504: self = .unavailable("status \(status)", retryAfter: retryAfter)
        default: self = .refused("status \(status)")
        }
    }

    /// What `ExportTraceServiceResponse` says of spans that were left out. An answer that is none, as proxies give it, says nothing.
    private static func partial(_ body: [UInt8]) -> ExportReply {
        // An answer that is not JSON comes from a proxy.
        guard let answer = try? JSON.parse(body, maximumSize: 1 << 20), answer.kind == .object,
            let partial = answer.member("partialSuccess"), partial.kind == .object
        else { return .taken(rejected: 0, reason: "") }
        let count = partial.member("rejectedSpans")
        // A string in the mapping, and a number with some who write it.
        let rejected = count?.asString.flatMap { Int($0) } ?? count?.asInteger.flatMap { Int($0) } ?? 0
        return .taken(rejected: max(0, rejected), reason: partial.member("errorMessage")?.asString ?? "")
    }
}

/// What exporters count.
struct SpanMetrics: Sendable {
    let exported: Counter
    let dropped: Counter
    let failures: Counter

    init(_ metrics: Metrics) {
        func spans(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_trace_spans_total", help: "Spans of traces, by whether the collector took them.",
                labels: ["outcome": outcome])
        }
        exported = spans("exported")
        dropped = spans("dropped")
        failures = metrics.counter(
            "halcyon_trace_export_failures_total", help: "Requests to the collector of traces that failed.")
    }
}
