/// Spans that wait to be sent, the oldest first.
struct SpanQueue {
    private var groups: [[Span]] = []
    private(set) var count = 0

    /// Takes as many as there is room for.
    /// - Returns: how many there was none for.
    mutating func add(_ spans: [Span], limit: Int) -> Int {
        // A trace with holes helps nobody: the spans of a job go in whole or not at all.
        guard !spans.isEmpty, count + spans.count <= limit else { return spans.count }
        groups.append(spans)
        count += spans.count
        return 0
    }

    /// Takes out at most so many, but at least one group; nil when there is none.
    mutating func take(_ most: Int) -> [Span]? {
        guard !groups.isEmpty else { return nil }
        var (batch, taken) = (groups[0], 1)
        while taken < groups.count, batch.count + groups[taken].count <= most {
            batch += groups[taken]
            taken += 1
        }
        groups.removeFirst(taken)
        count -= batch.count
        return batch
    }
}
