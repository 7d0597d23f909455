/// A place of ``Slots`` that one task holds, gives back while it has no need of it, and takes again.
///
/// To give back what is not held does nothing, so that one `defer` is right on every way out.
public final class Place: Sendable {
    private let slots: Slots
    private let isHeld = Lock(false)

    /// A place that is not held yet.
    public init(of slots: Slots) { self.slots = slots }

    /// Waits for a place, unless one is held.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire() async throws {
        guard !isHeld.withLock({ $0 }) else { return }
        try await slots.acquire()
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
