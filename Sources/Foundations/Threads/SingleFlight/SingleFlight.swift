/// Runs work once however many callers want its result at the same time, for one key or for several that are worked on
/// together.
///
/// Each caller waits for its own keys and may leave without disturbing the others. An operation that nobody waits for
/// is cancelled. A caller that comes after that, or after its key was completed, starts afresh: nothing is cached.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias State = SingleFlightState<Key, Value>

    private let state = Lock(State())

    /// A single flight without operations.
    public init() {}

    /// The value of a key.
    public struct Result: Sendable {
        /// The value.
        public let value: Value
        /// `true` if the caller started the operation; `false` if it joined one under way.
        public let isOwn: Bool
    }

    /// An operation under way, as the work inside it sees it.
    public final class Operation: Sendable {
        /// The highest priority of all who wait for it.
        public let urgency: Urgency
        let number: UInt64
        private let flight: SingleFlight

        init(number: UInt64, level: Int, of flight: SingleFlight) {
            urgency = Urgency(level: level)
            self.number = number
            self.flight = flight
        }

        /// Marks the point of no return: present and later waiters are told. Only the first call counts.
        /// - Returns: `false` if no waiter stays; the work ends then.
        @discardableResult
        public func markStarted() -> Bool { flight.start(number) }

        /// Gives all who wait for a key its value. A later caller starts afresh.
        public func complete(_ key: Key, with value: Value) { flight.change { $0.complete(key, value, number) } }

        /// Keeps the operation alive without waiters in this process for as long as another process wants it.
        ///
        /// `isWantedElsewhere` is called when the last waiter leaves, and each second from then on. With `nil`, the
        /// initial state, the operation is cancelled at once.
        public func keepAlive(while isWantedElsewhere: (@Sendable () async -> Bool)?) {
            flight.change { $0.setKeepAlive(isWantedElsewhere, number) }
        }
    }

    /// Waits for the operations that work on some of the keys already, and starts one for the rest.
    ///
    /// - Parameters:
    ///   - keys: at least one.
    ///   - urgency: the caller's priority, followed while it rises.
    ///   - onStart: called once, when an operation on one of the keys passes its point of no return or has passed it,
    ///     with `true` for the operation started here. It returns whether the caller stays: an operation that no waiter
    ///     stays for does not start.
    ///   - work: completes each of the keys it is given. It runs in a task of its own.
    /// - Throws: the error that the work on one of the keys threw; `CancellationError` when the task is cancelled.
    public func run(
        _ keys: [Key], urgency: Urgency = Urgency(level: 0),
        onStart: @escaping @Sendable (_ isOwn: Bool) -> Bool = { _ in true },
        _ work: @escaping @Sendable (Operation, [Key]) async throws -> Void
    ) async throws -> [Key: Result] {
        let number = state.withLock { $0.nextNumber() }
        var listeners: [Urgency.Listener] = []
        defer { for listener in listeners { listener.end() } }
        try Task.checkCancellation()
        return try await withCancellableThrowingContinuation { continuation in
            let waiter = State.Waiter(continuation: continuation, onStart: onStart)
            let actions = state.withLock { state in
                state.join(waiter, number, keys) { Operation(number: $0, level: urgency.level, of: self) }
            }
            for operation in actions.joined {
                listeners.append(urgency.listen { operation.raise(to: $0) })
                // Raised only after listening, so that no rise in between is missed.
                operation.raise(to: urgency.level)
            }
            perform(actions)
            if let (operation, keys) = actions.started { start(operation, keys, work) }
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

    /// Asks the waiters of an operation whether they stay.
    private func start(_ number: UInt64) -> Bool {
        switch state.withLock({ $0.start(number) }) {
        case .past: return true
        case .unwanted: break
        case .ask(let asked):
            // All are called, also after the first yes. Waiters that another operation asked before stay.
            let answers = asked.map { call, isOwn in call(isOwn) }
            if answers.isEmpty || answers.contains(true) { return true }
        }
        state.withLock { $0.vacate(number) }
        return false
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

    /// The number of operations under way.
    public var operationCount: Int { state.withLock { $0.count } }
    /// The number of callers that wait for a key.
    public func waiting(for key: Key) -> Int { state.withLock { $0.waiting(for: key) } }
}
