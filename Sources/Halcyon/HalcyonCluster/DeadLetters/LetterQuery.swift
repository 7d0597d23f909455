/// Which letters are wanted.
public struct LetterQuery: Sendable {
    /// What they must have: of each name that stands among the conditions one must hold.
    public var filters: [LetterFilter]
    /// Those too that were replayed already.
    public var withReplayed: Bool
    /// These alone; nil for all.
    public var letters: Set<LetterID>?

    /// - Parameter letters: these alone, whether they were replayed or not.
    public init(_ filters: [LetterFilter] = [], withReplayed: Bool = false, letters: Set<LetterID>? = nil) {
        self.filters = filters
        self.withReplayed = withReplayed || letters != nil
        self.letters = letters
    }

    /// The first and one past the last offset of each partition between which there may be such letters; partitions without any are left out.
    func ranges(in book: DeadBook, from positions: [Int32: Int64]) -> [Int32: Range<Int64>] {
        var ranges: [Int32: Range<Int64>] = [:]
        for (partition, end) in book.next {
            let from = positions[partition] ?? 0
            let bounds: (first: Int64, end: Int64)?
            if let letters {
                let offsets = letters.filter { $0.partition == partition && $0.offset >= from }.map(\.offset)
                bounds = offsets.min().flatMap { first in offsets.max().map { (first, $0 < end ? $0 + 1 : end) } }
            } else if withReplayed {
                bounds = (from, end)
            } else {
                bounds = book.firstOpen(of: partition, from: from).map { ($0, end) }
            }
            if let bounds, bounds.first < bounds.end { ranges[partition] = bounds.first..<bounds.end }
        }
        return ranges
    }

    func matches(_ letter: LetterView) -> Bool {
        if let letters, !letters.contains(letter.letter.id) { return false }
        return (withReplayed || !letter.isReplayed) && LetterFilter.all(filters, match: letter)
    }
}
