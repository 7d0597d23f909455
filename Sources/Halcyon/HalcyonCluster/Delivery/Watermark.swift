/// How far one partition is done: jobs end in any order, and the committed offset never passes one that has not ended.
///
/// Offsets that were never taken (transaction markers, compaction) count as done: only what was taken can be incomplete.
/// A pure value; whoever owns the partition owns it.
struct Watermark: Sendable, Equatable {
    /// The offset to commit: everything below it is done.
    private(set) var base: Int64
    /// One above the highest offset taken.
    private(set) var next: Int64
    /// Taken and not ended.
    private(set) var incomplete: Set<Int64> = []

    /// Starts at the offset the partition is read from.
    init(startingAt offset: Int64) {
        base = offset
        next = offset
    }

    /// How many jobs are taken and not ended.
    var inFlight: Int { incomplete.count }

    /// A job was taken. Offsets of a partition come in rising order; one that came before is not taken again.
    /// - Returns: false for an offset that was taken before.
    mutating func take(_ offset: Int64) -> Bool {
        guard offset >= next else { return false }
        if incomplete.isEmpty { base = offset }
        incomplete.insert(offset)
        next = offset + 1
        return true
    }

    /// A job has ended.
    /// - Returns: whether ``base`` moved, so that there is something to commit.
    mutating func end(_ offset: Int64) -> Bool {
        guard incomplete.remove(offset) != nil, offset == base else { return false }
        if incomplete.isEmpty {
            base = next
        } else {
            // Moves over what ended before: each offset is stepped over once in all.
            while base < next, !incomplete.contains(base) { base += 1 }
        }
        return true
    }
}
