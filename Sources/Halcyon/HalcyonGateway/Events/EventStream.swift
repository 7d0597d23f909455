import Concurrency
import HTTPServer
import Kafka
import Telemetry

/// The event stream of one client: missed events, then new ones, until the client disconnects or stops reading, or the
/// gateway shuts down.
struct EventStream: Sendable {
    let feed: EventFeed
    let query: EventQuery
    let writer: HTTPServer.BodyWriter

    /// An error thrown if the stream was closed because its client did not read.
    struct Dropped: Error {
        let reason: EventBroadcaster.DropReason
    }

    /// Writes the stream. When the gateway shuts down, the stream ends in a way that lets the client reconnect.
    /// - Throws: ``Dropped`` if the client does not read, or the error that ended the stream.
    func run() async throws {
        let end = StreamCanceller()
        let task = Task { try await follow(end) }
        end.attach(task)
        do {
            try await task.resultCancelledWithWaiter.get()
        } catch {
            guard let reason = end.reason else { throw error }
            feed.metrics.dropped(reason).add()
            feed.log.info("event stream dropped", ["reason": reason.rawValue])
            throw Dropped(reason: reason)
        }
    }

    private func follow(_ end: StreamCanceller) async throws {
        try await writer.write(ServerSentEvents.retry(feed.options.retry) + [10])
        // Until the feed has caught up, neither the missed events nor the current position are known.
        try await keepingAlive { await feed.ready() }
        guard feed.hub.cursor != nil else { return }
        let (subscription, joined) = try await join(end)
        var output = joined
        defer { subscription.end() }
        while true {
            switch await subscription.next() {
            case .records(let records): try await output.send(records)
            case .idle(let cursor):
                output.advance(to: cursor)
                try await output.sign()
            case .lagged:
                end.drop(.behind)
                throw CancellationError()
            case .finished:
                try Task.checkCancellation()
                return
            }
        }
    }

    /// Subscribes to the feed. Before that, sends the events that are no longer in memory.
    private func join(_ end: StreamCanceller) async throws -> (EventSubscription, EventOutput) {
        guard let cursor = query.cursor else {
            let (subscription, cursor) = feed.hub.subscribe { end.drop($0) }
            let output = EventOutput(writer, query, at: cursor, feed.metrics)
            do {
                // The position allows a client to resume even if the connection breaks before the first event.
                try await output.sign()
            } catch {
                subscription.end()
                throw error
            }
            return (subscription, output)
        }
        var output = EventOutput(writer, query, at: cursor, feed.metrics)
        try await output.sign()
        if let subscription = feed.hub.subscribe(at: cursor, isReplayed: false, drop: { end.drop($0) }) {
            return (subscription, output)
        }
        try await keepingAlive { try await feed.replays.acquire() }
        defer { feed.replays.release() }
        // The feed may have reached the position in the meantime.
        if let subscription = feed.hub.subscribe(at: cursor, isReplayed: false, drop: { end.drop($0) }) {
            return (subscription, output)
        }
        feed.metrics.replays.add()
        return (try await replay(&output, end), output)
    }

    /// Runs an operation that may take long, and sends keep-alives meanwhile.
    func keepingAlive<Success: Sendable>(
        _ work: @escaping @Sendable () async throws -> Success
    ) async throws -> Success {
        let signs = Task {
            while true {
                try await Task.sleep(for: feed.options.keepAlive)
                try await writer.write(ServerSentEvents.comment)
            }
        }
        let result: Result<Success, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        signs.cancel()
        // Writes must not overlap.
        _ = await signs.result
        return try result.get()
    }
}

/// Cancels the task of a stream from outside.
final class StreamCanceller: Sendable {
    private let state = Lock<(task: Task<Void, any Error>?, reason: EventBroadcaster.DropReason?)>((nil, nil))

    /// The reason for the cancellation; nil if the stream was not cancelled.
    var reason: EventBroadcaster.DropReason? { state.withLock { $0.reason } }

    func attach(_ task: Task<Void, any Error>) {
        let isOver = state.withLock { state in
            state.task = task
            return state.reason != nil
        }
        if isOver { task.cancel() }
    }

    /// Cancels the stream. The first reason is recorded.
    func drop(_ reason: EventBroadcaster.DropReason) {
        state.withLock { state in
            state.reason = state.reason ?? reason
            return state.task
        }?.cancel()
    }
}

extension EventStream {
    /// Sends events from Kafka until the stream can subscribe to the feed.
    func replay(_ output: inout EventOutput, _ end: StreamCanceller) async throws -> EventSubscription {
        while true {
            try Task.checkCancellation()
            do {
                let from = output.cursor.offsets
                let reader = try await keepingAlive {
                    try await TopicReader.open(
                        feed.topic, from: .offsets(from), properties: feed.properties, tellsEnds: true)
                }
                let result: Result<EventSubscription, any Error>
                do {
                    result = .success(try await replay(reader, &output, end))
                } catch {
                    result = .failure(error)
                }
                await reader.close()
                return try result.get()
            } catch let error as KafkaError {
                feed.log.info("failed to read missed events; retrying", ["error": "\(error)"])
                try await keepingAlive { try await Task.sleep(for: .seconds(1)) }
            }
        }
    }

    private func replay(
        _ reader: TopicReader, _ output: inout EventOutput, _ end: StreamCanceller
    ) async throws -> EventSubscription {
        let start = TopicCursor(reader.startingOffsets(of: output.cursor))
        if !start.hasReached(output.cursor) || !output.cursor.hasReached(start) {
            feed.metrics.gaps.add()
            try await output.gap(start)
        }
        while true {
            if let subscription = feed.hub.subscribe(at: output.cursor, isReplayed: true, drop: { end.drop($0) }) {
                return subscription
            }
            guard let batch = try await keepingAlive({ try await reader.nextBatch() }) else {
                throw CancellationError()
            }
            var here = output.cursor
            let records = batch.records.compactMap { record -> BroadcastEvent? in
                here.pass(record.partition, record.offset)
                return record.value.map { BroadcastEvent(record, $0, here) }
            }
            try await output.send(records)
            for (partition, end) in batch.ends { here.pass(partition, end - 1) }
            output.advance(to: here)
        }
    }
}

extension TopicReader {
    /// Returns the offsets at which a client resumes: its own position, or the oldest record if later ones were
    /// deleted. Offsets beyond the end belong to a deleted topic of the same name and restart at the oldest record,
    /// too.
    fileprivate nonisolated func startingOffsets(of cursor: TopicCursor) -> [Int32: Int64] {
        Dictionary(
            uniqueKeysWithValues: oldestOffsets.map { partition, oldest in
                let wanted = cursor[partition]
                return (partition, oldest <= wanted && wanted <= endOffsets[partition] ?? 0 ? wanted : oldest)
            })
    }
}

/// Limits the number of concurrent streams. The permit of a stream that is never written, such as that of a HEAD
/// request, is released with its response.
final class StreamLimiter: Sendable {
    private static let none = Problem(
        .unavailable, "the limit of event streams is reached; try again later", retryAfter: 5)

    private let limit: Int
    private let metrics: EventMetrics
    private let taken = Lock(0)

    init(_ limit: Int, _ metrics: EventMetrics) { (self.limit, self.metrics) = (limit, metrics) }

    /// Returns a stream of Server-Sent Events that holds a permit while `produce` writes it.
    /// - Throws: ``Problem`` if all permits are in use.
    func stream(
        _ produce: @escaping @Sendable (HTTPServer.BodyWriter) async throws -> Void
    ) throws -> HTTPServer.Response {
        guard let permit = acquirePermit() else { throw Self.none }
        return ServerSentEvents.response { writer in
            defer { permit.giveBack() }
            try await produce(writer)
        }
    }

    /// Acquires a permit; returns nil if all are in use.
    private func acquirePermit() -> ConcurrencyPermit? {
        let isTaken = taken.withLock { taken in
            if taken == limit { return false }
            taken += 1
            return true
        }
        guard isTaken else { return nil }
        metrics.streams.add(1)
        return ConcurrencyPermit { self.release() }
    }

    private func release() {
        taken.withLock { $0 -= 1 }
        metrics.streams.add(-1)
    }
}
