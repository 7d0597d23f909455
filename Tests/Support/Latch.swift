import Concurrency

/// A latch that blocks threads until it is opened, such as those of an origin that holds back its responses.
public final class Latch: Sendable {
    private let isOpen = ConditionLock(false)

    /// Creates a closed latch.
    public init() {}

    /// Opens the latch. A second call does nothing.
    public func open() {
        isOpen.withLock { $0 = true }
        isOpen.broadcast()
    }

    /// Blocks its thread until the latch is open.
    public func wait() { isOpen.wait { $0 ? () : nil } }
}
