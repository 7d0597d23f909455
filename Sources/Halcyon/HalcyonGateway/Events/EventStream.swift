import HTTPServer
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
