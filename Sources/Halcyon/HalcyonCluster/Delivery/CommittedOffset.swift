/// The progress in one partition. Records complete in any order, and the committed offset never passes an incomplete
/// one.
///
/// Offsets that were never received (transaction markers, compacted records) count as complete. A pure value, owned by
/// the owner of the partition.
struct CommittedOffset: Sendable, Equatable {
    /// The offset to commit: all records below it are complete.
    private(set) var base: Int64
    /// One past the highest offset received.
    private(set) var next: Int64
    /// The offsets that were received and are not complete.
    private(set) var incomplete: Set<Int64> = []
    /// The offset from which the partition is read.
    let start: Int64
    /// The ranges from ``next`` on that earlier owners of the partition completed.
    private var ahead: ArraySlice<Range<Int64>>

    /// The decision about an incoming offset.
    enum Acceptance: Sendable, Equatable {
        /// The record must be processed.
        case taken
        /// An earlier owner of the partition completed the record.
        case hasEnded
        /// The offset was received before.
        case cameBefore
        /// The offset lies below the start: all records there are complete.
        case precedesStart
    }

    /// Starts at the offset from which the partition is read.
    /// - Parameter map: the completed offsets from there on.
    init(startingAt offset: Int64, map: CompletedRanges? = nil) {
        start = offset
        base = offset
        next = offset
        ahead = (map?.runs ?? [])[...]
    }

    /// Accepts an incoming record. Offsets of a partition increase; an offset that was received before is not accepted
    /// again.
    mutating func receive(_ offset: Int64) -> Acceptance {
        guard offset >= start else { return .precedesStart }
        guard offset >= next else { return .cameBefore }
        while let run = ahead.first, run.upperBound <= offset { ahead.removeFirst() }
        let hasEnded = ahead.first?.contains(offset) ?? false
        next = offset + 1
        if incomplete.isEmpty { base = hasEnded ? next : offset }
        if !hasEnded { incomplete.insert(offset) }
        return hasEnded ? .hasEnded : .taken
    }

    /// Records that all records below this offset were received. Missing offsets there do not belong to records.
    mutating func reachEnd(_ offset: Int64) {
        guard offset > next else { return }
        while let run = ahead.first, run.upperBound <= offset { ahead.removeFirst() }
        next = offset
        if incomplete.isEmpty { base = next }
    }

    /// Marks an offset as complete.
    /// - Returns: true if ``base`` moved, so that there is something to commit.
    mutating func end(_ offset: Int64) -> Bool {
        guard incomplete.remove(offset) != nil, offset == base else { return false }
        if incomplete.isEmpty {
            base = next
        } else {
            // Skips offsets that completed earlier. Each offset is passed once in total.
            while base < next, !incomplete.contains(base) { base += 1 }
        }
        return true
    }

    /// The completed offsets from ``base`` on, including those of earlier owners.
    var ended: CompletedRanges {
        var map = CompletedRanges(from: base)
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
