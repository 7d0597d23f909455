/// Work that is done once however many want it at the same time: single flight, for one key or for several that are made together.
///
/// Whoever boards waits for its keys alone, and may leave without disturbing the others. Work that nobody waits for any more is
/// cancelled; who comes after that starts afresh, and so does who comes after a landing: nothing is kept.
public final class Flights<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Book = FlightBook<Key, Value>

    private let book = Lock(Book())

    /// None under way.
    public init() {}

    /// What came of a key.
    public struct Arrival: Sendable {
        /// What the work made.
        public let value: Value
        /// Whether the work was started by the one who asks, and not found under way.
        public let isOwn: Bool
    }

    /// Waits for what others are making already, and starts the work on the rest of the keys.
    ///
    /// - Parameters:
    ///   - keys: what is wanted; at least one.
    ///   - urgency: how urgently. Work under way becomes as urgent as the most urgent who waits for it, also when that one becomes
    ///     so while it waits.
    ///   - onBegin: called once, when the work on one of the keys gets to its point of no return, or is past it; told whether that is
    ///     the work which was started here. It says whether whoever waits stays: if nobody does, the work need not begin.
    ///   - work: makes keys and lands each. It runs in a task of its own.
    /// - Throws: what the work on one of the keys threw; `CancellationError` when the task is cancelled.
    public func board(
        _ keys: [Key], urgency: Urgency = Urgency(level: 0),
        onBegin: @escaping @Sendable (_ isOwn: Bool) -> Bool = { _ in true },
        _ work: @escaping @Sendable (Flight<Key, Value>, [Key]) async throws -> Void
    ) async throws -> [Key: Arrival] {
        let number = book.withLock { $0.nextNumber() }
        var listeners: [Urgency.Listener] = []
        defer {
            for listener in listeners { listener.end() }
            book.withLock { $0.forget(number) }
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let passenger = Book.Passenger(continuation: continuation, onBegin: onBegin)
                let effects = book.withLock { book in
                    book.board(passenger, number, keys) { Flight(number: $0, level: urgency.level, of: self) }
                }
                for work in effects.aboard {
                    listeners.append(urgency.listen { work.raise(to: $0) })
                    // Asked for only now, so that no rise between the two is missed.
                    work.raise(to: urgency.level)
                }
                perform(effects)
                if let (flight, keys) = effects.started { start(flight, keys, work) }
            }
        } onCancel: {
            perform(book.withLock { $0.leave(number) })
        }
    }

    private func start(
        _ flight: Flight<Key, Value>, _ keys: [Key],
        _ work: @escaping @Sendable (Flight<Key, Value>, [Key]) async throws -> Void
    ) {
        let task = Task {
            do {
                try await work(flight, keys)
                change { $0.end(flight.number, CancellationError()) }
            } catch {
                change { $0.end(flight.number, error) }
            }
        }
        if book.withLock({ $0.setTask(task, flight.number) }) { task.cancel() }
    }

    /// Asks who waits for a piece of work whether they stay.
    func begin(_ number: UInt64) -> Bool {
        switch book.withLock({ $0.begin(number) }) {
        case .past: return true
        case .unwanted: break
        case .ask(let asked):
            // All are asked: each is told so. Who was asked by other work before stays.
            let answers = asked.map { call, isOwn in call(isOwn) }
            if answers.isEmpty || answers.contains(true) { return true }
        }
        book.withLock { $0.vacate(number) }
        return false
    }

    /// Changes the state, and does what follows from it.
    func change(_ body: (inout sending Book) -> Book.Effects) { perform(book.withLock { body(&$0) }) }

    private func perform(_ effects: Book.Effects) {
        for (call, isOwn) in effects.begun { _ = call(isOwn) }
        for (continuation, result) in effects.resumed { continuation.resume(with: result) }
        for flight in effects.emptied { abandoned(flight.number) }
    }

    private func abandoned(_ number: UInt64) {
        switch book.withLock({ $0.abandon(number) }) {
        case .none: break
        case .cancel(let task): task?.cancel()
        case .ask(let isWanted): linger(number, while: isWanted)
        }
    }

    private func linger(_ number: UInt64, while isWanted: @escaping @Sendable () async -> Bool) {
        Task {
            while true {
                let answer = await isWanted()
                let (again, cancelled) = book.withLock { $0.lingered(number, isWanted: answer) }
                cancelled?.cancel()
                guard again else { return }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// How many pieces of work are under way.
    public var underWay: Int { book.withLock { $0.count } }
    /// How many wait for a key.
    public func waiting(for key: Key) -> Int { book.withLock { $0.waiting(for: key) } }
}
