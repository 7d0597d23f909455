import Concurrency
import Formats
import Glibc
import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

/// Registers the worker and its number of jobs in Redis, and refreshes the entry until the worker stops. Redis outages
/// are tolerated.
final class Heartbeat: Sendable {
    private let registry: WorkerRegistry
    private let options: HeartbeatOptions
    /// The session timeout of the consumer group.
    private let session: Duration
    /// The lane name of each job topic.
    private let words: [String: String]
    private let state: Lock<State>
    private let task = Lock<Task<Void, Never>?>(nil)
    private let errors: ToleratedErrors
    /// The limits that the registered workers share; nil for none.
    private let limiter: FlowLimiter?

    private struct State {
        /// The entry, without tenants.
        var entry: WorkerInfo
        /// The number of jobs in flight by tenant.
        var tenants: [String: Int] = [:]
        /// The times of the last heartbeats, and the number of finished jobs at each.
        var samples: [(moment: ContinuousClock.Instant, finished: Int)] = []

        /// Adds a heartbeat and updates the rate.
        mutating func sample(at now: ContinuousClock.Instant) {
            if samples.count > Heartbeat.mostSamples { samples.removeFirst() }
            samples.append((now, entry.finished))
            let (first, seconds) = (samples[0], (now - samples[0].moment) / .seconds(1))
            entry.rate = seconds > 0 ? (Double(entry.finished - first.finished) / seconds * 10).rounded() / 10 : 0
        }
    }

    /// The number of heartbeats over which the rate is averaged.
    private static let mostSamples = 10

    /// - Parameters:
    ///   - redis: The Redis client. The caller closes it.
    ///   - session: The session timeout of the worker's consumer group.
    ///   - errors: The log and counter of failed heartbeats.
    init(
        _ redis: RedisClient, _ options: HeartbeatOptions, session: Duration, topics: Topics, threads: Int,
        limiter: FlowLimiter? = nil, errors: ToleratedErrors
    ) {
        self.limiter = limiter
        registry = WorkerRegistry(redis)
        self.errors = errors
        self.options = options
        self.session = session
        words = Dictionary(uniqueKeysWithValues: Lane.allCases.map { (topics.jobs($0), $0.rawValue) })
        let (host, pid) = (Self.host, getpid())
        let number = String(UInt32.random(in: 0 ... .max), radix: 16)
        state = Lock(
            State(
                entry: WorkerInfo(
                    id: "\(host)-\(pid)-\(number)", host: host, pid: pid, version: options.version,
                    since: Timestamp.now.milliseconds, threads: threads)))
    }

    /// The id of the worker.
    var id: String { state.withLock { $0.entry.id } }

    /// Returns the entry with the current numbers of jobs, for a heartbeat.
    private func nextEntry() -> WorkerInfo {
        let state = state.withLock { state in
            state.sample(at: .now)
            return state
        }
        var entry = state.entry
        // In whole MiB, so that the entry does not change with every heartbeat.
        entry.memory = (Int(ProcessStatus.now.residentBytes) >> 20) << 20
        entry.tenants = Dictionary(uniqueKeysWithValues: WorkerInfo.busiest(state.tenants).map { ($0.tenant, $0.jobs) })
        return entry
    }

    /// Starts to refresh the entry periodically.
    func start() {
        let signing = Task {
            while !Task.isCancelled {
                await errors.tolerating {
                    try await registry.register(nextEntry(), for: life)
                    if let limiter { limiter.setMembers(try await registry.expiries().count) }
                }
                await Task.sleepUnlessCancelled(for: options.interval)
            }
        }
        task.withLock { $0 = signing }
    }

    /// Waits, before a worker joins its group, until every registered worker has refreshed its entry or its session has
    /// expired.
    ///
    /// During a rebalance Kafka waits for all members of a group, and every live worker waits with it. A crashed worker
    /// is waited for until its session expires. It is better if only the new worker waits. Without Redis it does not
    /// wait.
    func waitUntilSessionsExpire(log: Log) async {
        await withTimeout(giveUp) { [self] in
            // Without Redis the other workers are unknown.
            guard var unseen = try? await registry.expiries() else { return }
            let start = ContinuousClock.now
            var isSaid = false
            while !unseen.isEmpty {
                await Task.sleepUnlessCancelled(for: .milliseconds(100))
                // Redis became unavailable, so there is nothing left to wait for.
                guard let expiries = try? await registry.expiries() else { return }
                // Live workers refresh their entries. The entries of crashed workers expire.
                unseen = unseen.filter { id, expiry in expiries[id] == expiry }
                if !isSaid, !unseen.isEmpty, start.duration(to: .now) > options.interval * 2 {
                    isSaid = true
                    log.notice(
                        "another worker sends no heartbeats; joining the group after its session expires",
                        ["workers": unseen.keys.sorted(), "session": session])
                }
            }
        }
    }

    /// The maximum wait. After it the group has reassigned the partitions of a crashed worker, so that two rebalances
    /// do not follow each other.
    private var giveUp: Duration { session + .seconds(2) }

    /// The TTL of the entry.
    private var life: Duration { max(giveUp, options.interval * 4) }

    /// Counts a job that was received.
    func jobStarted(_ delivery: JobDelivery) { count(delivery, 1) }

    /// Removes a job that ended or was returned to the queue from the count.
    func jobFinished(_ delivery: JobDelivery) { count(delivery, -1) }

    /// Stops the heartbeat and deletes the entry, if Redis is reachable.
    func deregister() async {
        guard let signing = task.withLock({ $0.take() }) else { return }
        signing.cancel()
        await withTimeout(.seconds(1)) { [registry, id] in
            await signing.value
            // If this fails, the entry expires.
            try? await registry.deregister(id)
        }
    }

    private func count(_ delivery: JobDelivery, _ change: Int) {
        let word = words[delivery.record.topic] ?? "retry"
        state.withLock { state in
            state.entry.jobs[word, default: 0] += change
            if change < 0 { state.entry.finished -= change }
            guard let tenant = delivery.flow.name else { return }
            let count = state.tenants[tenant, default: 0] + change
            state.tenants[tenant] = count > 0 ? count : nil
        }
    }

    private static var host: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "unknown" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The options of the worker's heartbeat in the registry.
public struct HeartbeatOptions: Sendable {
    /// The heartbeat interval. A worker counts as gone after four missed heartbeats.
    public var interval = Duration.seconds(1)
    /// The version of Halcyon that the worker reports.
    public var version = ""

    /// Creates the default options.
    public init() {}
}
