import Telemetry
import Threads

/// Runs work at most once at a time per key in the cluster, for everybody who wants its result.
///
/// Within the process callers share one operation (``SingleFlight``). Between processes the operation holds a lease for
/// each key: another process waits until the lease ends, and takes the work over if its owner dies. What the work
/// stores is fenced by the lease's token. A lease only saves work: while Redis is away, work goes on without.
public final class DistributedSingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The value of a key.
    public typealias Result = SingleFlight<Key, Value>.Result

    private let kind: LeaseKind
    private let leases: Leases?
    private let degraded: Slots?
    private let flights = SingleFlight<Key, Value>()

    /// The number of times that a value that was fenced out is made again until it is given to its callers unstored.
    private static var mostRounds: Int { 3 }

    /// - Parameters:
    ///   - kind: under which callers that join are counted.
    ///   - leases: shared with the other processes; nil for a process that is alone.
    ///   - degraded: bounds the operations that run without leases because Redis is away; nil for no bound.
    public init(_ kind: LeaseKind, _ leases: Leases?, degraded: Slots? = nil) {
        self.kind = kind
        self.leases = leases
        self.degraded = degraded
    }

    /// The values of some keys, from this process or another.
    ///
    /// - Parameters:
    ///   - keys: at least one; all of one source.
    ///   - context: the caller's priority, and what is called once when work on one of the keys passes its point of no
    ///     return.
    ///   - execution: does the work on keys that no other operation of this process works on.
    /// - Throws: the error that `execution` threw; `CancellationError` when the task is cancelled.
    public func run(
        _ keys: [Key], _ context: WorkContext, _ execution: some DistributedExecution<Key, Value>
    ) async throws -> [Key: Result] {
        let results = try await flights.run(keys, urgency: context.urgency, onStart: context.start) {
            [self] operation, keys in
            let context = WorkContext(urgency: operation.urgency, trace: context.trace) { _ in operation.markStarted() }
            guard let leases, execution.usesLeases else {
                return try await execute(keys, nil, execution, context, operation)
            }
            let names = keys.map(execution.lease)
            try await leases.attempting(names, execution.leaseKind, operation.urgency) { attempt in
                try await Loop(
                    flight: self, leases: leases, attempt: attempt, execution: execution, context: context,
                    operation: operation
                ).run(keys)
            }
        }
        leases?.joined(kind, results.values.count { !$0.isOwn })
        return results
    }

    /// The number of operations under way in this process.
    public var operationCount: Int { flights.operationCount }

    /// Executes keys without leases.
    fileprivate func execute(
        _ keys: [Key], _ degraded: Slots?, _ execution: some DistributedExecution<Key, Value>, _ context: WorkContext,
        _ operation: SingleFlight<Key, Value>.Operation
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

    /// One operation that asks for leases until each key is completed.
    private struct Loop<Work: DistributedExecution<Key, Value>> {
        let flight: DistributedSingleFlight
        let leases: Leases
        let attempt: LeaseAttempt
        let execution: Work
        let context: WorkContext
        let operation: SingleFlight<Key, Value>.Operation

        func run(_ keys: [Key]) async throws {
            var (open, waited, rounds) = (keys, Set<Key>(), [Key: Int]())
            while !open.isEmpty {
                let answers = try await attempt.ask(open.map { (execution.lease(for: $0), execution.seen($0)) })
                var (mine, degraded, held, again): ([(Key, Lease)], [Key], [Key], [Key]) = ([], [], [], [])
                for (key, answer) in zip(open, answers) {
                    switch answer {
                    case .there:
                        if let value = try await execution.stored(key, hasWaited: waited.contains(key), context) {
                            operation.complete(key, with: value)
                        } else {
                            again.append(key)
                        }
                    case .mine(let lease): mine.append((key, lease))
                    case .held: held.append(key)
                    case .without: degraded.append(key)
                    }
                }
                open = held + again
                if !degraded.isEmpty {
                    try await flight.execute(degraded, flight.degraded, execution, context, operation)
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
            let outcomes = try await attempt.wait(for: held.map(execution.lease))
            for key in held {
                guard let outcome = outcomes[execution.lease(for: key)] else { continue }
                switch try execution.reaction(to: outcome, of: key) {
                case .askAgain: continue
                case .complete(let value): operation.complete(key, with: value)
                case .executeWithoutLease: try await flight.execute([key], nil, execution, context, operation)
                }
                done.append(key)
            }
            return done
        }

        /// Executes keys under their leases: those that no process died of together, each of the others by itself, so
        /// that it is known which one is to blame.
        /// - Returns: the keys to be asked for again.
        private func execute(_ mine: [(key: Key, lease: Lease)], _ rounds: inout [Key: Int]) async throws -> [Key] {
            // Another process may wait when nobody in this one does any more.
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

        private var limits: DeathLimits { leases.options.deaths }

        private func execute(
            _ mine: [(key: Key, lease: Lease)], quarantine: DeathLimits?, _ rounds: inout [Key: Int]
        ) async throws -> [Key] {
            let execution = Execution(
                leases: mine.map(\.lease), quarantine: quarantine, context: context,
                isWantedElsewhere: { [attempt] in await attempt.isWantedElsewhere() })
            var again: [Key] = []
            var failure: (any Error)?
            for ((key, lease), result) in zip(mine, try await self.execution.execute(mine.map(\.key), execution)) {
                switch result {
                case .completed(let value, let outcome, let isPoison):
                    // Whoever asks in the next minutes is told at once.
                    await attempt.finish(lease, outcome, deaths: isPoison ? limits.coincidences : nil)
                    operation.complete(key, with: value)
                case .failed(let error, let outcome):
                    await attempt.finish(lease, outcome)
                    failure = error
                case .fenced(let value):
                    attempt.wasFencedOut()
                    await attempt.finish(lease, .givenUp)
                    rounds[key, default: 0] += 1
                    if rounds[key, default: 0] < DistributedSingleFlight.mostRounds {
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

/// The work of a ``DistributedSingleFlight`` on the keys that one operation was started for.
public protocol DistributedExecution<Key, Value>: Sendable {
    /// A key of the single flight.
    associatedtype Key: Hashable & Sendable
    /// A value of the single flight.
    associatedtype Value: Sendable

    /// Whether the work is shared with other processes.
    var usesLeases: Bool { get }
    /// Under which kind leases are counted.
    var leaseKind: LeaseKind { get }
    /// The lease of a key.
    func lease(for key: Key) -> LeaseName
    /// The version of the stored value that is of no use.
    func seen(_ key: Key) -> Seen
    /// The value that another process stored.
    /// - Parameter hasWaited: whether this operation waited for it.
    /// - Returns: nil if it is of no use, or gone: the lease is asked for again.
    func stored(_ key: Key, hasWaited: Bool, _ context: WorkContext) async throws -> Value?
    /// The reaction to the end of another process's lease.
    func reaction(to outcome: LeaseOutcome, of key: Key) throws -> LeaseReaction<Value>
    /// Decides about a key that processes died of.
    /// - Returns: the value that callers get instead of another execution; nil to execute it in quarantine.
    func verdict(on key: Key, deaths: Int, _ limits: DeathLimits) throws -> Value?
    /// Executes the work on all keys.
    /// - Returns: one result per key, in their order.
    /// - Throws: `CancellationError`.
    func execute(_ keys: [Key], _ execution: Execution) async throws -> [ExecutionResult<Value>]
}

/// The terms of one execution.
public struct Execution: Sendable {
    /// The leases, in the order of the keys; nil for work without leases.
    public let leases: [Lease]?
    /// The limits for a key that processes died of; nil for keys without deaths.
    public let quarantine: DeathLimits?
    /// The priority of the operation, and its point of no return.
    public let context: WorkContext
    /// Whether another process waits for one of the keys.
    public let isWantedElsewhere: @Sendable () async -> Bool

    init(
        leases: [Lease]?, quarantine: DeathLimits? = nil, context: WorkContext,
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
    /// A value, and what other processes are told. `isPoison`: the key is not executed again for some minutes.
    case completed(Value, LeaseOutcome, isPoison: Bool = false)
    /// A value that was not stored, because a newer one is there or the key was purged meanwhile.
    case fenced(Value)
    /// An error for all callers, and what other processes are told.
    case failed(any Error, LeaseOutcome)
}

/// The reaction to the end of another process's lease.
public enum LeaseReaction<Value: Sendable>: Sendable {
    /// Ask for the lease again.
    case askAgain
    /// Give callers this value.
    case complete(Value)
    /// Execute the work without a lease: its value cannot be shared.
    case executeWithoutLease
}

/// For whom work is done.
public struct WorkContext: Sendable {
    /// The priority of whoever waits.
    public let urgency: Urgency
    /// The span that the work belongs to, if it is recorded.
    public let trace: TraceContext?
    /// Called once at the point of no return, or when it has been passed; with `true` if the caller's own operation
    /// passed it.
    /// - Returns: whether the result is still wanted.
    public let start: @Sendable (_ isOwn: Bool) -> Bool

    /// Takes the values as they are.
    public init(
        urgency: Urgency = Urgency(level: 0), trace: TraceContext? = nil,
        start: @escaping @Sendable (_ isOwn: Bool) -> Bool = { _ in true }
    ) {
        self.urgency = urgency
        self.trace = trace
        self.start = start
    }

    /// Passes the point of no return.
    /// - Throws: `CancellationError` if nobody wants the result any more.
    public func markStarted() throws {
        guard start(true) else { throw CancellationError() }
    }
}
