import HTTPServer
import Kafka
import Telemetry
import Threads

/// One client that follows events: what it has missed, then what comes, until it goes, does not read, or the gateway stops.
struct EventStream: Sendable {
    let feed: EventFeed
    let query: EventQuery
    let writer: HTTPServer.BodyWriter

    /// The stream was ended since its client does not read.
    struct Dropped: Error {
        let reason: EventHub.DropReason
    }

    /// Writes the stream. It ends in a way that has the client come back when the gateway stops.
    /// - Throws: ``Dropped``, and what ends a stream otherwise.
    func run() async throws {
        let end = StreamEnd()
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

    private func follow(_ end: StreamEnd) async throws {
        try await writer.write(ServerSentEvents.retry(feed.options.retry) + [10])
        // Nothing can be said before: neither what was missed nor where "now" is.
        try await keepingAlive { await feed.ready() }
        guard feed.hub.cursor != nil else { return }
        let (subscription, joined) = try await join(end)
        var output = joined
        defer { subscription.end() }
        while true {
            switch await subscription.next() {
            case .records(let records): try await output.send(records)
            case .quiet(let cursor):
                output.advance(to: cursor)
                try await output.sign()
            case .tooSlow:
                end.drop(.behind)
                throw CancellationError()
            case .over:
                try Task.checkCancellation()
                return
            }
        }
    }

    /// Finds its place in the feed, having sent what the feed does not remember.
    private func join(_ end: StreamEnd) async throws -> (EventSubscription, EventOutput) {
        guard let cursor = query.cursor else {
            let (subscription, cursor) = feed.hub.subscribe { end.drop($0) }
            let output = EventOutput(writer, query, at: cursor, feed.metrics)
            do {
                // Who has seen nothing when the connection breaks can go on all the same.
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
        // The feed may have come there meanwhile.
        if let subscription = feed.hub.subscribe(at: cursor, isReplayed: false, drop: { end.drop($0) }) {
            return (subscription, output)
        }
        feed.metrics.replays.add()
        return (try await replay(&output, end), output)
    }

    /// Does something that may take long, with signs of life meanwhile.
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
        // Two must not write at once.
        _ = await signs.result
        return try result.get()
    }
}

/// Ends a stream from outside.
final class StreamEnd: Sendable {
    private let state = Lock<(task: Task<Void, any Error>?, reason: EventHub.DropReason?)>((nil, nil))

    /// Why it was ended; nil when it was not.
    var reason: EventHub.DropReason? { state.withLock { $0.reason } }

    func attach(_ task: Task<Void, any Error>) {
        let isOver = state.withLock { state in
            state.task = task
            return state.reason != nil
        }
        if isOver { task.cancel() }
    }

    /// The first reason counts.
    func drop(_ reason: EventHub.DropReason) {
        state.withLock { state in
            state.reason = state.reason ?? reason
            return state.task
        }?.cancel()
    }
}

extension EventStream {
    /// Sends from Kafka what the feed does not remember, up to where it does.
    func replay(_ output: inout EventOutput, _ end: StreamEnd) async throws -> EventSubscription {
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
                feed.log.info("missed events are not read yet", ["error": "\(error)"])
                try await keepingAlive { try await Task.sleep(for: .seconds(1)) }
            }
        }
    }

    private func replay(
        _ reader: TopicReader, _ output: inout EventOutput, _ end: StreamEnd
    ) async throws -> EventSubscription {
        let start = TopicCursor(reader.startingPlaces(of: output.cursor))
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
            let records = batch.records.compactMap { record -> FeedRecord? in
                here.pass(record.partition, record.offset)
                return record.value.map { FeedRecord(record, $0, here) }
            }
            try await output.send(records)
            for (partition, end) in batch.ends { here.pass(partition, end - 1) }
            output.advance(to: here)
        }
    }
}

extension TopicReader {
    /// Where a client that has come so far goes on: where it was, or with the oldest record where what follows is gone. Offsets that the topic
    /// has never had are another topic's of the same name, which was there before.
    fileprivate nonisolated func startingPlaces(of cursor: TopicCursor) -> [Int32: Int64] {
        Dictionary(
            uniqueKeysWithValues: oldestOffsets.map { partition, oldest in
                let wanted = cursor[partition]
                return (partition, oldest <= wanted && wanted <= endOffsets[partition] ?? 0 ? wanted : oldest)
            })
    }
}

/// How many streams there may be at once. The place of one whose stream is never written, as of a HEAD, is given back with it.
final class StreamPlaces: Sendable {
    private static let none = Problem(
        .unavailable, "there are as many event streams as this gateway takes", retryAfter: 5)

    private let limit: Int
    private let metrics: EventMetrics
    private let taken = Lock(0)

    init(_ limit: Int, _ metrics: EventMetrics) { (self.limit, self.metrics) = (limit, metrics) }

    /// A stream of server-sent events, which `produce` writes while it has one of the places.
    /// - Throws: ``Problem`` when there is none.
    func stream(
        _ produce: @escaping @Sendable (HTTPServer.BodyWriter) async throws -> Void
    ) throws -> HTTPServer.Response {
        guard let place = take() else { throw Self.none }
        return ServerSentEvents.response { writer in
            defer { place.giveBack() }
            try await produce(writer)
        }
    }

    /// One of the places; nil when there is none.
    private func take() -> TakenPlace? {
        let isTaken = taken.withLock { taken in
            if taken == limit { return false }
            taken += 1
            return true
        }
        guard isTaken else { return nil }
        metrics.streams.add(1)
        return TakenPlace { self.release() }
    }

    private func release() {
        taken.withLock { $0 -= 1 }
        metrics.streams.add(-1)
    }
}
