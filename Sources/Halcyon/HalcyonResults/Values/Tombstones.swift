/// The times of the last purges. A result that was made before the purge of one of its scopes, or from a source that
/// was fetched before a purge of the source, does not exist any more, whether or not its object is still there.
struct Tombstones: Sendable {
    /// Microseconds since 1970 by the Redis clock.
    private var times: [PurgeScope: Int64] = [:]

    /// The number of tombstones.
    var count: Int { times.count }

    /// Adds a purge, unless a later one is known.
    /// - Returns: True if it was added.
    @discardableResult
    mutating func add(_ scope: PurgeScope, at time: Int64) -> Bool {
        guard time > times[scope] ?? .min else { return false }
        times[scope] = time
        return true
    }

    /// Replaces tombstones by those of a complete list, and retains those that were added later than `moment`, because
    /// the list may be older.
    mutating func replace(by list: [PurgeScope: Int64], retainingLaterThan moment: Int64) {
        let kept = times.filter { $0.value > moment }
        times = list
        for (scope, time) in kept { add(scope, at: time) }
    }

    /// True if a purge has removed a result.
    func cover(_ record: ResultRecord) -> Bool {
        func isPurged(_ scope: PurgeScope, _ token: Int64) -> Bool { times[scope].map { token <= $0 } ?? false }
        return isPurged(.source(record.key.sourceHash), record.since) || isPurged(.key(record.key), record.fence)
            || record.scopes.contains { isPurged($0, record.fence) }
    }
}
