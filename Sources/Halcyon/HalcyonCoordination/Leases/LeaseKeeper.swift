import Redis
import Telemetry
import Threads

/// Prolongs the leases of a process, all of them in one go.
final class LeaseKeeper: Sendable {
    private struct State {
        var held: [String: (lease: Lease, urgency: Urgency)] = [:]
        var task: Task<Void, Never>?
        var isClosed = false
    }

    private let book: LeaseBook
    private let interval: Duration
    private let lost: Counter
    private let errors: ToleratedErrors
    private let state = Lock(State())

    /// - Parameter lost: counts leases that had gone when they were to be prolonged.
    init(_ book: LeaseBook, every interval: Duration, lost: Counter, _ errors: ToleratedErrors) {
        self.book = book
        self.lost = lost
        self.errors = errors
        self.interval = interval
    }

    func add(_ lease: Lease, _ urgency: Urgency) {
        state.withLock { state in
            state.held[lease.key] = (lease, urgency)
            guard state.task == nil, !state.isClosed else { return }
            state.task = Task { await keep() }
        }
    }

    /// How many are held.
    var count: Int { state.withLock { $0.held.count } }

    /// A later lease of the same attempt stays.
    func remove(_ lease: Lease) {
        state.withLock { state in
            if state.held[lease.key]?.lease == lease { state.held[lease.key] = nil }
        }
    }

    /// Until nothing is held: most leases are given back before they are prolonged for the first time.
    private func keep() async {
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
            // What cannot be prolonged now is tried again. What has been lost is of no more use: the fence will say so.
            guard let kept = await errors.tolerating({ try await book.renew(held) }) else { continue }
            for (holding, isKept) in zip(held, kept) where !isKept {
                lost.add()
                remove(holding.lease)
            }
        }
    }

    /// Prolongs nothing any more.
    /// - Returns: what is still held.
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
    /// Of two attempts at one product each has its own.
    fileprivate var key: String { "\(name.lease) \(owner)" }
}

/// Whether Redis is away, as far as leases are concerned. It is said once when that begins, and once when it ends.
final class LeaseOutage: Sendable {
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

    /// There is no answer, or one that leaves no hope.
    func begin(_ error: RedisError) {
        let isNew = state.withLock { state in
            guard !state.isOn else { return false }
            state.isOn = true
            state.probe = Task { await probe() }
            return true
        }
        guard isNew else { return }
        gauge.set(0)
        log.warning("work is not shared with other workers until Redis is back", ["error": "\(error)"])
    }

    /// Waits for Redis to take a write, as leases need: one whose memory is full answers, and takes none.
    private func probe() async {
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: .milliseconds(500))
            // The loop waits for the end of the outage, whose beginning was logged.
            if (try? await redis.send(["SET", "halcyon:{probe}:leases", "1", "PX", "1"])) != nil { break }
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
