/// A place of ``Slots`` that is held, given back while there is no need of it, and taken again. It is given back at the latest when
/// nobody has it any more, so those who share what it stands for share it.
///
/// To give back what is not held does nothing, so that one `defer` is right on every way out.
public final class Place: Sendable {
    private let slots: Slots
    private let isHeld = Lock(false)

    /// A place that is not held yet.
    public init(of slots: Slots) { self.slots = slots }

    deinit { release() }

    /// Waits for a place, unless one is held.
    /// - Parameter urgency: of whoever waits.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire(_ urgency: Urgency? = nil) async throws {
        guard !isHeld.withLock({ $0 }) else { return }
        try await slots.acquire(urgency)
        isHeld.withLock { $0 = true }
    }

    /// Gives the place back, if one is held.
    public func release() {
        let wasHeld = isHeld.withLock { held in
            defer { held = false }
            return held
        }
        if wasHeld { slots.release() }
    }
}
