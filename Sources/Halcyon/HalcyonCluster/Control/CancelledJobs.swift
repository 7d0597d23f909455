/// The ids of jobs that were cancelled recently. A pure value, bounded by count and age.
///
/// A cancellation applies to jobs that were submitted at or before its time. An id may be used again afterwards.
public struct CancelledJobs: Sendable {
    private struct Entry {
        let id: [UInt8]
        /// Milliseconds since 1970.
        let moment: Int64
    }

    /// The time of the last cancellation of each id. Ids are compared by bytes, because equal Swift strings may be
    /// different ids.
    private var moments: [[UInt8]: Int64] = [:]
    /// All cancellations in the order of arrival, including replaced ones.
    private var entries: [Entry] = []
    /// The index of the first entry that has not been dropped.
    private var first = 0
    private let capacity: Int
    private let lifetime: Int64

    /// Creates an empty set.
    /// - Parameters:
    ///   - capacity: the maximum number of ids; beyond it, the oldest are dropped.
    ///   - lifetime: the number of milliseconds for which a cancellation applies.
    public init(capacity: Int, lifetime: Int64) {
        self.capacity = capacity
        self.lifetime = lifetime
    }

    /// The number of cancelled ids.
    public var count: Int { moments.count }

    /// Cancels jobs with this id that were submitted at or before `moment`.
    /// - Parameter now: the current time in milliseconds since 1970, like all times here.
    public mutating func cancel(_ id: String, at moment: Int64, now: Int64) {
        drop(before: now - lifetime)
        guard moment >= now - lifetime else { return }
        let id = Array(id.utf8)
        guard moments[id].map({ $0 < moment }) ?? true else { return }
        moments[id] = moment
        entries.append(Entry(id: id, moment: moment))
        while moments.count > capacity { dropFirst() }
    }

    /// True if a job with this id that was submitted at that time is cancelled.
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
        // An id that was cancelled again has a later entry.
        if moments[entry.id] == entry.moment { moments[entry.id] = nil }
        if first > 64, first * 2 > entries.count {
            entries.removeFirst(first)
            first = 0
        }
    }
}
