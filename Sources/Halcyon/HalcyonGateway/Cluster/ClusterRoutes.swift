import Concurrency
import HTTPServer

/// Serves `/v1/cluster`: lanes with their lag, workers and dead letters, as JSON or as an event stream.
struct ClusterRoutes: Sendable {
    let overview: ClusterOverview
    let events: EventOptions
    let streamLimiter: StreamLimiter

    var all: [Route] {
        [
            Route("GET", "/v1/cluster", for: .read) { _ in
                HTTPServer.Response(status: 200, json: await overview.json())
            },
            Route("GET", "/v1/cluster/events", for: .read, kind: .stream) { _ in try streamLimiter.stream(follow) },
        ]
    }

    /// Writes an event `cluster` after each change.
    private func follow(_ writer: HTTPServer.BodyWriter) async throws {
        try await write(ServerSentEvents.retry(events.retry) + [10], to: writer)
        var last: [UInt8] = []
        var said = ContinuousClock.now
        while !overview.ended.isSignaled {
            let json = await overview.json()
            if json != last {
                try await write(
                    ServerSentEvents.name("cluster") + ServerSentEvents.dataName + json + ServerSentEvents.end,
                    to: writer)
                (last, said) = (json, .now)
            } else if .now - said >= events.keepAlive {
                try await write(ServerSentEvents.comment, to: writer)
                said = .now
            }
            try await pause()
        }
    }

    /// Waits until the state may have changed, or the stream must end.
    private func pause() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Task.sleep(for: min(overview.options.interval, events.keepAlive)) }
            group.addTask { await overview.ended.wait() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Writes with a timeout, so that a client that does not read is disconnected.
    private func write(_ bytes: [UInt8], to writer: HTTPServer.BodyWriter) async throws {
        try await withDeadline(.now + events.slowClientTimeout, throwing: CancellationError()) {
            try await writer.write(bytes)
        }
    }
}
