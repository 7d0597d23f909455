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
