import Concurrency
import Formats
import HalcyonModel

extension ResultStore {
    /// Removes results. Results that were made before `time` are not found any more: in this process at once, and in
    /// others when they hear of it, at the latest after ``ResultStoreOptions/refreshInterval``. Then their objects are
    /// deleted.
    /// - Parameter time: Microseconds since 1970 by the Redis clock, as fencing tokens.
    /// - Returns: The number of objects deleted.
    /// - Throws: ``StorageError``. Repeating the purge completes it.
    public func purge(_ purge: Purge, at time: Int64) async throws(StorageError) -> Int {
        let scope = PurgeScope(purge)
        tombstones.withLock { _ = $0.add(scope, at: time) }
        try await put(.marker(), as: ObjectName.tombstone(scope, at: time))
        return try await delete(scope) { _ in true }
    }

    /// Takes note of a purge by another process, before its tombstone is read.
    public func heard(_ purge: Purge, at time: Int64) {
        tombstones.withLock { _ = $0.add(PurgeScope(purge), at: time) }
    }

    /// Deletes the objects of a scope, and the entries of its index.
    /// - Parameter isPurged: Returns true if a result is to be deleted.
    func delete(
        _ scope: PurgeScope, where isPurged: (ResultKey) async throws(StorageError) -> Bool
    ) async throws(StorageError) -> Int {
        if let key = scope.resultKey {
            guard try await record(of: key) != nil, try await isPurged(key) else { return 0 }
            try await delete([ObjectName.result(key)])
            return 1
        }
        let (prefix, storage) = (ObjectName.prefix(of: scope), storage)
        var (count, last) = (0, String?.none)
        while true {
            let page = try await reads.run(within: options.writeTimeout) { [last] () throws(StorageError) in
                try await storage.list(prefix, after: last).map(\.name)
            }
            var (results, entries): ([String], [String]) = ([], [])
            for name in page {
                guard let key = ObjectName.key(of: name), try await isPurged(key) else { continue }
                results.append(ObjectName.result(key))
                if scope.isIndexed { entries.append(name) }
            }
            // The entries are deleted after their results, so that a purge that fails in between finds them again.
            try await delete(results)
            try await delete(entries)
            count += results.count
            guard page.count == pageSize else { return count }
            last = page.last
        }
    }

    /// Reads the record of a result; nil if there is none.
    func record(of key: ResultKey) async throws(StorageError) -> ResultRecord? {
        let (name, storage) = (ObjectName.result(key), storage)
        let head = try await reads.run(within: options.readTimeout) { () throws(StorageError) in
            try await storage.head(name)
        }
        // An object of another program or version has no record for us.
        return head.flatMap { try? ResultRecord(json: $0.record) }
    }

    /// Reads the tombstones of all processes.
    /// - Returns: True if they are complete.
    func refresh() async -> Bool {
        let begun = Timestamp.now.milliseconds * 1000
        guard let names = await names(ObjectName.purges) else { return false }
        var list: [PurgeScope: Int64] = [:]
        for name in names {
            guard let purge = ObjectName.purge(ofTombstone: name) else { continue }
            list[purge.scope] = max(list[purge.scope] ?? .min, purge.time)
        }
        // A purge that began while the list was read may not be in it.
        let overlap = Int64(options.refreshInterval / .microseconds(1)) + 60_000_000
        tombstones.withLock { $0.replace(by: list, retainingLaterThan: begun - overlap) }
        loaded.signal()
        return true
    }

    /// The names with a prefix; nil if the storage is unavailable.
    func names(_ prefix: String) async -> [String]? {
        var names: [String] = []
        while true {
            guard let page = await page(prefix, after: names.last) else { return nil }
            names += page.map(\.name)
            if page.count < pageSize { return names }
        }
    }

    /// A page of a list; nil if the storage is unavailable.
    func page(_ prefix: String, after last: String?) async -> [StorageEntry]? {
        let storage = storage
        return await reads.attempt(within: options.writeTimeout) { () throws(StorageError) in
            try await storage.list(prefix, after: last)
        }
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
            }
    }
}
