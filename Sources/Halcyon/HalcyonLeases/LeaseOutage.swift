import Redis
import Telemetry
import Threads

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
