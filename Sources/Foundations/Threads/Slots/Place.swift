/// A place of ``Slots`` that is held, given back while there is no need of it, and taken again. It is given back at the latest when
/// nobody has it any more, so those who share what it stands for share it.
///
/// What it stands for may turn out to be larger than one place is meant for: then it takes more beside its own.
///
/// To give back what is not held does nothing, so that one `defer` is right on every way out.
public final class Place: Sendable {
    private struct State {
        var isHeld = false
        /// Places beside its own.
        var more = 0
    }

    private let slots: Slots
    private let state = Lock(State())

    /// A place that is not held yet.
    public init(of slots: Slots) { self.slots = slots }

    deinit { release() }

    /// The number of places that are held.
    public var places: Int { state.withLock { $0.more + ($0.isHeld ? 1 : 0) } }

    /// Waits for a place, unless one is held.
    /// - Parameter urgency: of whoever waits.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire(_ urgency: Urgency? = nil) async throws {
        guard !state.withLock({ $0.isHeld }) else { return }
        try await slots.acquire(urgency)
        state.withLock { $0.isHeld = true }
    }

    /// Sets how many places it takes beside its own, without waiting. One that is not held takes none.
    public func take(more count: Int) {
        let change = state.withLock { state in
            guard state.isHeld else { return 0 }
            defer { state.more = count }
            return count - state.more
        }
        if change > 0 { slots.take(change) }
        if change < 0 { slots.release(-change) }
    }

    /// Waits until it has at least so many places beside its own; it never has fewer than before. One that is not held
    /// takes none.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func grow(more count: Int) async throws {
        let change = state.withLock { $0.isHeld ? max(0, count - $0.more) : 0 }
        guard change > 0 else { return }
        try await slots.grow(self, by: change)
        let isHeld = state.withLock { state in
            if state.isHeld { state.more += change }
            return state.isHeld
        }
        if !isHeld { slots.release(change) }
    }

    /// Gives its own place back and keeps those beside it: what is large still is.
    public func releaseOwn() {
        let wasHeld = state.withLock { state in
            defer { state.isHeld = false }
            return state.isHeld
        }
        if wasHeld { slots.release() }
    }

    /// Gives back all that is held.
    public func release() {
        let held = state.withLock { state in
            defer { state = State() }
            return state.more + (state.isHeld ? 1 : 0)
        }
        if held > 0 { slots.release(held, of: self) }
    }
}
