import Concurrency

/// The limits that protect the targets of requests other than loads of sources. They apply to each process separately.
public struct TargetLimits: Hashable, Sendable {
    /// The maximum number of concurrent requests to one target.
    public var concurrency = 8
    /// The maximum number of requests that wait for a target. Further ones are postponed.
    public var queue = 256
    /// The number of consecutive failures after which the circuit breaker of a target opens. One request at a time then
    /// probes the target.
    public var failures = 5

    /// Creates the default limits of webhooks.
    public init() {}

    /// The default limits of uploads. A target occupies less than the window of a partition (256 jobs), so that other
    /// jobs of the partition proceed while it does not respond.
    public static var uploads: TargetLimits {
        var limits = TargetLimits()
        (limits.concurrency, limits.queue) = (16, 128)
        return limits
    }
}

/// Limits the requests to each target, so that a target that is slow or down does not delay others.
public final class TargetLimiter: Sendable {
    /// The circuit breaker of a target. It does not distinguish between requests to the same target.
    public typealias Breaker = CircuitBreaker<Origin>

    private struct Target {
        let permits: PrioritySemaphore
        /// The number of requests in flight.
        private(set) var inFlight = 0
        /// The number of requests that wait for a permit.
        var waiting = 0
        private var breaker: Breaker

        init(_ permits: PrioritySemaphore, _ policy: Breaker.Policy) {
            self.permits = permits
            breaker = Breaker(policy)
        }

        /// True if the entry holds no information and can be removed.
        var isNew: Bool { breaker.isIdle }

        /// True if there are no requests in flight or waiting.
        var isIdle: Bool { inFlight == 0 && waiting == 0 }

        func mayBegin(at now: ContinuousClock.Instant) -> Bool {
            switch breaker.state(at: now) {
            case .closed: true
            case .halfOpen: inFlight == 0
            case .open, .probing: false
            }
        }

        mutating func begin(at now: ContinuousClock.Instant) {
            inFlight += 1
            _ = breaker.beginProbe(at: now)
        }

        mutating func end(_ outcome: Breaker.Outcome, of target: Origin, at now: ContinuousClock.Instant) {
            inFlight -= 1
            // A request that started before the breaker opened says as much about the target as the probe, which starts
            // after the request has ended.
            breaker.record(outcome, of: target, isProbe: true, at: now)
        }
    }

    /// The maximum number of targets without requests that are remembered because of their failures.
    private static let mostIdle = 1000

    private let limits: TargetLimits
    private let shares: [Int]
    private let policy: Breaker.Policy
    private let targets = Lock<[Origin: Target]>([:])

    /// Creates a limiter.
    /// - Parameter shares: The shares of the priority levels in the permits of a target, highest priority first.
    public init(_ limits: TargetLimits, shares: [Int] = [1]) {
        self.limits = limits
        self.shares = shares
        // The probe may start at once.
        policy = Breaker.Policy(failures: limits.failures, openTime: Backoff(initial: .zero, maximum: .zero))
    }

    /// Waits until a request may start. A caller that is admitted must report the outcome with ``release(_:_:)``.
    /// - Parameters:
    ///   - urgency: The priority of the request. The default is the lowest.
    ///   - deadline: The time at which waiting ends; nil for no limit.
    /// - Returns: False if the request is to be postponed, because the target is down, the queue is full, or the
    ///   deadline has passed.
    /// - Throws: `CancellationError` if the task is cancelled.
    public func acquire(
        _ target: Origin, _ urgency: WorkPriority? = nil, until deadline: ContinuousClock.Instant? = nil
    ) async throws -> Bool {
        let permits: PrioritySemaphore? = targets.withLock { targets in
            var entry = targets[target] ?? Target(PrioritySemaphore(limits.concurrency, shares: shares), policy)
            guard entry.mayBegin(at: .now), entry.waiting < limits.queue || entry.inFlight < limits.concurrency else {
                return nil
            }
            entry.waiting += 1
            targets[target] = entry
            return entry.permits
        }
        guard let permits else { return false }
        do {
            guard try await permits.acquire(urgency, until: deadline) else {
                change(target) { $0.waiting -= 1 }
                return false
            }
        } catch {
            change(target) { $0.waiting -= 1 }
            throw error
        }
        let isIn = change(target) { entry in
            entry.waiting -= 1
            // Other requests may have failed in the meantime.
            let isIn = entry.mayBegin(at: .now)
            if isIn { entry.begin(at: .now) }
            return isIn
        }
        if isIn != true { permits.release() }
        return isIn == true
    }

    /// Records the outcome of a request and releases its permit.
    public func release(_ target: Origin, _ outcome: Breaker.Outcome) {
        let permits = change(target) { entry in
            entry.end(outcome, of: target, at: .now)
            return entry.permits
        }
        permits?.release()
    }

    /// Changes the entry of a target that has requests, and removes it if it holds no information afterwards.
    @discardableResult
    private func change<Result>(_ target: Origin, _ body: (inout Target) -> Result) -> Result? {
        targets.withLock { targets in
            guard var entry = targets[target] else { return nil }
            let result = body(&entry)
            targets[target] = entry
            forget(target, &targets)
            return result
        }
    }

    /// Removes the entry of a target that holds no information. Removes all idle entries if there are too many.
    private func forget(_ target: Origin, _ targets: inout [Origin: Target]) {
        guard let entry = targets[target], entry.isIdle else { return }
        if entry.isNew {
            targets[target] = nil
        } else if targets.count > Self.mostIdle {
            targets = targets.filter { !$0.value.isIdle }
        }
    }
}
