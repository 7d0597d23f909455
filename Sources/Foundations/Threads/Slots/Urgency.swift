/// How urgent a piece of work is. It may become more urgent while it waits, and moves up in whatever queue it stands then.
///
/// Shared by all who wait for the same work: the most urgent of them sets it.
public final class Urgency: Sendable {
    private struct State {
        var level: Int
        var listeners: [UInt64: @Sendable (Int) -> Void] = [:]
        var numbers: UInt64 = 0
    }

    private let state: Lock<State>

    /// - Parameter level: 0 for the most urgent.
    public init(level: Int) { state = Lock(State(level: level)) }

    /// 0 for the most urgent.
    public var level: Int { state.withLock { $0.level } }

    /// Makes it as urgent as `level`, unless it is already.
    public func raise(to level: Int) {
        let listeners: [@Sendable (Int) -> Void] = state.withLock { state in
            guard level < state.level else { return [] }
            state.level = level
            return Array(state.listeners.values)
        }
        for listener in listeners { listener(level) }
    }

    /// Calls `body` with each new level until the listener is taken away. Levels that come at the same time may come in any order.
    public func listen(_ body: @escaping @Sendable (Int) -> Void) -> Listener {
        state.withLock { state in
            state.numbers += 1
            state.listeners[state.numbers] = body
            return Listener(urgency: self, number: state.numbers)
        }
    }

    /// Somebody who is told.
    public struct Listener: Sendable {
        fileprivate let urgency: Urgency
        fileprivate let number: UInt64

        /// Tells it no more.
        public func end() { urgency.state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
    }
}
