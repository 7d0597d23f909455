import Concurrency
import Redis
import Telemetry

/// Renews all leases of a process in one pipeline.
final class LeaseRenewer: Sendable {
    private struct State {
        var held: [String: (lease: Lease, urgency: WorkPriority)] = [:]
        var task: Task<Void, Never>?
        var isClosed = false
    }

    private let store: LeaseStore
    private let interval: Duration
    private let lost: Counter
    private let errors: ToleratedErrors
    private let state = Lock(State())

    /// Creates a renewer.
    /// - Parameter lost: the counter of leases that had expired before they were renewed.
    init(_ store: LeaseStore, every interval: Duration, lost: Counter, _ errors: ToleratedErrors) {
        self.store = store
        self.lost = lost
        self.errors = errors
        self.interval = interval
    }

    func add(_ lease: Lease, _ urgency: WorkPriority) {
        state.withLock { state in
            state.held[lease.key] = (lease, urgency)
            guard state.task == nil, !state.isClosed else { return }
            state.task = Task { await renewPeriodically() }
        }
    }

    /// The number of leases held.
    var count: Int { state.withLock { $0.held.count } }

    /// Stops renewing a lease. A later lease of the same attempt is not affected.
    func remove(_ lease: Lease) {
        state.withLock { state in
            if state.held[lease.key]?.lease == lease { state.held[lease.key] = nil }
        }
    }

    /// Renews leases until none is held. Most leases are released before their first renewal.
    private func renewPeriodically() async {
        while true {
            await Task.sleepUnlessCancelled(for: interval)
            let held: [(lease: Lease, level: Int)]? = state.withLock { state in
                if state.held.isEmpty || state.isClosed {
                    state.task = nil
                    return nil
                }
                return state.held.values.map { ($0.lease, $0.urgency.level) }
            }
            guard let held else { return }
            // Failed renewals are repeated. A lost lease is dropped; its fencing token protects what it stores.
            guard let kept = await errors.tolerating({ try await store.renew(held) }) else { continue }
            for (holding, isKept) in zip(held, kept) where !isKept {
                lost.add()
                remove(holding.lease)
            }
        }
    }

    /// Stops renewing leases.
    /// - Returns: the leases that are still held.
    func close() async -> [Lease] {
        let (task, held) = state.withLock { state in
            state.isClosed = true
            return (state.task, state.held.values.map(\.lease))
        }
        task?.cancel()
        await task?.value
        return held
    }
}

extension Lease {
    /// The identity of a lease. Two attempts at one product have different leases.
    fileprivate var key: String { "\(name.lease) \(owner)" }
}

/// The circuit breaker for retries of requests for leases. It opens while Redis, or a primary of its cluster, is
/// unavailable, and logs when it opens and when it closes.
final class LeaseCircuitBreaker: Sendable {
    private struct State {
        var isOn = false
        var probe: Task<Void, Never>?
    }

    private let redis: RedisClient
    private let log: Log
    private let gauge: Gauge
    private let state = Lock(State())

    init(_ redis: RedisClient, _ log: Log, _ gauge: Gauge) {
        self.redis = redis
        self.log = log
        self.gauge = gauge
    }

    var isOn: Bool { state.withLock { $0.isOn } }

    /// Opens the circuit after a timeout or an error that a retry cannot fix, until the primary of this lease is
    /// available.
    func begin(_ error: RedisError, at name: LeaseName) {
        let isNew = state.withLock { state in
            guard !state.isOn else { return false }
            state.isOn = true
            state.probe = Task { await probe(name) }
            return true
        }
        guard isNew else { return }
        gauge.set(0)
        log.warning(
            "Redis is unavailable; work is not shared with other workers",
            ["error": "\(error)", "key": name.product])
    }

    /// Waits until Redis accepts a write in the hash slot of a lease, because an instance whose memory is full responds
    /// but cannot store leases.
    private func probe(_ name: LeaseName) async {
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: .milliseconds(500))
            // Errors are ignored, because the beginning of the outage was logged.
            if (try? await redis.send(["SET", .string(name.probe), "1", "PX", "1"])) != nil { break }
        }
        if Task.isCancelled { return }
        state.withLock { $0.isOn = false }
        gauge.set(1)
        log.notice("work is shared with other workers again")
    }

    func close() async {
        let probe = state.withLock { $0.probe }
        probe?.cancel()
        await probe?.value
    }
}
