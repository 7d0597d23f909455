/// Which offsets of a partition have ended, from the committed one on. A pure value.
///
/// It is committed with the offset, so that the partition's next owner does not do again what has ended already:
/// ``note(limit:)`` is its text.
struct OffsetMap: Sendable, Equatable {
    /// The committed offset. What lies below it has ended, too.
    let base: Int64
    /// What has ended from there on: ascending, none of them empty, no two of them adjacent.
    private(set) var runs: [Range<Int64>] = []

    /// Nothing has ended yet.
    init(from base: Int64) { self.base = base }

    /// Whether the offset has ended.
    func contains(_ offset: Int64) -> Bool {
        if offset < base { return true }
        // The first run that does not lie wholly below.
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].upperBound <= offset { low = middle + 1 } else { high = middle }
        }
        return low < runs.count && runs[low].contains(offset)
    }

    /// Adds offsets that have ended; those below what the last run covers are there already. An empty range adds nothing.
    mutating func append(_ run: Range<Int64>) {
        let lower = max(run.lowerBound, runs.last?.upperBound ?? base)
        guard lower < run.upperBound else { return }
        if let last = runs.last, last.upperBound == lower {
            runs[runs.count - 1] = last.lowerBound..<run.upperBound
        } else {
            runs.append(lower..<run.upperBound)
        }
    }
}
