import Concurrency
import Redis
import Telemetry

/// The leases of a process. They determine which worker produces a product, and notify the others when it is done.
///
/// Leases are an optimization. They may be lost, granted twice, or unavailable. Correctness depends on the fencing
/// tokens that scripts check when they store (``FencingTokens``). While Redis is unavailable, work continues without
/// leases after ``LeaseOptions/fallbackTimeout``.
public final class Leases: Sendable {
    /// The options of the leases.
    public let options: LeaseOptions
    private let store: LeaseStore
    private let wakeups = LeaseNotifications()
    let keeper: LeaseRenewer
    private let outage: LeaseCircuitBreaker
    private let metrics: LeaseMetrics
    /// The counter of failed releases and renewals. Those leases expire.
    private let errors: ToleratedErrors
    private let isClosed = Lock(false)

    /// Creates leases and subscribes to the ends of other processes' leases.
    /// - Parameters:
    ///   - redis: the client. The caller owns it and the subscriber, and closes both after ``close()``.
    public init(
        _ redis: RedisClient, _ subscriber: RedisSubscriber, _ options: LeaseOptions = LeaseOptions(), log: Log,
        metrics: Metrics
    ) {
        self.options = options
        self.metrics = LeaseMetrics(metrics)
        errors = ToleratedErrors(of: "leases", log: log, metrics: metrics)
        let process = String(UInt64.random(in: .min ... .max), radix: 36)
        store = LeaseStore(redis: redis, process: process, duration: options.duration)
        keeper = LeaseRenewer(store, every: options.duration / 3, lost: self.metrics.lost, errors)
        outage = LeaseCircuitBreaker(redis, log, self.metrics.isCoalescing)
        wakeups.listen(to: "halcyon:process:\(process)", subscriber, whenDown: options.recheck)
        metrics.observable(.gauge, "halcyon_leases_held", help: "Leases that this worker holds.") {
            [weak keeper] in Double(keeper?.count ?? 0)
        }
    }

    /// Stops background tasks and releases all leases that are held, so that work cut short by a shutdown does not
    /// count as a crash. It takes a moment at most, whether or not Redis responds. Leases that could not be released
    /// expire.
    public func close() async {
        isClosed.withLock { $0 = true }
        await wakeups.close()
        let held = await keeper.close()
        await outage.close()
        guard !held.isEmpty else { return }
        let ending = Task { [store, errors] in _ = await errors.tolerating { try await store.giveUp(held) } }
        let fallbackTimeout = Task {
            try await Task.sleep(for: Self.lastPatience)
            ending.cancel()
        }
        await ending.value
        fallbackTimeout.cancel()
    }

    /// The timeout for releasing leases in ``close()``.
    private static let lastPatience = Duration.seconds(2)

    /// True while Redis, or a primary of its cluster, grants no leases, so that work continues without them.
    public var isWithout: Bool { outage.isOn }

    /// Runs an attempt to obtain products of one source from this worker or others. Leases that the attempt still holds
    /// at the end are released.
    /// - Parameter names: the names of all leases that the attempt may request.
    /// - Throws: errors of `body`.
    public func withLeases<Outcome: Sendable>(
        _ names: [LeaseName], _ kind: LeaseKind, _ urgency: WorkPriority,
        _ body: (LeaseSession) async throws -> Outcome
    ) async throws -> Outcome {
        let attempt = attempt(names, kind, urgency)
        do {
            let outcome = try await body(attempt)
            await attempt.end()
            return outcome
        } catch {
            // The release is not cancelled with the task, because others wait for the leases.
            await Task { await attempt.end() }.value
            throw error
        }
    }

    /// Begins an attempt, which must be ended.
    func attempt(_ names: [LeaseName], _ kind: LeaseKind, _ urgency: WorkPriority) -> LeaseSession {
        LeaseSession(self, wakeups.watch(names), metrics[kind], urgency)
    }

    /// Counts jobs that joined an operation in this process.
    public func joined(_ kind: LeaseKind, _ count: Int) { if count > 0 { metrics[kind].joined.add(count) } }

    // MARK: Attempts

    /// Requests leases, and retries for a while if Redis does not respond. During an outage there is one attempt, which
    /// succeeds if another primary of a cluster grants the leases. Without a connection it fails at once, and while no
    /// primary serves their hash slot, after the grace period of the client (half a second).
    /// - Returns: the result for each product, in their order, and false if a request without a reply may have been
    ///   granted.
    /// - Throws: `CancellationError`.
    func enter(
        _ wanted: [(name: LeaseName, seen: KnownVersion)], attempt: String, level: Int
    ) async throws -> (answers: [AcquireResult], areCertain: Bool) {
        var areCertain = true
        let giveUpAt = ContinuousClock.now + options.fallbackTimeout
        var backoff = Backoff(initial: .milliseconds(50), maximum: .milliseconds(500))
        while true {
            // A lease acquired now would never be released.
            if isClosed.withLock({ $0 }) { throw CancellationError() }
            do throws(RedisError) {
                return (try await store.enter(wanted, attempt: attempt, level: level), true)
            } catch {
                if [.connectionLost, .timeout, .protocolError].contains(error.code) { areCertain = false }
                switch error.code {
                case .cancelled, .closed: throw CancellationError()
                case _ where error.isRetriable && !outage.isOn && .now < giveUpAt: break
                default:
                    outage.begin(error, at: wanted[0].name)
                    return (wanted.map { _ in .unavailable }, areCertain)
                }
            }
            try await Task.sleep(for: backoff.next())
        }
    }

    func hold(_ lease: Lease, _ urgency: WorkPriority) {
        keeper.add(lease, urgency)
        wakeups.onRaise(of: lease) { urgency.escalate(to: $0) }
    }

    private func forget(_ lease: Lease) {
        keeper.remove(lease)
        wakeups.onRaise(of: lease, nil)
    }

    func release(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async {
        forget(lease)
        // The release is not cancelled with the task. If Redis is unavailable, the lease expires.
        _ = await Task { await errors.tolerating { try await store.release(lease, outcome, deaths: deaths) } }.value
    }

    /// Returns true if another attempt waits for one of the leases of an attempt. If it returns false, the leases have
    /// ended.
    /// - Returns: nil if Redis did not respond.
    func areWanted(_ leases: [Lease]) async -> Bool? {
        let answer = await errors.tolerating { try await store.areWanted(leases) }
        if answer == false { for lease in leases { forget(lease) } }
        return answer
    }

    func leave(_ names: [LeaseName], attempt: String) async {
        for name in names { await errors.tolerating { try await store.leave(name, attempt: attempt) } }
    }

    /// The lease of an attempt that does not know whether it was granted.
    func perhaps(_ name: LeaseName, attempt: String) -> Lease {
        Lease(name: name, owner: store.owner(attempt), fence: 0, deaths: 0)
    }
}

/// The name of a lease for one product, such as a result or a source.
///
/// It is derived from the key of the product. The keys of the lease are in the same hash slot of a Redis Cluster as the
/// product.
///
/// | key | contents |
/// |---|---|
/// | `halcyon:{S}:lease:ITEM` | the owner, `PROCESS:ATTEMPT:FENCE:LEVEL`, with an expiry |
/// | `halcyon:{S}:waiters:ITEM` | the waiters, `PROCESS:ATTEMPT` in a sorted set by the time of their last request |
/// | `halcyon:{S}:fences` | a hash for all items of the source, with the fields below |
///
/// - `last` is the highest token granted.
/// - `floor` and `floor:ITEM` are the minimum tokens for storing.
/// - `deaths:ITEM` is the number of attempts that never ended.
public struct LeaseName: Hashable, Sendable {
    /// The key of the product.
    public let product: String
    private let tag: Substring
    /// The last part of the product's key.
    public let item: Substring

    /// Creates the name of a lease.
    /// - Parameter product: the key of the product, `PREFIX{TAG}:ITEM`.
    public init(product: String) {
        guard let brace = product.firstIndex(of: "}") else {
            preconditionFailure("the key of the product has no hash tag: \(product)")
        }
        self.product = product
        tag = product[...brace]
        item = product[brace...].dropFirst(2)
    }

    var lease: String { "\(tag):lease:\(item)" }
    var waiters: String { "\(tag):waiters:\(item)" }
    /// A key that is written to find out whether Redis grants leases again.
    var probe: String { "\(tag):probe" }
    /// The key of the fencing tokens of all items of the source.
    public var fences: String { "\(tag):fences" }
}

/// A lease of this process on a product.
public struct Lease: Hashable, Sendable {
    /// The name of the lease.
    public let name: LeaseName
    /// The process and the attempt, unique for each attempt.
    public let owner: String
    /// The fencing token. It grows with each lease of a source, and a product with an older token never replaces a
    /// newer one.
    public let fence: Int
    /// The number of previous attempts that acquired the lease and never ended, because their process crashed or hung
    /// until the lease expired. It is reset by an attempt that succeeds or fails permanently, by a purge, and when the
    /// fencing tokens expire.
    public let deaths: Int
}

/// The version of a product that a process knows already.
public enum KnownVersion: Hashable, Sendable {
    /// The product is missing.
    case nothing
    /// The process cannot use the version with this fencing token. A newer one may be usable.
    case version(Int)
    /// The product must be produced again, whatever is stored.
    case anything
}

/// The result of a request for a product.
public enum AcquireResult: Hashable, Sendable {
    /// The product is stored, or a version newer than the known one.
    case available
    /// The lease was acquired. Produce the product.
    case acquired(Lease)
    /// Another attempt holds the lease.
    case heldByOther(LeaseOwner)
    /// Redis is unavailable. Produce the product without a lease.
    case unavailable
}

/// The current owner of a lease.
public struct LeaseOwner: Hashable, Sendable {
    /// The process and the attempt.
    public let owner: String
    /// The fencing token of the lease.
    public let fence: Int
    /// The remaining time of the lease, unless it is renewed.
    public let left: Duration
}

/// The durations and thresholds of leases.
public struct LeaseOptions: Hashable, Sendable {
    /// The lease duration. After a crash, no other worker continues the work for this time. Leases are renewed three
    /// times per duration.
    public var duration = Duration.seconds(10)
    /// The maximum time after which a waiter asks again, even if it was not notified.
    public var recheck = Duration.seconds(1)
    /// The time without a response from Redis after which work continues without leases.
    public var fallbackTimeout = Duration.seconds(6)

    /// The numbers of crashes (``Lease/deaths``) after which a product is poison.
    public var deaths = CrashThresholds()

    /// Creates options with default values.
    public init() {}
}
