import HalcyonModel
import Redis
import Telemetry
import Threads

/// The stores of a worker, the nearer one first. One that is out of order is passed over: the tier saves work, and no job
/// depends on it.
struct SourceStores: Sendable {
    /// For how many seconds an entry is kept that is there only for workers which wait for it.
    static let handOverTime = 30.0

    private let policy: FreshnessPolicy
    private let disk: DiskSourceStore?
    private let shared: RedisSourceStore?
    private let stores: [WatchedStore]
    private let purgeErrors: ToleratedErrors

    /// It blocks where there is a folder.
    /// - Throws: ``DiskError``.
    init(_ options: SourceTierOptions, _ redis: RedisClient?, _ log: Log, _ metrics: Metrics) throws(DiskError) {
        policy = options.freshness
        purgeErrors = ToleratedErrors(of: "purge", log: log, metrics: metrics)
        disk = try options.folder.map { path throws(DiskError) in
            try DiskSourceStore(under: path, capacity: options.folderBytes)
        }
        shared = redis.flatMap { redis in
            options.redisBytes > 0 || options.handOverBytes > 0
                ? RedisSourceStore(
                    redis, maximumBytes: options.redisBytes, handOverBytes: options.handOverBytes,
                    budget: options.redisBudget,
                    errors: ToleratedErrors(of: "budget", log: log, metrics: metrics)) : nil
        }
        stores = [
            disk.map {
                WatchedStore(
                    "the source folder", $0, isShared: false, retention: options.folderRetention, log,
                    StoreLookups(metrics, "folder"))
            },
            shared.map {
                WatchedStore(
                    "Redis", $0, isShared: true, retention: options.redisRetention, log, StoreLookups(metrics, "redis"))
            },
        ].compactMap { $0 }
    }

    /// What was found of a source.
    struct Finding: Sendable {
        /// The first entry that is usable; where none is fresh, the one that was kept last.
        var entry: FoundEntry?
        /// The version that is kept where all workers look, usable or not.
        var version: Int?

        static let nothing = Finding()
    }

    func find(_ key: String, where isUsable: (FoundEntry) -> Bool) async -> Finding {
        var finding = Finding.nothing
        for store in stores {
            guard let found = await store.find(key) else { continue }
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

    /// Keeps a response wherever and for as long as that is of use. Where it is of none, what was there goes.
    /// - Returns: whether all workers find it.
    @discardableResult
    func keep(_ entry: SourceEntry, as key: String, _ terms: KeepingTerms) async -> Bool {
        await forEach { store in
            let seconds = entry.response.keepingTime(policy, retention: store.retention)
            if seconds > 0 { return await store.keep(entry, as: key, for: seconds, terms) }
            // What is of no use later is for those who wait for it now.
            if store.isShared, await terms.isWanted() {
                return await store.keep(entry, as: key, for: Self.handOverTime, terms)
            }
            await store.remove(key)
            return false
        }
    }

    /// Keeps a failure.
    func keep(_ failure: SourceEntry, as key: String, for seconds: Double, _ terms: KeepingTerms) async {
        await forEach { await $0.keep(failure, as: key, for: seconds, terms) }
    }

    /// - Returns: whether it is done where all workers look.
    @discardableResult
    private func forEach(_ body: @escaping @Sendable (WatchedStore) async -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for store in stores { group.addTask { await body(store) && store.isShared } }
            return await group.reduce(false) { $0 || $1 }
        }
    }

    func remove(_ key: String) async {
        for store in stores { await store.remove(key) }
    }

    /// In the folder alone.
    func forgetHere(_ key: String, keptBy moment: Double) async {
        await purgeErrors.tolerating { try await disk?.remove(key, keptBy: moment) }
    }

    func close() async {
        await shared?.close()
        if let disk { await blocking { disk.close() } }
    }
}

/// A store whose troubles are logged, once when they begin, and once when something was kept again.
private struct WatchedStore: Sendable {
    private let name: String
    private let store: any SourceStore
    let isShared: Bool
    let retention: Double
    private let log: Log
    private let lookups: StoreLookups
    private let isInTrouble = Lock(false)

    /// - Parameters:
    ///   - isShared: whether all workers look there.
    ///   - retention: seconds for which it keeps what an origin can be asked about.
    init(
        _ name: String, _ store: any SourceStore, isShared: Bool, retention: Double, _ log: Log,
        _ lookups: StoreLookups
    ) {
        self.lookups = lookups
        self.name = name
        self.store = store
        self.isShared = isShared
        self.retention = retention
        self.log = log
    }

    func find(_ key: String) async -> FoundEntry? {
        do {
            let found = try await store.find(key)
            lookups.count(isHit: found != nil)
            return found
        } catch {
            troubled(error)
            return nil
        }
    }

    func keep(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: KeepingTerms) async -> Bool {
        do {
            let isKept = try await store.keep(entry, as: key, for: seconds, terms)
            if isInTrouble.withLock({ $0.replace(false) }) { log.notice("sources are kept again", ["in": name]) }
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
        log.warning("sources are not kept", ["in": name, "error": "\(error)"])
    }
}

extension Bool {
    /// Puts another in its place.
    fileprivate mutating func replace(_ new: Bool) -> Bool {
        defer { self = new }
        return self
    }
}
