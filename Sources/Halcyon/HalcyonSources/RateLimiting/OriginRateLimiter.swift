import Concurrency
import HalcyonModel
import Redis
import Telemetry

/// Admits loads of an origin within its rate and concurrency limits, unless its circuit breaker is open.
///
/// Loads of one origin wait for their turn. Only the next one polls the store, so that thousands of waiting loads cost
/// no more than one, and at once when another load of this process ends. A waiting load holds no resources that loads
/// of other origins need.
struct OriginRateLimiter: Sendable {
    /// A load that was admitted.
    struct OriginPermit: Sendable {
        fileprivate let origin: Origin
        fileprivate let load: String
        fileprivate let url: String
        fileprivate let store: any OriginLimiterStore
    }

    /// The lock of an origin. Its holder polls the store.
    private struct OriginLock {
        let semaphore: PrioritySemaphore
        var users = 0
        /// The event that wakes the holder.
        var release = AsyncEvent()
    }

    private let shared: (any OriginLimiterStore)?
    private let own: LocalOriginLimiterStore
    private let locks = Lock<[Origin: OriginLock]>([:])
    private let shares: [Int]
    private let errors: ToleratedErrors

    /// Creates a rate limiter.
    /// - Parameters:
    ///   - redis: The client for the limits that all workers share. Without it, or while Redis is unavailable, this
    ///     process counts its own loads. In the latter case it uses half of the concurrency limit.
    ///   - shares: The weights of the lanes at the lock of an origin.
    ///   - errors: Counts and logs Redis errors.
    init(
        _ redis: RedisClient?, _ limits: OriginLimits, shares: [Int] = [1], errors: ToleratedErrors = .silent
    ) {
        self.init(
            shared: redis.map { OriginLeaseRenewer(RedisOriginLimiterStore($0, limits), lease: limits.lease, errors) },
            limits, shares: shares, errors: errors)
    }

    /// Creates a rate limiter that shares the limits through any store.
    init(
        shared: (any OriginLimiterStore)?, _ limits: OriginLimits, shares: [Int] = [1],
        errors: ToleratedErrors = .silent
    ) {
        self.shares = shares
        self.errors = errors
        self.shared = shared
        var own = limits
        if shared != nil { own.concurrency = max(1, limits.concurrency / 2) }
        // A process always learns when its own loads end, so their leases need no renewal.
        own.lease = .seconds(86_400)
        self.own = LocalOriginLimiterStore(own)
    }

    /// Waits until a load may start. The caller must report the outcome with ``release(_:_:)``.
    ///
    /// - Parameter url: An identifier of what is loaded, for the circuit breaker.
    /// - Throws: ``JobError`` `origin_unavailable` while the circuit breaker is open; `CancellationError`.
    func acquire(_ origin: Origin, _ url: String, _ urgency: WorkPriority? = nil) async throws -> OriginPermit {
        let semaphore = locks.withLock { locks in
            var lock = locks[origin] ?? OriginLock(semaphore: PrioritySemaphore(1, shares: shares))
            lock.users += 1
            locks[origin] = lock
            return lock.semaphore
        }
        defer {
            locks.withLock { locks in
                locks[origin]?.users -= 1
                if locks[origin]?.users == 0 { locks[origin] = nil }
            }
        }
        try await semaphore.acquire(urgency)
        defer { semaphore.release() }
        let load = newLoad()
        while true {
            let release = AsyncEvent()
            locks.withLock { $0[origin]?.release = release }
            switch try await ask(origin, url, load) {
            case .admitted(let permit): return permit
            // Jitter keeps processes from polling at the same moment.
            case .busy(let time): try await release.wait(atMost: time * Double.random(in: 0.75...1.25))
            }
        }
    }

    /// Admits a load at once, even if others wait for their turn.
    /// - Returns: Nil if a limit is reached.
    /// - Throws: ``JobError`` `origin_unavailable` while the circuit breaker is open.
    func tryAcquire(_ origin: Origin, _ url: String) async throws(JobError) -> OriginPermit? {
        if case .admitted(let permit) = try await ask(origin, url, newLoad()) { permit } else { nil }
    }

    /// True if loads of this process wait for their turn.
    func hasWaiters(_ origin: Origin) -> Bool { locks.withLock { $0[origin] != nil } }

    /// Records the end of a load.
    func release(_ permit: OriginPermit, _ outcome: OriginOutcome) async {
        // Runs even if the caller's task is cancelled. While Redis is unavailable, the load counts until its lease
        // expires.
        _ = await Task {
            await errors.tolerating {
                try await permit.store.release(permit.origin, load: permit.load, of: permit.url, outcome)
            }
            locks.withLock { $0[permit.origin]?.release }?.signal()
        }.value
    }

    private enum Admission {
        case admitted(OriginPermit)
        /// A limit is reached. Ask again after this time.
        case busy(Duration)
    }

    private func ask(_ origin: Origin, _ url: String, _ load: String) async throws(JobError) -> Admission {
        let (answer, store) = await answer(origin, load)
        switch answer {
        case .go: return .admitted(OriginPermit(origin: origin, load: load, url: url, store: store))
        case .wait(let time): return .busy(time)
        case .resting(let time):
            throw JobError(
                .originUnavailable,
                "circuit breaker of \(origin) is open for \(time.wholeMilliseconds) ms; too many loads failed"
            ).retryAfter(atLeast: time / .seconds(1))
        }
    }

    private func answer(_ origin: Origin, _ load: String) async -> (OriginAnswer, any OriginLimiterStore) {
        if let shared, let answer = await errors.tolerating({ try await shared.acquire(origin, load: load) }) {
            return (answer, shared)
        }
        return (own.acquire(origin, load: load), own)
    }

    private func newLoad() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }
}

extension OriginOutcome {
    /// Classifies an error of a load.
    init(_ failure: JobError) {
        switch failure.code {
        case .dnsError, .connectError, .tlsError, .timeout: self = .failed
        case .httpError: self = failure.isRetryable ? .failed : .answered
        default: self = .answered
        }
    }
}
