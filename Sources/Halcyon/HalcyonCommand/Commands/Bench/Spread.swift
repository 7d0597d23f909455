import Glibc

/// How many of some durations are about as long, in a fixed amount of memory: percentiles of it are at most two percent too long.
struct Spread: Sendable {
    /// Each bucket's longest is so much longer than the one's before.
    private static let growth = 1.02
    /// In milliseconds; the first bucket has all that is shorter.
    private static let shortest = 0.01
    /// Up to some eleven days.
    private static let buckets = 1300

    private var counts = [Int](repeating: 0, count: buckets)
    private(set) var count = 0
    private(set) var longest = 0.0

    mutating func add(_ milliseconds: Double) {
        let place = log(max(milliseconds, Self.shortest) / Self.shortest) / log(Self.growth)
        counts[min(Int(place.rounded(.up)), Self.buckets - 1)] += 1
        count += 1
        longest = max(longest, milliseconds)
    }

    /// The duration that this part of all are no longer than, in milliseconds; nil where there is none.
    func percentile(_ part: Double) -> Double? {
        guard count > 0 else { return nil }
        let wanted = max(1, Int((part * Double(count)).rounded(.up)))
        var seen = 0
        for (index, number) in counts.enumerated() {
            seen += number
            if seen >= wanted { return min(longest, Self.shortest * pow(Self.growth, Double(index))) }
        }
        return longest
    }
}
