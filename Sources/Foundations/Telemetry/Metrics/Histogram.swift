/// Counts observed values by size.
public final class Histogram: Sendable {
    /// Bounds for what takes between a millisecond and a minute, in seconds.
    public static let seconds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    let bounds: [Double]
    /// One for each bound, and one for what is above all of them. They do not overlap; Prometheus' do.
    private let buckets: [Counter]
    private let total = Gauge()

    init(bounds: [Double]) {
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "bounds must ascend")
        precondition(bounds.allSatisfy(\.isFinite), "infinity is added by itself")
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Counter() }
    }

    /// Counts one value.
    public func observe(_ value: Double) {
        buckets[bounds.firstIndex { value <= $0 } ?? bounds.count].add()
        total.add(value)
    }

    /// Counts one span, in seconds.
    public func observe(_ span: Duration) {
        observe(span / .seconds(1))
    }

    /// The sum of all values.
    public var sum: Double { total.value }

    /// How many values were at most each bound, and at last how many there were at all.
    public var cumulativeCounts: [UInt64] {
        var count: UInt64 = 0
        return buckets.map { bucket in
            count += bucket.value
            return count
        }
    }
}
