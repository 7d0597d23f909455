import Foundation

/// A cluster of Halcyon, by one of its gateways.
///
/// Requests are tried again while no gateway answers or one asks for patience (``ClientOptions/patience``), jobs under the same id: a job
/// whose answer was lost may be done twice, and its images are the same. A copy is the same client; connections are closed when the last is
/// gone.
public struct HalcyonClient: Sendable {
    let desk: Desk

    /// A client of the gateway at `url`; nothing is sent yet.
    /// - Parameters:
    ///   - url: of the gateway, such as `https://images.example.org`, with or without a path before `/v1`.
    ///   - key: of the gateway's keys, where it has any. It goes to this gateway alone, as `Authorization: Bearer`.
    ///   - options: times and limits.
    public init(_ url: URL, key: String? = nil, options: ClientOptions = ClientOptions()) {
        desk = Desk(url, key: key, options: options)
    }

    /// Events as they happen; a key with the scope `read` is needed. When this returns the stream has begun: nothing that happens later is missed,
    /// whenever it is read.
    /// - Parameters:
    ///   - filter: which of them; all unless given.
    ///   - cursor: a ``StreamMessage/cursor``, where to go on. Without one the stream begins now.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func events(_ filter: EventFilter = EventFilter(), after cursor: String? = nil) async throws -> EventStream {
        if let cursor { return EventStream(desk: desk, filter: filter, cursor: cursor) }
        var iterator = EventStream(desk: desk, filter: filter, cursor: "").makeAsyncIterator()
        return EventStream(desk: desk, filter: filter, cursor: try await iterator.begin())
    }
}
