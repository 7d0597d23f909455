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
    /// What others ended from ``next`` on, before this began.
    private var ahead: ArraySlice<Range<Int64>>

    /// What becomes of an offset that comes.
    enum Taking: Sendable, Equatable {
        /// It is to be done.
        case taken
        /// Another owner of the partition has done it.
        case hasEnded
        /// It came before.
        case cameBefore
    }

    /// Starts at the offset the partition is read from.
    /// - Parameter map: what has ended already from there on.
    init(startingAt offset: Int64, map: OffsetMap? = nil) {
        base = offset
        next = offset
        ahead = (map?.runs ?? [])[...]
    }

    /// A record came. Offsets of a partition come in rising order; one that came before is not taken again.
    mutating func take(_ offset: Int64) -> Taking {
        guard offset >= next else { return .cameBefore }
        while let run = ahead.first, run.upperBound <= offset { ahead.removeFirst() }
        let hasEnded = ahead.first?.contains(offset) ?? false
        next = offset + 1
        if incomplete.isEmpty { base = hasEnded ? next : offset }
        if !hasEnded { incomplete.insert(offset) }
        return hasEnded ? .hasEnded : .taken
    }

    /// All has come that there is below this offset: what was not taken there is no record.
    mutating func reachEnd(_ offset: Int64) {
        guard offset > next else { return }
        while let run = ahead.first, run.upperBound <= offset { ahead.removeFirst() }
        next = offset
        if incomplete.isEmpty { base = next }
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

    /// What has ended from ``base`` on, by whomever.
    var ended: OffsetMap {
        var map = OffsetMap(from: base)
        var start = base
        for hole in incomplete.sorted() {
            map.append(start..<hole)
            start = hole + 1
        }
        map.append(start..<next)
        for run in ahead { map.append(max(run.lowerBound, next)..<max(run.upperBound, next)) }
        return map
    }
}
