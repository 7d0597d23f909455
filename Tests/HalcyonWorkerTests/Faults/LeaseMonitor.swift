import Concurrency
import Redis

/// Polls all leases, sources and results of a redis-server every 50 ms, and records them.
final class LeaseMonitor: Sendable {
    private struct State {
        var snapshot = LeaseSnapshot(holders: [:], waiters: [:], stored: [])
        /// The times of the polls.
        var polls: [ContinuousClock.Instant] = []
        /// The time at which a fencing token of a key was first seen, in a lease or in a stored version.
        var seen: [String: [Int: ContinuousClock.Instant]] = [:]
        var versions: [String: [LeaseSnapshot.Version]] = [:]
        var error: (any Error)?
    }

    static let interval = Duration.milliseconds(50)

    private let redis: RedisClient
    private let state = Lock(State())
    private let task = Lock<Task<Void, Never>?>(nil)

    /// Starts polling. The caller owns the client and closes it.
    init(_ redis: RedisClient) {
        self.redis = redis
        let polling = Task {
            while !Task.isCancelled {
                do { try await poll() } catch { state.withLock { $0.error = error } }
                try? await Task.sleep(for: Self.interval)
            }
        }
        task.withLock { $0 = polling }
    }

    /// Polls once more.
    @discardableResult
    func poll() async throws -> LeaseSnapshot {
        let snapshot = try await LeaseSnapshot.take(redis)
        let now = ContinuousClock.now
        state.withLock { state in
            state.snapshot = snapshot
            state.polls.append(now)
            let fences = snapshot.holders.map { ($0.key, $0.value.fence) } + snapshot.stored.map { ($0.key, $0.fence) }
            for (key, fence) in fences where state.seen[key]?[fence] == nil {
                state.seen[key, default: [:]][fence] = now
            }
            for version in snapshot.stored { state.versions[version.key, default: []].append(version) }
        }
        return snapshot
    }

    /// The latest snapshot.
    var snapshot: LeaseSnapshot { state.withLock { $0.snapshot } }

    /// All versions that were stored, by key and in the order in which they were stored.
    var versions: [String: [LeaseSnapshot.Version]] { state.withLock { $0.versions } }

    /// Returns true if a source or result has been stored.
    func isStored(_ key: String) -> Bool { state.withLock { $0.versions[key] != nil } }

    /// Returns the time at which a newer lease of a key, or a version stored under one, was first seen.
    func takeover(of key: String, after fence: Int) -> ContinuousClock.Instant? {
        state.withLock { $0.seen[key]?.filter { $0.key > fence }.values.min() }
    }

    /// Returns the total lateness of the polls in this span. On an idle machine a poll takes less than another
    /// interval. All other processes on the machine are as late or later.
    func lag(from start: ContinuousClock.Instant, to end: ContinuousClock.Instant) -> Duration {
        state.withLock { state in
            let polls = [start] + state.polls.filter { $0 > start && $0 <= end }.sorted()
            return zip(polls, polls.dropFirst()).reduce(.zero) {
                $0 + max(.zero, $1.0.duration(to: $1.1) - Self.interval * 2)
            }
        }
    }

    /// Stops polling.
    /// - Throws: The last error of a poll.
    func close() async throws {
        let polling = task.withLock { $0 }
        polling?.cancel()
        await polling?.value
        if let error = state.withLock({ $0.error }), !(error is CancellationError) {
            if (error as? RedisError)?.code != .cancelled { throw error }
        }
    }
}
