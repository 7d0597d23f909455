import HTTPServer
import Threads

/// `/v1/cluster`: lanes with what waits in them, workers, dead letters; once, or again and again as it changes.
struct ClusterRoutes: Sendable {
    let overview: ClusterOverview
    let events: EventOptions
    let places: StreamPlaces

    var all: [Route] {
        [
            Route("GET", "/v1/cluster", for: .read) { _ in
                HTTPServer.Response(status: 200, json: await overview.json())
            },
            Route("GET", "/v1/cluster/events", for: .read, kind: .stream) { _ in try places.stream(follow) },
        ]
    }

    /// Writes an event `cluster` whenever something has changed.
    private func follow(_ writer: HTTPServer.BodyWriter) async throws {
        try await write(ServerSentEvents.retry(events.retry) + [10], to: writer)
        var last: [UInt8] = []
        var said = ContinuousClock.now
        while !overview.ended.isOpen {
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

    /// Until it may have changed, or nobody is to follow it any more.
    private func pause() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Task.sleep(for: min(overview.options.interval, events.keepAlive)) }
            group.addTask { await overview.ended.wait() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// A client that takes nothing for too long is let go.
    private func write(_ bytes: [UInt8], to writer: HTTPServer.BodyWriter) async throws {
        try await by(.now + events.patience, orThrow: CancellationError()) { try await writer.write(bytes) }
    }
}
