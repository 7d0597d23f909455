import HTTPServer
import Threads

extension Route {
    /// `GET /v1/events`: the event stream. By a signed URL as well, since a browser's `EventSource` sends no key.
    static func events(_ feed: EventFeed, _ places: StreamPlaces) -> Route {
        Route("GET", "/v1/events", for: .read, acceptsSignature: true, kind: .stream) { call in
            let query = try EventQuery(call.request)
            guard let place = places.take() else { throw StreamPlaces.none }
            return ServerSentEvents.response { writer in
                defer { place.giveBack() }
                try await EventStream(feed: feed, query: query, writer: writer).run()
            }
        }
    }
}

/// How many streams there may be at once. The place of one whose stream is never written, as of a HEAD, is given back with it.
final class StreamPlaces: Sendable {
    static let none = Problem(.unavailable, "there are as many event streams as this gateway takes", retryAfter: 5)

    private let limit: Int
    private let metrics: EventMetrics
    private let taken = Lock(0)

    init(_ limit: Int, _ metrics: EventMetrics) { (self.limit, self.metrics) = (limit, metrics) }

    /// One of the places; nil when there is none.
    func take() -> Place? {
        let isTaken = taken.withLock { taken in
            if taken == limit { return false }
            taken += 1
            return true
        }
        guard isTaken else { return nil }
        metrics.streams.add(1)
        return Place { self.release() }
    }

    private func release() {
        taken.withLock { $0 -= 1 }
        metrics.streams.add(-1)
    }
}
