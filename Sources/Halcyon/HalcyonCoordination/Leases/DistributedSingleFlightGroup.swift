import Concurrency
import Telemetry

/// A single flight across the cluster: it runs at most one operation at a time per key and shares the result with all
/// callers.
///
/// Within the process callers share one operation (``SingleFlightGroup``). Across processes, the operation holds a
/// lease for each key. Other processes wait until the lease ends, and repeat the work if its owner crashes. Stored
/// values are fenced by the token of the lease. Leases only avoid duplicate work. While Redis is unavailable, work
/// continues without them.
public final class DistributedSingleFlightGroup<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The value of a key, with the information whether the caller's own operation produced it.
    public typealias Result = SingleFlightGroup<Key, Value>.Result

    private let kind: LeaseKind
    private let leases: Leases?
    private let degraded: PrioritySemaphore?
    private let singleFlight = SingleFlightGroup<Key, Value>()

    /// The maximum number of executions of a key whose values are rejected by fencing tokens. The last value is then
    /// returned without being stored.
    private static var mostRounds: Int { 3 }

    /// Creates a group.
    /// - Parameters:
    ///   - kind: the kind under which callers that join an operation are counted.
    ///   - leases: the leases shared with other processes; nil to share only within the process.
    ///   - degraded: the limit of operations that run without leases while Redis is unavailable; nil for no limit.
    public init(_ kind: LeaseKind, _ leases: Leases?, degraded: PrioritySemaphore? = nil) {
        self.kind = kind
        self.leases = leases
        self.degraded = degraded
    }

    /// Returns the values of keys, produced by this process or another.
    ///
    /// - Parameters:
    ///   - keys: at least one key; all keys must have the same source.
    ///   - context: the caller's priority, and the callback for the point of no return of the work on any of the keys.
    ///   - execution: the work on keys that no other operation of this process works on.
    /// - Throws: the error that `execution` threw; `CancellationError` if the task is cancelled.
    public func run(
        _ keys: [Key], _ context: WorkContext, _ execution: some DistributedExecution<Key, Value>
    ) async throws -> [Key: Result] {
        let results = try await singleFlight.run(
            keys, urgency: context.urgency, onStart: context.start, onJoin: { execution.willWait() }
        ) { [self] operation, keys in
            let context = WorkContext(urgency: operation.urgency, trace: context.trace) { _ in operation.markStarted() }
            guard let leases, execution.usesLeases else {
                return try await execute(keys, nil, execution, context, operation)
            }
            let names = keys.map(execution.lease)
            try await leases.withLeases(names, execution.leaseKind, operation.urgency) { attempt in
                try await Loop(
                    group: self, leases: leases, attempt: attempt, execution: execution, context: context,
                    operation: operation
                ).run(keys)
            }
        }
        leases?.joined(kind, results.values.count { !$0.isOwn })
        return results
    }

    /// The number of operations in flight in this process.
    public var operationCount: Int { singleFlight.operationCount }

    /// Executes keys without leases.
    fileprivate func execute(
        _ keys: [Key], _ degraded: PrioritySemaphore?, _ execution: some DistributedExecution<Key, Value>,
        _ context: WorkContext,
        _ operation: SingleFlightGroup<Key, Value>.Operation
    ) async throws {
        try await degraded?.acquire(context.urgency)
        defer { degraded?.release() }
        let results = try await execution.execute(keys, Execution(leases: nil, context: context))
        for (key, result) in zip(keys, results) {
            switch result {
            case .completed(let value, _, _), .fenced(let value): operation.complete(key, with: value)
            case .failed(let error, _): throw error
            }
        }
    }

    /// An operation that acquires leases until all keys are completed.
    private struct Loop<Work: DistributedExecution<Key, Value>> {
        let group: DistributedSingleFlightGroup
        let leases: Leases
        let attempt: LeaseSession
        let execution: Work
        let context: WorkContext
        let operation: SingleFlightGroup<Key, Value>.Operation

        func run(_ keys: [Key]) async throws {
            var (open, waited, rounds) = (keys, Set<Key>(), [Key: Int]())
            while !open.isEmpty {
                let answers = try await attempt.acquire(open.map { (execution.lease(for: $0), execution.seen($0)) })
                var (mine, degraded, held, again): ([(Key, Lease)], [Key], [Key], [Key]) = ([], [], [], [])
                for (key, answer) in zip(open, answers) {
                    switch answer {
                    case .available:
                        if let value = try await execution.stored(key, hasWaited: waited.contains(key), context) {
                            operation.complete(key, with: value)
                        } else {
                            again.append(key)
                        }
                    case .acquired(let lease): mine.append((key, lease))
                    case .heldByOther: held.append(key)
                    case .unavailable: degraded.append(key)
                    }
                }
                open = held + again
                if !degraded.isEmpty {
                    try await group.execute(degraded, group.degraded, execution, context, operation)
                } else if !mine.isEmpty {
                    open += try await execute(mine, &rounds)
                } else if again.isEmpty, !held.isEmpty {
                    waited.formUnion(held)
                    for key in try await wait(for: held) { open.removeAll { $0 == key } }
                }
            }
        }

        /// Waits until the lease of one of the keys ends, or until it is time to ask again.
        /// - Returns: the keys that are completed.
        private func wait(for held: [Key]) async throws -> [Key] {
            var done: [Key] = []
            execution.willWait()
            let outcomes = try await attempt.wait(for: held.map(execution.lease))
            for key in held {
                guard let outcome = outcomes[execution.lease(for: key)] else { continue }
                switch try execution.reaction(to: outcome, of: key) {
                case .askAgain: continue
                case .complete(let value): operation.complete(key, with: value)
                case .executeWithoutLease: try await group.execute([key], nil, execution, context, operation)
                }
                done.append(key)
            }
            return done
        }

        /// Executes keys under their leases. Keys without crashes are executed together. Each key after a crash is
        /// executed alone, so that another crash can be attributed to it.
        /// - Returns: the keys to ask for again.
        private func execute(_ mine: [(key: Key, lease: Lease)], _ rounds: inout [Key: Int]) async throws -> [Key] {
            // Another process may still wait after the last caller in this process has left.
            operation.keepAlive { [attempt] in await attempt.isWantedElsewhere() }
            defer { operation.keepAlive(while: nil) }
            let trusted = mine.filter { $0.lease.deaths == 0 }
            var again = trusted.isEmpty ? [] : try await execute(trusted, quarantine: nil, &rounds)
            for suspect in mine where suspect.lease.deaths > 0 {
                do {
                    if let value = try execution.verdict(on: suspect.key, deaths: suspect.lease.deaths, limits) {
                        await attempt.finish(suspect.lease, .givenUp)
                        operation.complete(suspect.key, with: value)
                        continue
                    }
                } catch {
                    await attempt.finish(suspect.lease, .givenUp)
                    throw error
                }
                again += try await execute([suspect], quarantine: limits, &rounds)
            }
            return again
        }

        private var limits: CrashThresholds { leases.options.deaths }

        private func execute(
            _ mine: [(key: Key, lease: Lease)], quarantine: CrashThresholds?, _ rounds: inout [Key: Int]
        ) async throws -> [Key] {
            let execution = Execution(
                leases: mine.map(\.lease), quarantine: quarantine, context: context,
                isWantedElsewhere: { [attempt] in await attempt.isWantedElsewhere() })
            var again: [Key] = []
            var failure: (any Error)?
            for ((key, lease), result) in zip(mine, try await self.execution.execute(mine.map(\.key), execution)) {
                switch result {
                case .completed(let value, let outcome, let isPoison):
                    // Callers of the next minutes get this value immediately.
                    await attempt.finish(lease, outcome, deaths: isPoison ? limits.coincidences : nil)
                    operation.complete(key, with: value)
                case .failed(let error, let outcome):
                    await attempt.finish(lease, outcome)
                    failure = error
                case .fenced(let value):
                    attempt.recordFenced()
                    await attempt.finish(lease, .givenUp)
                    rounds[key, default: 0] += 1
                    if rounds[key, default: 0] < DistributedSingleFlightGroup.mostRounds {
                        again.append(key)
                    } else {
                        operation.complete(key, with: value)
                    }
                }
            }
            if let failure { throw failure }
            return again
        }
    }
}

/// The work of a ``DistributedSingleFlightGroup`` on the keys of one operation.
public protocol DistributedExecution<Key, Value>: Sendable {
    /// The type of keys.
    associatedtype Key: Hashable & Sendable
    /// The type of values.
    associatedtype Value: Sendable

    /// True if the work is shared with other processes.
    var usesLeases: Bool { get }
    /// The kind under which leases are counted.
    var leaseKind: LeaseKind { get }
    /// The name of the lease of a key.
    func lease(for key: Key) -> LeaseName
    /// The version of the stored value that the caller cannot use.
    func seen(_ key: Key) -> KnownVersion
    /// Releases what the work of others may need. Called before the caller waits for an operation of another caller, or
    /// for the lease of another process.
    func willWait()
    /// The value that another process stored.
    /// - Parameter hasWaited: true if this operation waited for it.
    /// - Returns: the value; nil if it is unusable or gone, so that the lease is requested again.
    func stored(_ key: Key, hasWaited: Bool, _ context: WorkContext) async throws -> Value?
    /// The reaction to the end of another process's lease.
    func reaction(to outcome: LeaseOutcome, of key: Key) throws -> LeaseReaction<Value>
    /// Decides about a key after crashes of processes that worked on it.
    /// - Returns: the value for callers instead of another execution; nil to execute the key in quarantine.
    func verdict(on key: Key, deaths: Int, _ limits: CrashThresholds) throws -> Value?
    /// Executes the work on all keys.
    /// - Returns: one result per key, in their order.
    /// - Throws: `CancellationError`.
    func execute(_ keys: [Key], _ execution: Execution) async throws -> [ExecutionResult<Value>]
}

extension DistributedExecution {
    /// Does nothing, for work that holds nothing before it executes.
    public func willWait() {}
}

/// The parameters of one execution.
public struct Execution: Sendable {
    /// The leases in the order of the keys; nil for work without leases.
    public let leases: [Lease]?
    /// The thresholds for a key with previous crashes; nil for other keys.
    public let quarantine: CrashThresholds?
    /// The priority of the operation, and its point of no return.
    public let context: WorkContext
    /// True if another process waits for one of the keys.
    public let isWantedElsewhere: @Sendable () async -> Bool

    init(
        leases: [Lease]?, quarantine: CrashThresholds? = nil, context: WorkContext,
        isWantedElsewhere: @escaping @Sendable () async -> Bool = { false }
    ) {
        self.leases = leases
        self.quarantine = quarantine
        self.context = context
        self.isWantedElsewhere = isWantedElsewhere
    }
}

/// The result of an execution for one key.
public enum ExecutionResult<Value: Sendable>: Sendable {
    /// A value, and the outcome for other processes. If `isPoison`, the key is not executed again for some minutes.
    case completed(Value, LeaseOutcome, isPoison: Bool = false)
    /// A value that was not stored, because a newer one is there or the key was purged meanwhile.
    case fenced(Value)
    /// An error for all callers, and the outcome for other processes.
    case failed(any Error, LeaseOutcome)
}

/// The reaction to the end of another process's lease.
public enum LeaseReaction<Value: Sendable>: Sendable {
    /// Ask for the lease again.
    case askAgain
    /// Complete the key with this value.
    case complete(Value)
    /// Execute the work without a lease, because its value cannot be shared.
    case executeWithoutLease
}

/// The priority, trace and start callback of work.
public struct WorkContext: Sendable {
    /// The priority of the most urgent waiter.
    public let urgency: WorkPriority
    /// The span that the work belongs to, if it is recorded.
    public let trace: TraceContext?
    /// The callback for the point of no return, called once when it is reached or known to have been passed. The
    /// argument is true if the caller's own operation passed it.
    /// - Returns: true if the result is still needed.
    public let start: @Sendable (_ isOwn: Bool) -> Bool

    /// Creates a context from all values.
    public init(
        urgency: WorkPriority = WorkPriority(level: 0), trace: TraceContext? = nil,
        start: @escaping @Sendable (_ isOwn: Bool) -> Bool = { _ in true }
    ) {
        self.urgency = urgency
        self.trace = trace
        self.start = start
    }

    /// Passes the point of no return.
    /// - Throws: `CancellationError` if the result is not needed any more.
    public func markStarted() throws {
        guard start(true) else { throw CancellationError() }
    }
}
