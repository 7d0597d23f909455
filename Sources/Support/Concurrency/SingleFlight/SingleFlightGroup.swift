/// A single-flight group: runs work once for all callers that want its result at the same time, for one key or for
/// several keys that are processed together.
///
/// Each caller waits for its keys and may leave without affecting the others. An operation without waiters is
/// cancelled. A caller that arrives after that, or after its key was completed, starts a new operation: nothing is
/// cached.
public final class SingleFlightGroup<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias State = SingleFlightState<Key, Value>

    private let state = Lock(State())

    /// Creates a group without operations.
    public init() {}

    /// The value of a key.
    public struct Result: Sendable {
        /// The value.
        public let value: Value
        /// True if the caller started the operation; false if it joined one in flight.
        public let isOwn: Bool
    }

    /// A handle to an operation in flight, passed to the work.
    public final class Operation: Sendable {
        /// The highest priority among the waiters.
        public let urgency: WorkPriority
        let number: UInt64
        private let group: SingleFlightGroup

        init(number: UInt64, urgency: WorkPriority, of group: SingleFlightGroup) {
            self.urgency = WorkPriority(level: urgency.level, flow: urgency.flow)
            self.number = number
            self.group = group
        }

        /// Marks the point of no return. Current and later waiters are notified. Only the first call counts.
        /// - Returns: False if no waiter remains; the work must stop then.
        @discardableResult
        public func markStarted() -> Bool { group.start(number) }

        /// Delivers the value of a key to all its waiters. A later caller starts a new operation.
        public func complete(_ key: Key, with value: Value) { group.change { $0.complete(key, value, number) } }

        /// Keeps the operation running without waiters in this process as long as another process wants it.
        ///
        /// `isWantedElsewhere` is called when the last waiter leaves, and every second from then on. With `nil`, the
        /// initial state, the operation is cancelled immediately.
        public func keepAlive(while isWantedElsewhere: (@Sendable () async -> Bool)?) {
            group.change { $0.setKeepAlive(isWantedElsewhere, number) }
        }
    }

    /// Joins the operations that already process some of the keys, starts one for the rest, and waits for all of them.
    ///
    /// - Parameters:
    ///   - keys: The keys; at least one.
    ///   - urgency: The caller's priority. Increases take effect while it waits.
    ///   - onStart: A closure that is called once, when an operation on one of the keys passes its point of no return
    ///     or has passed it. Its argument is true for the operation started here. It returns whether the caller
    ///     remains: an operation for which no waiter remains does not start.
    ///   - onJoin: A closure that is called if operations of other callers process all keys, before it waits for them.
    ///   - work: A closure that completes each of the keys it is given. It runs in a separate task.
    /// - Throws: The error of the work on one of the keys; `CancellationError` if the task is cancelled.
    public func run(
        _ keys: [Key], urgency: WorkPriority = WorkPriority(level: 0),
        onStart: @escaping @Sendable (_ isOwn: Bool) -> Bool = { _ in true },
        onJoin: @Sendable () -> Void = {},
        _ work: @escaping @Sendable (Operation, [Key]) async throws -> Void
    ) async throws -> [Key: Result] {
        let number = state.withLock { $0.nextNumber() }
        var listeners: [WorkPriority.Listener] = []
        defer { for listener in listeners { listener.end() } }
        try Task.checkCancellation()
        return try await withCancellableThrowingContinuation { continuation in
            let waiter = State.Waiter(continuation: continuation, onStart: onStart)
            let actions = state.withLock { state in
                state.join(waiter, number, keys) { Operation(number: $0, urgency: urgency, of: self) }
            }
            for operation in actions.joined {
                listeners.append(urgency.listen { operation.escalate(to: $0) })
                // Raise it only after listening, so that no increase in between is missed.
                operation.escalate(to: urgency.level)
            }
            perform(actions)
            if let (operation, keys) = actions.started { start(operation, keys, work) } else { onJoin() }
        } onCancel: {
            perform(state.withLock { $0.leave(number) })
        }
    }

    private func start(
        _ operation: Operation, _ keys: [Key],
        _ work: @escaping @Sendable (Operation, [Key]) async throws -> Void
    ) {
        let task = Task {
            do {
                try await work(operation, keys)
                change { $0.end(operation.number, CancellationError()) }
            } catch {
                change { $0.end(operation.number, error) }
            }
        }
        if state.withLock({ $0.setTask(task, operation.number) }) { task.cancel() }
    }

    /// Asks the waiters of an operation whether they remain.
    private func start(_ number: UInt64) -> Bool {
        switch state.withLock({ $0.start(number) }) {
        case .past: return true
        case .unwanted: return false
        case .ask(let asked):
            // All are called, even after the first yes. Waiters that another operation asked before remain, and so do
            // those that join meanwhile.
            let leaving = asked.filter { !$0.call($0.isOwn) }.map(\.waiter)
            return state.withLock { $0.keep(number, without: leaving) }
        }
    }

    private func change(_ body: (inout sending State) -> State.Actions) { perform(state.withLock { body(&$0) }) }

    private func perform(_ actions: State.Actions) {
        for (onStart, isOwn) in actions.notified { _ = onStart(isOwn) }
        for (continuation, result) in actions.resumed { continuation.resume(with: result) }
        for operation in actions.unwaited { abandon(operation.number) }
    }

    private func abandon(_ number: UInt64) {
        switch state.withLock({ $0.abandon(number) }) {
        case .none: break
        case .cancel(let task): task?.cancel()
        case .ask(let isWanted): linger(number, while: isWanted)
        }
    }

    private func linger(_ number: UInt64, while isWanted: @escaping @Sendable () async -> Bool) {
        Task {
            while true {
                let answer = await isWanted()
                let (again, cancelled) = state.withLock { $0.answered(number, isWanted: answer) }
                cancelled?.cancel()
                guard again else { return }
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
    }

    /// The number of operations in flight.
    public var operationCount: Int { state.withLock { $0.count } }
    /// The number of callers waiting for a key.
    public func waiting(for key: Key) -> Int { state.withLock { $0.waiting(for: key) } }
}
