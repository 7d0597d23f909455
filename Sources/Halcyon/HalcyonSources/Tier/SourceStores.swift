import Redis
import Telemetry
import Threads

/// The stores of a worker, the nearer one first. One that is out of order is passed over: the tier saves work, and no job
/// depends on it.
struct SourceStores: Sendable {
    private let disk: DiskSourceStore?
    private let stores: [WatchedStore]

    /// It blocks where there is a folder.
    /// - Throws: ``DiskError``.
    init(_ options: SourceTierOptions, _ redis: RedisClient?, _ log: Log) throws(DiskError) {
        disk = try options.folder.map { path throws(DiskError) in
            try DiskSourceStore(under: path, capacity: options.folderBytes)
        }
        let shared = redis.flatMap { redis in
            options.redisBytes > 0 ? RedisSourceStore(redis, maximumBytes: options.redisBytes) : nil
        }
        stores = [
            disk.map { WatchedStore("the source folder", $0, log) }, shared.map { WatchedStore("Redis", $0, log) },
        ].compactMap { $0 }
    }

    /// The first entry that is usable; where none is fresh, the one that was kept last.
    func find(_ key: String, where isUsable: (FoundEntry) -> Bool) async -> FoundEntry? {
        var best: FoundEntry?
        for store in stores {
            guard let found = await store.find(key), isUsable(found) else { continue }
            if case .fresh = found.entry.response.freshness(after: found.residentTime) { return found }
            if best.map({ found.residentTime < $0.residentTime }) ?? true { best = found }
        }
        return best
    }

    func keep(_ entry: SourceEntry, as key: String, for seconds: Double) async {
        await withTaskGroup(of: Void.self) { group in
            for store in stores { group.addTask { await store.keep(entry, as: key, for: seconds) } }
        }
    }

    func remove(_ key: String) async {
        for store in stores { await store.remove(key) }
    }

    func close() async {
        if let disk { await blocking { disk.close() } }
    }
}

/// A store whose troubles are logged, once when they begin and once when they are over.
private struct WatchedStore: Sendable {
    private let name: String
    private let store: any SourceStore
    private let log: Log
    private let isInTrouble = Lock(false)

    init(_ name: String, _ store: any SourceStore, _ log: Log) {
        self.name = name
        self.store = store
        self.log = log
    }

    func find(_ key: String) async -> FoundEntry? { await watched { try await store.find(key) } ?? nil }
    func keep(_ entry: SourceEntry, as key: String, for seconds: Double) async {
        await watched { try await store.keep(entry, as: key, for: seconds) }
    }
    func remove(_ key: String) async { await watched { try await store.remove(key) } }

    @discardableResult
    private func watched<Result: Sendable>(_ body: () async throws -> Result) async -> Result? {
        do {
            let result = try await body()
            if isInTrouble.withLock({ $0.replace(false) }) { log.notice("sources are kept again", ["in": name]) }
            return result
        } catch is CancellationError {
            return nil
        } catch {
            if !isInTrouble.withLock({ $0.replace(true) }) {
                log.warning("sources are not kept", ["in": name, "error": "\(error)"])
            }
            return nil
        }
    }
}

extension Bool {
    /// Puts another in its place.
    fileprivate mutating func replace(_ new: Bool) -> Bool {
        defer { self = new }
        return self
    }
}
