import Concurrency
import Formats
import HalcyonModel

extension ResultStore {
    /// Removes results. Results that were made before `time` are not found any more: in this process at once, and in
    /// others when they hear of it, at the latest after ``ResultStoreOptions/refreshInterval``. Then their objects are
    /// deleted.
    /// - Parameters:
    ///   - time: Microseconds since 1970 by the Redis clock, as fencing tokens.
    ///   - removeElsewhere: Called with the keys of results before their objects are deleted. A single key
    ///     (``Purge/Target/key(_:)``) is not passed.
    /// - Returns: The number of objects deleted.
    /// - Throws: ``StorageError``, also what `removeElsewhere` throws. Repeating the purge completes it.
    public func purge(
        _ purge: Purge, at time: Int64, removeElsewhere: ([ResultKey]) async throws -> Void = { _ in }
    ) async throws -> Int {
        let scope = PurgeScope(purge)
        note(scope, at: time)
        try await put(.marker(), as: ObjectName.tombstone(scope, at: time))
        if scope.resultKey != nil { return try await delete(scope) { _ in true } }
        var (count, last) = (0, String?.none)
        repeat {
            let page = try await page(ObjectName.prefix(of: scope), after: last)
            try await removeElsewhere(page.compactMap { ObjectName.key(of: $0.name) })
            count += try await delete(page, of: scope) { _ in true }
            last = next(after: page)
        } while last != nil
        return count
    }

    /// Takes note of a purge by another process, before its tombstone is read.
    public func heard(_ purge: Purge, at time: Int64) {
        note(PurgeScope(purge), at: time)
    }

    /// Adds a purge to the known ones. Entries that it deletes are written again for later hits.
    func note(_ scope: PurgeScope, at time: Int64) {
        if tombstones.withLock({ $0.add(scope, at: time) }) { indexed.withLock { $0.forget() } }
    }

    /// Records in the background that jobs with these tags have hit a result, so that a purge of the tags deletes it.
    /// Hits of a result queue the write of an entry once.
    /// - Parameter end: The expiry of the result in seconds since 1970.
    /// - Throws: `CancellationError` if the task is cancelled while the queue of writes is full.
    public func index(_ key: ResultKey, under tags: [String], of tenant: String?, until end: Double) async throws {
        for tag in tags {
            let name = ObjectName.entry(key, in: .tag(tag, of: tenant))
            guard indexed.withLock({ $0.enqueue(name, until: end) }) else { continue }
            do {
                try await enqueue(name, name.utf8.count) { [self] in
                    defer { indexed.withLock { $0.dequeue(name, until: end) } }
                    // A result in the queue is written with the entries of its tags.
                    await queue.wait(for: key.description)
                    guard !indexed.withLock({ $0.contains(name, until: end) }) else { return }
                    _ = await writes.errors.tolerating { try await putEntry(name, until: end, isDurable: false) }
                }
            } catch {
                indexed.withLock { $0.dequeue(name, until: end) }
                throw error
            }
        }
    }

    /// Writes an index entry.
    func putEntry(_ name: String, until end: Double, isDurable: Bool) async throws(StorageError) {
        let purges = indexed.withLock { $0.purges }
        try await put(.marker(expiresAt: end), as: name, isDurable: isDurable)
        indexed.withLock { $0.add(name, until: end, since: purges) }
    }

    /// Deletes the objects of a scope, and the entries of its index.
    /// - Parameter isPurged: Returns true if a result is to be deleted.
    func delete(
        _ scope: PurgeScope, where isPurged: (ResultKey) async throws(StorageError) -> Bool
    ) async throws(StorageError) -> Int {
        if let key = scope.resultKey {
            guard try await record(of: key) != nil, try await isPurged(key) else { return 0 }
            let files = try await files(of: [key])
            try await delete(files)
            try await delete([ObjectName.result(key)])
            return 1
        }
        var count = 0
        try await forEachPage(ObjectName.prefix(of: scope)) { page throws(StorageError) in
            count += try await delete(page, of: scope, where: isPurged)
        }
        return count
    }

    private func delete(
        _ page: [StorageEntry], of scope: PurgeScope, where isPurged: (ResultKey) async throws(StorageError) -> Bool
    ) async throws(StorageError) -> Int {
        var (keys, entries): ([ResultKey], [String]) = ([], [])
        for entry in page {
            guard let key = ObjectName.key(of: entry.name), try await isPurged(key) else { continue }
            keys.append(key)
            if scope.isIndexed { entries.append(entry.name) }
        }
        // Files are deleted before their results, and these before their entries, so that a purge that fails in between
        // finds them again.
        if !keys.isEmpty, try await !self.page(ObjectName.files, after: nil).isEmpty {
            try await delete(files(of: keys))
        }
        try await delete(keys.map(ObjectName.result))
        try await delete(entries)
        return keys.count
    }

    /// Reads the record of a result; nil if there is none.
    func record(of key: ResultKey) async throws(StorageError) -> ResultRecord? {
        // An object of another program or version has no record for us.
        try await objectHead(ObjectName.result(key)).flatMap { try? ResultRecord(json: $0.record) }
    }

    /// Reads the tombstones of all processes.
    /// - Returns: Their names.
    /// - Throws: ``StorageError``. The tombstones that are known remain.
    @discardableResult
    func refresh() async throws(StorageError) -> [String] {
        let begun = Timestamp.now.milliseconds * 1000
        var names: [String] = []
        try await forEachPage(ObjectName.purges) { names += $0.map(\.name) }
        var list: [PurgeScope: Int64] = [:]
        for name in names {
            guard let purge = ObjectName.purge(ofTombstone: name) else { continue }
            list[purge.scope] = max(list[purge.scope] ?? .min, purge.time)
            note(purge.scope, at: purge.time)
        }
        // A purge that began while the list was read may not be in it.
        let overlap = Int64(options.refreshInterval / .microseconds(1)) + 60_000_000
        tombstones.withLock { $0.replace(by: list, retainingLaterThan: begun - overlap) }
        loaded.signal()
        return names
    }

    /// Calls `body` for each page of the objects with a prefix. The objects of a page may be deleted meanwhile.
    /// - Throws: ``StorageError``, also that of `body`.
    func forEachPage(
        _ prefix: String, _ body: ([StorageEntry]) async throws(StorageError) -> Void
    ) async throws(StorageError) {
        var last: String?
        repeat {
            let page = try await page(prefix, after: last)
            try await body(page)
            last = next(after: page)
        } while last != nil
    }

    private func page(_ prefix: String, after last: String?) async throws(StorageError) -> [StorageEntry] {
        let storage = storage
        return try await reads.run(within: options.writeTimeout) { () throws(StorageError) in
            try await storage.list(prefix, after: last)
        }
    }

    /// The name after which the next page begins; nil if this is the last one.
    private func next(after page: [StorageEntry]) -> String? { page.count == pageSize ? page.last?.name : nil }
}

/// The index entries that this process has written since the last purge, up to a number of them, and those that it is
/// about to write.
struct IndexedEntries: Sendable {
    /// The expiries in seconds since 1970.
    private var ends = LRUCache<String, Double>(capacity: 100_000)
    /// The expiries of the entries whose write is queued.
    private var queued: [String: Double] = [:]
    /// The number of purges. One that begins while an entry is being written may delete it.
    private(set) var purges = 0

    /// Returns true if an entry has been written that lasts until `end` or longer.
    mutating func contains(_ name: String, until end: Double) -> Bool {
        ends.value(for: name).map { $0 >= end } ?? false
    }

    /// Adds an entry that has been written.
    /// - Parameter purges: The number of purges before its writing.
    mutating func add(_ name: String, until end: Double, since purges: Int) {
        if purges == self.purges { ends.insert(end, for: name, cost: 1) }
    }

    /// Adds an entry whose write is to be queued.
    /// - Returns: False if an entry that lasts until `end` or longer has been written or is queued.
    mutating func enqueue(_ name: String, until end: Double) -> Bool {
        guard !contains(name, until: end), queued[name, default: -.infinity] < end else { return false }
        queued[name] = end
        return true
    }

    /// Removes an entry whose write has ended, unless one that lasts longer is queued.
    mutating func dequeue(_ name: String, until end: Double) {
        if queued[name] == end { queued[name] = nil }
    }

    /// Forgets all entries, because a purge deletes some of them.
    mutating func forget() {
        purges += 1
        ends.removeAll()
        queued.removeAll()
    }
}

extension PurgeScope {
    /// The scope of a purge.
    init(_ purge: Purge) {
        self =
            switch purge.target {
            case .source(let source): .source(SourceRequest(source, tenant: purge.tenant).sourceHash)
            case .key(let key): .key(key)
            case .tag(let tag): .tag(tag, of: purge.tenant)
            case .tenant(let tenant): .tenant(tenant)
            }
    }
}
