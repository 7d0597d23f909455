/// Ids that were cancelled lately. A pure value, bounded by count and by age.
///
/// A cancel counts for jobs that were submitted no later than it: an id may be used again afterwards.
public struct CancelledJobs: Sendable {
    private struct Entry {
        let id: [UInt8]
        /// Milliseconds since 1970.
        let moment: Int64
    }

    /// When each was cancelled last. By bytes: equal strings of Swift may be different ids.
    private var moments: [[UInt8]: Int64] = [:]
    /// In the order in which they came, those that count no more included.
    private var entries: [Entry] = []
    /// The first that has not been dropped.
    private var first = 0
    private let capacity: Int
    private let lifetime: Int64

    /// - Parameters:
    ///   - capacity: ids at most; of more the oldest are forgotten.
    ///   - lifetime: milliseconds for which a cancel counts.
    public init(capacity: Int, lifetime: Int64) {
        self.capacity = capacity
        self.lifetime = lifetime
    }

    /// How many are known.
    public var count: Int { moments.count }

    /// Jobs of this id that were submitted by then are cancelled.
    /// - Parameter now: milliseconds since 1970, as all moments here.
    public mutating func cancel(_ id: String, at moment: Int64, now: Int64) {
        drop(before: now - lifetime)
        guard moment >= now - lifetime else { return }
        let id = Array(id.utf8)
        guard moments[id].map({ $0 < moment }) ?? true else { return }
        moments[id] = moment
        entries.append(Entry(id: id, moment: moment))
        while moments.count > capacity { dropFirst() }
    }

    /// Whether a job is cancelled.
    public func contains(_ id: String, submitted: Int64) -> Bool {
        guard !moments.isEmpty, let moment = moments[Array(id.utf8)] else { return false }
        return submitted <= moment
    }

    private mutating func drop(before oldest: Int64) {
        while first < entries.count, entries[first].moment < oldest { dropFirst() }
    }

    private mutating func dropFirst() {
        let entry = entries[first]
        first += 1
        // One that was cancelled again stands further behind.
        if moments[entry.id] == entry.moment { moments[entry.id] = nil }
        if first > 64, first * 2 > entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }
}
