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
        try await removeExpired(ObjectName.index, &report) { _ in }
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

    private func removeExpired(
        _ prefix: String, _ report: inout SweepReport, keep: ([StorageEntry]) -> Void
    ) async throws(StorageError) {
        let now = Timestamp.now.seconds
        var count = 0
        try await forEachPage(prefix) { page throws(StorageError) in
            let expired = page.filter { $0.expiresAt.map { $0 <= now } ?? false }
            try await delete(expired.map(\.name))
            count += expired.count
            keep(page.filter { $0.expiresAt.map { $0 > now } ?? true })
        }
        report.expired += count
    }

    private func removeResults(_ report: inout SweepReport) async throws(StorageError) {
        var kept: [StorageEntry] = []
        try await removeExpired(ObjectName.results, &report) { kept += $0 }
        (report.results, report.bytes) = (kept.count, kept.reduce(0) { $0 + $1.bytes })
        guard let budget = try await budget(using: report.bytes), report.bytes > budget else { return }
        // A tenth below the budget, so that not every sweep has to evict.
        var evicted: [String] = []
        for entry in kept.sorted(by: { $0.usedAt < $1.usedAt }) {
            if report.bytes <= budget - budget / 10 { break }
            evicted.append(entry.name)
            report.bytes -= entry.bytes
            report.results -= 1
        }
        for start in stride(from: 0, to: evicted.count, by: pageSize) {
            try await delete(Array(evicted[start..<min(start + pageSize, evicted.count)]))
        }
        report.evicted = evicted.count
    }

    /// The configured budget, or else all but a tenth of the file system.
    private func budget(using bytes: Int) async throws(StorageError) -> Int? {
        if let budget = options.budget { return budget }
        return try await storage.space().map { max(0, bytes + $0.free - $0.total / 10) }
    }
}
