import Synchronization

/// A number that only grows, from 0 at the start of the process.
public final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    init() {}

    /// Counts.
    public func add(_ amount: Int = 1) {
        precondition(amount >= 0, "a counter only grows")
        count.wrappingAdd(UInt64(amount), ordering: .relaxed)
    }

    /// What was counted so far.
    public var value: UInt64 { count.load(ordering: .relaxed) }
}
