/// The state machine of ``SingleFlightGroup``, a pure value. Each transition returns ``Actions`` that the caller
/// performs outside the lock.
struct SingleFlightState<Key: Hashable & Sendable, Value: Sendable> {
    typealias Results = [Key: SingleFlightGroup<Key, Value>.Result]

    /// A caller waiting for some keys.
    struct Waiter {
        let continuation: CheckedContinuation<Results, any Error>
        let onStart: @Sendable (_ isOwn: Bool) -> Bool
        /// The keys without a value so far.
        var pending: Set<Key> = []
        /// The operation that the caller started.
        var own: UInt64?
        /// All operations that the caller waits for.
        var joined: Set<UInt64> = []
        var completed: Results = [:]
        var hasStarted = false
    }

    /// An operation in flight.
    struct Running {
        let operation: SingleFlightGroup<Key, Value>.Operation
        /// The keys that have not been completed.
        var pending: Set<Key>
        var waiters: Set<UInt64>
        var hasStarted = false
        var isWantedElsewhere: (@Sendable () async -> Bool)?
        var task: Task<Void, Never>?
    }

    /// The actions that follow a transition.
    struct Actions {
        var resumed: [(CheckedContinuation<Results, any Error>, Swift.Result<Results, any Error>)] = []
        var notified: [(call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)] = []
        /// Operations whose last waiter has left.
        var unwaited: [SingleFlightGroup<Key, Value>.Operation] = []
        /// Priorities of the joined operations.
        var joined: [WorkPriority] = []
        /// The operation to start, and its keys.
        var started: (SingleFlightGroup<Key, Value>.Operation, [Key])?
    }

    private var operations: [UInt64: Running] = [:]
    /// The operation that processes a key and may be joined.
    private var operationOf: [Key: UInt64] = [:]
    private var waiters: [UInt64: Waiter] = [:]
    private var numbers: UInt64 = 0

    var count: Int { operations.count }

    func waiting(for key: Key) -> Int {
        operationOf[key].flatMap { operations[$0] }?.waiters.count { waiters[$0]?.pending.contains(key) == true } ?? 0
    }

    mutating func nextNumber() -> UInt64 {
        numbers += 1
        return numbers
    }

    // MARK: Waiters

    mutating func join(
        _ waiter: Waiter, _ number: UInt64, _ keys: [Key], _ make: (UInt64) -> SingleFlightGroup<Key, Value>.Operation
    ) -> Actions {
        var (waiter, actions) = (waiter, Actions())
        waiter.pending = Set(keys)
        let unserved = waiter.pending.filter { key in
            guard let operation = operationOf[key] else { return true }
            waiter.joined.insert(operation)
            return false
        }
        waiter.hasStarted = waiter.joined.contains { operations[$0]?.hasStarted == true }
        if waiter.hasStarted { actions.notified = [(waiter.onStart, false)] }
        if !unserved.isEmpty {
            let operation = make(nextNumber())
            operations[operation.number] = Running(operation: operation, pending: unserved, waiters: [])
            for key in unserved { operationOf[key] = operation.number }
            waiter.own = operation.number
            waiter.joined.insert(operation.number)
            actions.started = (operation, keys.filter(unserved.contains))
        }
        for operation in waiter.joined { operations[operation]?.waiters.insert(number) }
        actions.joined = waiter.joined.compactMap { operations[$0]?.operation.urgency }
        waiters[number] = waiter
        return actions
    }

    mutating func leave(_ number: UInt64) -> Actions {
        guard let waiter = waiters[number] else { return Actions() }
        return remove(number, with: .failure(CancellationError()), waiter)
    }

    private mutating func remove(
        _ number: UInt64, with result: Swift.Result<Results, any Error>, _ waiter: Waiter
    ) -> Actions {
        waiters[number] = nil
        var actions = Actions()
        actions.resumed = [(waiter.continuation, result)]
        for operation in waiter.joined { actions.unwaited += remove(number, from: operation) }
        return actions
    }

    private mutating func remove(_ waiter: UInt64, from number: UInt64) -> [SingleFlightGroup<Key, Value>.Operation] {
        guard operations[number]?.waiters.remove(waiter) != nil, isUnwaited(number) else { return [] }
        return operations[number].map { [$0.operation] } ?? []
    }

    // MARK: Operations

    /// Stores the task of an operation.
    /// - Returns: True if the operation has been dropped already.
    mutating func setTask(_ task: Task<Void, Never>, _ number: UInt64) -> Bool {
        operations[number]?.task = task
        return operations[number] == nil
    }

    /// The decision about an operation that is about to pass its point of no return.
    enum StartDecision {
        /// It has started already.
        case past
        /// It has no waiters in this process. Waiters in other processes will start it.
        case unwanted
        /// The waiters to ask whether they remain, except those that another operation has asked before.
        case ask([(waiter: UInt64, call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)])
    }

    mutating func start(_ number: UInt64) -> StartDecision {
        guard let running = operations[number] else { return .unwanted }
        if running.hasStarted { return .past }
        guard keep(number, without: []) else { return .unwanted }
        operations[number]?.hasStarted = true
        var asked: [(waiter: UInt64, call: @Sendable (_ isOwn: Bool) -> Bool, isOwn: Bool)] = []
        for id in running.waiters {
            guard let waiter = waiters[id], !waiter.hasStarted else { continue }
            waiters[id]?.hasStarted = true
            asked.append((id, waiter.onStart, waiter.own == number))
        }
        return .ask(asked)
    }

    /// Keeps an operation if any of its waiters remains. Otherwise detaches it from its keys in the same step, so that
    /// no caller joins an operation that is about to stop.
    /// - Parameter leaving: The waiters that do not remain.
    /// - Returns: True if a waiter remains.
    mutating func keep(_ number: UInt64, without leaving: [UInt64]) -> Bool {
        guard let operation = operations[number] else { return false }
        guard operation.waiters.isSubset(of: leaving) else { return true }
        vacate(operation.pending, of: number)
        return false
    }

    mutating func complete(_ key: Key, _ value: Value, _ number: UInt64) -> Actions {
        var actions = Actions()
        guard var running = operations[number], running.pending.remove(key) != nil else { return actions }
        operations[number] = running
        vacate([key], of: number)
        for id in running.waiters {
            guard var waiter = waiters[id], waiter.pending.remove(key) != nil else { continue }
            waiter.completed[key] = .init(value: value, isOwn: waiter.own == number)
            if waiter.pending.isEmpty {
                actions.add(remove(id, with: .success(waiter.completed), waiter))
                continue
            }
            let isDone = waiter.pending.isDisjoint(with: running.pending)
            if isDone { waiter.joined.remove(number) }
            waiters[id] = waiter
            if isDone { actions.unwaited += remove(id, from: number) }
        }
        return actions
    }

    /// Ends an operation. Waiters for keys that it did not complete get the error.
    mutating func end(_ number: UInt64, _ error: any Error) -> Actions {
        var actions = Actions()
        guard let operation = operations.removeValue(forKey: number) else { return actions }
        vacate(operation.pending, of: number)
        for id in operation.waiters {
            guard let waiter = waiters[id] else { continue }
            actions.add(remove(id, with: .failure(error), waiter))
        }
        return actions
    }

    // MARK: Operations without waiters

    private func isUnwaited(_ number: UInt64) -> Bool {
        guard let operation = operations[number] else { return false }
        return operation.waiters.isEmpty && !operation.pending.isEmpty
    }

    mutating func setKeepAlive(_ ask: (@Sendable () async -> Bool)?, _ number: UInt64) -> Actions {
        var actions = Actions()
        operations[number]?.isWantedElsewhere = ask
        if ask == nil, isUnwaited(number), let running = operations[number] { actions.unwaited = [running.operation] }
        return actions
    }

    /// The decision about an operation without waiters in this process.
    enum AbandonDecision {
        /// It has ended, or has waiters.
        case none
        /// Ask whether another process wants it.
        case ask(@Sendable () async -> Bool)
        /// Cancel it.
        case cancel(Task<Void, Never>?)
    }

    mutating func abandon(_ number: UInt64) -> AbandonDecision {
        guard isUnwaited(number), let operation = operations[number] else { return .none }
        // A later caller starts a new operation, because this one may end before that is known here.
        vacate(operation.pending, of: number)
        if let ask = operation.isWantedElsewhere { return .ask(ask) }
        return .cancel(drop(number))
    }

    /// Handles the answer of another process, which wants the operation or does not.
    /// - Returns: Whether to ask again later, and the task to cancel.
    mutating func answered(_ number: UInt64, isWanted: Bool) -> (again: Bool, cancelled: Task<Void, Never>?) {
        guard isUnwaited(number) else { return (false, nil) }
        return isWanted ? (true, nil) : (false, drop(number))
    }

    private mutating func drop(_ number: UInt64) -> Task<Void, Never>? {
        guard let operation = operations.removeValue(forKey: number) else { return nil }
        vacate(operation.pending, of: number)
        return operation.task
    }

    /// Detaches the operation from these keys, so that later callers do not join it.
    private mutating func vacate(_ keys: Set<Key>, of number: UInt64) {
        for key in keys where operationOf[key] == number { operationOf[key] = nil }
    }
}

extension SingleFlightState.Actions {
    mutating func add(_ other: Self) {
        resumed += other.resumed
        notified += other.notified
        unwaited += other.unwaited
    }
}
