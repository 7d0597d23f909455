import Synchronization

/// A number that goes up and down, 0 at first.
public final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)

    init() {}

    /// Replaces the number.
    public func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }

    /// Adds to the number, or takes from it.
    public func add(_ amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, found) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = found
        }
    }

    /// The number now.
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}
