import HalcyonModel
import Redis
import Telemetry
import Threads

/// The stores of a worker, the nearer one first. One that is out of order is passed over: the tier saves work, and no job
/// depends on it.
struct SourceStores: Sendable {
    private let policy: FreshnessPolicy
    private let disk: DiskSourceStore?
    private let stores: [WatchedStore]

    /// It blocks where there is a folder.
    /// - Throws: ``DiskError``.
    init(_ options: SourceTierOptions, _ redis: RedisClient?, _ log: Log) throws(DiskError) {
        policy = options.freshness
        disk = try options.folder.map { path throws(DiskError) in
            try DiskSourceStore(under: path, capacity: options.folderBytes)
        }
        let shared = redis.flatMap { redis in
            options.redisBytes > 0 ? RedisSourceStore(redis, maximumBytes: options.redisBytes) : nil
        }
        stores = [
            disk.map { WatchedStore("the source folder", $0, retention: options.folderRetention, log) },
            shared.map { WatchedStore("Redis", $0, retention: options.redisRetention, log) },
        ].compactMap { $0 }
    }

    /// The first entry that is usable; where none is fresh, the one that was kept last.
    func find(_ key: String, where isUsable: (FoundEntry) -> Bool) async -> FoundEntry? {
        var best: FoundEntry?
        for store in stores {
            guard let found = await store.find(key), isUsable(found) else { continue }
            if case .fresh = found.entry.response.freshness(after: found.residentTime, policy) { return found }
            if best.map({ found.residentTime < $0.residentTime }) ?? true { best = found }
        }
        return best
    }

    /// Keeps a response wherever and for as long as that is of use. Where it is of none, what was there goes.
    func keep(_ entry: SourceEntry, as key: String) async {
        await forEach { store in
            let seconds = entry.response.keepingTime(policy, retention: store.retention)
            if seconds > 0 { await store.keep(entry, as: key, for: seconds) } else { await store.remove(key) }
        }
    }

    /// Keeps a failure.
    func keep(_ failure: SourceEntry, as key: String, for seconds: Double) async {
        await forEach { await $0.keep(failure, as: key, for: seconds) }
    }

    private func forEach(_ body: @escaping @Sendable (WatchedStore) async -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            for store in stores { group.addTask { await body(store) } }
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
    let retention: Double
    private let log: Log
    private let isInTrouble = Lock(false)

    /// - Parameter retention: seconds for which it keeps what an origin can be asked about.
    init(_ name: String, _ store: any SourceStore, retention: Double, _ log: Log) {
        self.name = name
        self.store = store
        self.retention = retention
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
