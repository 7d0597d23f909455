import Formats
import HalcyonModel

/// What a sweep has deleted.
struct SweepReport: Hashable, Sendable {
    /// Results and index entries that had expired.
    var expired = 0
    /// Results that were deleted to stay within the budget, least recently used first.
    var evicted = 0
    /// Results that were written late, after their purge.
    var purged = 0
    /// Tombstones that no work in flight needs any more.
    var tombstones = 0
    /// The number and the bytes of the results that are left.
    var results = 0
    var bytes = 0
}

extension ResultStore {
    /// Deletes what nobody needs any more: expired results and index entries, the least recently used results beyond
    /// the budget, and old tombstones. It runs in one process of the cluster at a time. Two at a time do no harm.
    ///
    /// In a bucket, lifecycle rules delete expired objects.
    /// - Returns: What was deleted; nil if the storage became unavailable.
    @discardableResult
    func sweep() async -> SweepReport? {
        let report = await reads.errors.tolerating { try await removeEverythingOld() }
        if let report { metrics.swept(report) }
        return report
    }

    private func removeEverythingOld() async throws(StorageError) -> SweepReport {
        var report = SweepReport()
        try await removeOldTombstones(&report)
        guard storage.isSwept else { return report }
        let now = Timestamp.now.seconds
        report.expired += try await remove(ObjectName.index, where: { $0.isExpired(at: now) })
        try await removeResults(&report)
        return report
    }

    /// Deletes old tombstones, and before each of them what was written after the purge by a worker that had begun
    /// before it.
    private func removeOldTombstones(_ report: inout SweepReport) async throws(StorageError) {
        let end = Timestamp.now.milliseconds * 1000 - Int64(options.tombstoneLifetime / .microseconds(1))
        for name in try await refresh() {
            guard let purge = ObjectName.purge(ofTombstone: name), purge.time < end else { continue }
            report.purged += try await delete(purge.scope) { key throws(StorageError) in
                try await record(of: key).map { record in tombstones.withLock { $0.cover(record) } } ?? false
            }
            try await delete([name])
            report.tombstones += 1
        }
    }

    private func removeResults(_ report: inout SweepReport) async throws(StorageError) {
        let now = Timestamp.now.seconds
        // Without names, so that a million results need 16 MB.
        var uses: [(at: Double, bytes: Int)] = []
        report.expired += try await remove(ObjectName.results, where: { $0.isExpired(at: now) }) {
            uses.append(($0.usedAt, $0.bytes))
        }
        report.results = uses.count
        _ = try await remove(ObjectName.files, where: { $0.isExpired(at: now) }) { uses.append(($0.usedAt, $0.bytes)) }
        report.bytes = uses.reduce(0) { $0 + $1.bytes }
        guard let budget = try await budget(using: report.bytes), report.bytes > budget else { return }
        uses.sort { $0.at < $1.at }
        // A tenth below the budget, so that not every sweep has to evict.
        var (excess, last) = (report.bytes - (budget - budget / 10), -Double.infinity)
        for use in uses where excess > 0 {
            excess -= use.bytes
            last = use.at
        }
        (report.results, report.bytes) = (0, 0)
        report.evicted = try await remove(ObjectName.results, where: { $0.usedAt <= last }) {
            report.results += 1
            report.bytes += $0.bytes
        }
        // A result whose file is missing is a miss.
        _ = try await remove(ObjectName.files, where: { $0.usedAt <= last }) { report.bytes += $0.bytes }
    }

    /// Removes the objects with a prefix that meet a condition.
    /// - Parameter others: Called for each object that remains.
    /// - Returns: The number of objects removed.
    private func remove(
        _ prefix: String, where condition: (StorageEntry) -> Bool, others: (StorageEntry) -> Void = { _ in }
    ) async throws(StorageError) -> Int {
        var count = 0
        try await forEachPage(prefix) { page throws(StorageError) in
            let names = page.filter(condition).map(\.name)
            try await delete(names)
            count += names.count
            for entry in page where !condition(entry) { others(entry) }
        }
        return count
    }

    /// The configured budget, or else all but a tenth of the file system.
    private func budget(using bytes: Int) async throws(StorageError) -> Int? {
        if let budget = options.budget { return budget }
        return try await storage.space().map { max(0, bytes + $0.free - $0.total / 10) }
    }
}

extension StorageEntry {
    /// True if the expiry has passed at a time in seconds since 1970.
    fileprivate func isExpired(at now: Double) -> Bool { expiresAt.map { $0 <= now } ?? false }
}

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
