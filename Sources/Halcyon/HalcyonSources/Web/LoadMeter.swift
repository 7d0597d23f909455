import Curl
import HalcyonModel
import Threads

/// The fetches under way in this process, by their keys, with their progress.
final class LoadMeters: Sendable {
    private let meters = Lock<[FetchKey: LoadMeter]>([:])

    /// Measures a fetch. After all its waiters have left, the next fetch of the key may start before this one has
    /// ended.
    func measure<Value>(_ key: FetchKey, _ body: () async throws -> Value) async throws -> Value {
        let meter = LoadMeter()
        meters.withLock { $0[key] = meter }
        defer { meters.withLock { if $0[key] === meter { $0[key] = nil } } }
        return try await LoadMeter.$current.withValue(meter, operation: body)
    }

    /// nil unless the fetch is under way.
    func progress(of key: FetchKey) -> LoadProgress? { meters.withLock { $0[key] }?.progress }
}

/// Counts the bytes of one load while it is under way.
///
/// It is a task-local value, so that it reaches the transfer without a parameter in every provider.
final class LoadMeter: Sendable {
    /// The meter of the load that the current task performs.
    @TaskLocal static var current: LoadMeter?

    private let state = Lock<LoadProgress?>(nil)

    /// nil before the first request.
    var progress: LoadProgress? { state.withLock { $0 } }

    /// Starts counting the response to one request.
    /// - Parameter begun: bytes received earlier, if the request is for the rest.
    /// - Returns: a callback for the transfer.
    func begin(after begun: Int) -> @Sendable (HTTPProgress) -> Void {
        state.withLock { $0 = $0 ?? LoadProgress(received: 0) }
        return { [state] news in
            // The body of a redirect or an error is no part of the source.
            guard [200, 203, 206].contains(news.status) else { return }
            // A server may answer a range request with the whole body.
            let begun = news.status == 206 ? begun : 0
            state.withLock {
                $0 = LoadProgress(received: begun + news.received, total: news.expected.map { begun + $0 })
            }
        }
    }
}
