import Concurrency
import HalcyonModel
import Redis
import Telemetry

/// The stores of a worker, nearest first. A failing store is skipped, because the cache only saves work and no job
/// depends on it.
struct SourceCacheStack: Sendable {
    /// The lifetime in seconds of an entry that is stored only for workers that wait for it.
    static let handOverTime = 30.0

    private let policy: FreshnessPolicy
    private let disk: DiskSourceStore?
    private let shared: RedisSourceStore?
    private let stores: [LoggingSourceStore]
    private let purgeErrors: ToleratedErrors

    /// Creates the stores. The call blocks if there is a disk cache.
    /// - Throws: ``DiskError``.
    init(_ options: SourceCacheOptions, _ redis: RedisClient?, _ log: Log, _ metrics: Metrics) throws(DiskError) {
        policy = options.freshness
        purgeErrors = ToleratedErrors(of: "purge", log: log, metrics: metrics)
        disk = try options.folder.map { path throws(DiskError) in
            try DiskSourceStore(under: path, capacity: options.folderBytes)
        }
        shared = redis.flatMap { redis in
            options.redisBytes > 0 || options.handOverBytes > 0 || options.copyBytes > 0
                ? RedisSourceStore(
                    redis, maximumBytes: options.redisBytes, copyBytes: options.copyBytes,
                    handOverBytes: options.handOverBytes,
                    budget: options.redisBudget,
                    errors: ToleratedErrors(of: "budget", log: log, metrics: metrics)) : nil
        }
        stores = [
            disk.map {
                LoggingSourceStore(
                    "the source folder", $0, isShared: false, retention: options.folderRetention,
                    copyRetention: options.folderRetention, log,
                    CacheLookupMetrics(metrics, "folder"))
            },
            shared.map {
                LoggingSourceStore(
                    "Redis", $0, isShared: true, retention: options.redisRetention,
                    copyRetention: options.copyRetention, log,
                    CacheLookupMetrics(metrics, "redis"))
            },
        ].compactMap { $0 }
    }

    /// The result of looking up a source.
    struct SourceLookup: Sendable {
        /// The first usable entry that is fresh, or else the most recently stored usable entry.
        var entry: FoundEntry?
        /// The version in the shared store, usable or not.
        var version: Int?
        /// The error of the shared store; nil if it was asked or need not be.
        var sharedStoreError: (any Error)?

        static let nothing = SourceLookup()
    }

    func find(_ key: String, where isUsable: (FoundEntry) -> Bool) async -> SourceLookup {
        var finding = SourceLookup.nothing
        for store in stores {
            let result = await store.find(key)
            if store.isShared, case .failure(let error) = result { finding.sharedStoreError = error }
            guard case .success(let found?) = result else { continue }
            if let version = found.version { finding.version = version }
            guard isUsable(found) else { continue }
            if case .fresh = found.entry.response.freshness(after: found.residentTime, policy) {
                finding.entry = found
                return finding
            }
            if finding.entry.map({ found.residentTime < $0.residentTime }) ?? true { finding.entry = found }
        }
        return finding
    }

    /// Stores a response in every store where it is useful, and removes the old entry from the others.
    /// - Returns: True if all workers can find it.
    @discardableResult
    func store(_ entry: SourceEntry, as key: String, _ terms: StoreOptions) async -> Bool {
        await forEach { store in
            // A copy is useful as long as the source has the same bytes, however they are found to be the same.
            let seconds = max(
                entry.response.keepingTime(policy, retention: store.retention),
                entry.copy == nil ? 0 : store.copyRetention)
            if seconds > 0 { return await store.store(entry, as: key, for: seconds, terms) }
            // A response without a useful lifetime is stored only for workers that wait for it now.
            if store.isShared, await terms.isWanted() {
                return await store.store(entry, as: key, for: Self.handOverTime, terms)
            }
            await store.remove(key)
            return false
        }
    }

    /// Stores an error.
    func store(_ failure: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async {
        await forEach { await $0.store(failure, as: key, for: seconds, terms) }
    }

    /// Performs an operation on all stores concurrently.
    /// - Returns: True if it succeeded in a store that all workers share.
    @discardableResult
    private func forEach(_ body: @escaping @Sendable (LoggingSourceStore) async -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for store in stores { group.addTask { await body(store) && store.isShared } }
            return await group.reduce(false) { $0 || $1 }
        }
    }

    func remove(_ key: String) async {
        for store in stores { await store.remove(key) }
    }

    /// Removes an entry from the disk cache only.
    func purgeLocal(_ key: String, at time: Int, keepsNewer: Bool) async {
        await purgeErrors.tolerating { try await disk?.purge(key, at: time, keepsNewer: keepsNewer) }
    }

    func close() async {
        await shared?.close()
        if let disk { await blocking { disk.close() } }
    }
}

/// A store that logs errors: once when they begin, and once when an entry could be stored again.
private struct LoggingSourceStore: Sendable {
    private let name: String
    private let store: any SourceStore
    let isShared: Bool
    let retention: Double
    let copyRetention: Double
    private let log: Log
    private let lookups: CacheLookupMetrics
    private let isInTrouble = Lock(false)

    /// Creates a store.
    /// - Parameters:
    ///   - isShared: True if all workers use the store.
    ///   - retention: The retention in seconds of responses that can be revalidated.
    ///   - copyRetention: The retention in seconds of archive copies.
    init(
        _ name: String, _ store: any SourceStore, isShared: Bool, retention: Double, copyRetention: Double, _ log: Log,
        _ lookups: CacheLookupMetrics
    ) {
        self.lookups = lookups
        self.name = name
        self.store = store
        self.isShared = isShared
        self.retention = retention
        self.copyRetention = copyRetention
        self.log = log
    }

    func find(_ key: String) async -> Result<FoundEntry?, any Error> {
        do {
            let found = try await store.find(key)
            lookups.count(isHit: found != nil)
            return .success(found)
        } catch {
            troubled(error)
            return .failure(error)
        }
    }

    func store(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async -> Bool {
        do {
            let isKept = try await store.store(entry, as: key, for: seconds, terms)
            if isInTrouble.withLock({ $0.replace(false) }) { log.notice("source cache store recovered", ["in": name]) }
            return isKept
        } catch {
            troubled(error)
            return false
        }
    }

    func remove(_ key: String) async {
        do { try await store.remove(key) } catch { troubled(error) }
    }

    private func troubled(_ error: any Error) {
        guard !(error is CancellationError), (error as? RedisError)?.code != .cancelled else { return }
        guard !isInTrouble.withLock({ $0.replace(true) }) else { return }
        log.warning("source cache store failed", ["in": name, "error": "\(error)"])
    }
}

extension Bool {
    /// Replaces the value and returns the old one.
    fileprivate mutating func replace(_ new: Bool) -> Bool {
        defer { self = new }
        return self
    }
}
