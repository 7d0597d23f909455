import Concurrency
import Redis

/// Looks at all leases and products of a redis-server every 50 ms, and remembers what it saw.
final class LeaseWatch: Sendable {
    private struct State {
        var view = LeaseView(held: [:], waiters: [:], stored: [])
        /// When it looked.
        var looks: [ContinuousClock.Instant] = []
        /// When a fence of a product was first seen, under its lease or on what was stored.
        var seen: [String: [Int: ContinuousClock.Instant]] = [:]
        var versions: [String: [LeaseView.Version]] = [:]
        var error: (any Error)?
    }

    static let interval = Duration.milliseconds(50)

    private let redis: RedisClient
    private let state = Lock(State())
    private let task = Lock<Task<Void, Never>?>(nil)

    /// Begins to watch. The client stays its maker's.
    init(_ redis: RedisClient) {
        self.redis = redis
        let watching = Task {
            while !Task.isCancelled {
                do { try await look() } catch { state.withLock { $0.error = error } }
                try? await Task.sleep(for: Self.interval)
            }
        }
        task.withLock { $0 = watching }
    }

    /// Looks once more.
    @discardableResult
    func look() async throws -> LeaseView {
        let view = try await LeaseView.look(redis)
        let now = ContinuousClock.now
        state.withLock { state in
            state.view = view
            state.looks.append(now)
            let fences = view.held.map { ($0.key, $0.value.fence) } + view.stored.map { ($0.product, $0.fence) }
            for (product, fence) in fences where state.seen[product]?[fence] == nil {
                state.seen[product, default: [:]][fence] = now
            }
            for version in view.stored { state.versions[version.product, default: []].append(version) }
        }
        return view
    }

    /// What it saw last.
    var view: LeaseView { state.withLock { $0.view } }

    /// All that was stored, by product and in the order in which it was.
    var versions: [String: [LeaseView.Version]] { state.withLock { $0.versions } }

    /// Whether a product has been stored.
    func isStored(_ product: String) -> Bool { state.withLock { $0.versions[product] != nil } }

    /// When anybody was first seen to make a product, or to have made it, under a newer lease than this.
    func takeover(of product: String, after fence: Int) -> ContinuousClock.Instant? {
        state.withLock { $0.seen[product]?.filter { $0.key > fence }.values.min() }
    }

    /// How much the looks of this span were late, all together: a look takes less than another interval on a machine that has time. So
    /// late, or later, is everybody else on it.
    func lag(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) -> Duration {
        state.withLock { state in
            let looks = [start] + state.looks.filter { $0 > start && $0 <= end }.sorted()
            return zip(looks, looks.dropFirst()).reduce(.zero) {
                $0 + max(.zero, $1.0.duration(to: $1.1) - Self.interval * 2)
            }
        }
    }

    /// Ends watching.
    /// - Throws: what went wrong meanwhile.
    func close() async throws {
        let watching = task.withLock { $0 }
        watching?.cancel()
        await watching?.value
        if let error = state.withLock({ $0.error }), !(error is CancellationError) {
            if (error as? RedisError)?.code != .cancelled { throw error }
        }
    }
}
