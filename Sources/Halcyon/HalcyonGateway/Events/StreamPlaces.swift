import HTTPServer
import Threads

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
