import Redis
import Telemetry

/// The quotas in Redis, shared by all workers. For each quota it records the entries, their cost, and their last use.
/// An entry is a hash with a field `storedAt` (``StoreTimestamp``).
///
/// Entries and quotas are in different hash slots and cannot change atomically. If a worker crashes after it stored an
/// entry and before it recorded it, the entry is not counted until it is stored again or expires. An entry that was
/// removed before it was recorded, or that Redis evicted, is counted until it would have expired.
public struct QuotaStore: Sendable {
    private let redis: RedisClient

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// The result of an eviction.
    struct EvictionResult {
        /// True if there is more to evict.
        let hasMore: Bool
        /// The remaining usage.
        let left: QuotaUsage
        /// The entries to remove, in this order.
        let victims: [EvictedEntry]
    }

    /// An entry that was removed from its quota.
    struct EvictedEntry {
        let key: String
        /// The version to remove. A version that was stored since stays.
        let storedAt: String
        let cost: Cost
    }

    /// Removes the least recently used entries of a quota until the rest is within these limits.
    ///
    /// Only entries that were stored while a budget was set are considered.
    /// - Returns: the usage that was removed and the usage that is left.
    /// - Throws: ``RedisError``. Entries that were removed before the error are gone.
    public func trim(
        _ quota: String, to budget: Budget
    ) async throws(RedisError) -> (removed: QuotaUsage, left: QuotaUsage) {
        var removed = QuotaUsage()
        while true {
            let clearing = try await self.clearing(QuotaScripts.trim, quota, budget, [])
            for victim in try await remove(clearing.victims) { removed.add(victim.cost) }
            if !clearing.hasMore { return (removed, clearing.left) }
        }
    }

    func insert(
        _ entry: QuotaTracker.Entry, in quota: String, _ budget: Budget
    ) async throws(RedisError) -> EvictionResult {
        try await clearing(
            QuotaScripts.enter, quota, budget,
            [
                .string(entry.key), .string(entry.storedAt), .integer(entry.cost.bytes), .integer(entry.cost.pixels),
                .integer(Int(entry.expiresAt)),
            ])
    }

    func extend(_ key: String, to expiresAt: Double, in quota: String) async throws(RedisError) {
        _ = try await run(QuotaScripts.extend, quota, [.string(key), .integer(Int(expiresAt))])
    }

    /// Removes an entry from a quota, unless it has been stored again since `storedAt`.
    /// - Throws: ``RedisError``.
    public func remove(_ key: String, _ storedAt: String, in quota: String) async throws(RedisError) {
        _ = try await run(QuotaScripts.strike, quota, [.string(key), .string(storedAt)])
    }

    /// Records uses.
    /// - Parameter keys: the keys, the most recently used one last.
    func use(_ keys: [String], in quota: String) async throws(RedisError) {
        _ = try await run(QuotaScripts.use, quota, keys.map { .string($0) })
    }

    /// Removes evicted entries concurrently.
    /// - Returns: the entries that were still stored in the evicted version.
    /// - Throws: the first error, after all entries were tried.
    func remove(_ victims: [EvictedEntry]) async throws(RedisError) -> [EvictedEntry] {
        let results = await withTaskGroup(of: Result<EvictedEntry?, RedisError>.self) { group in
            for victim in victims {
                group.addTask { [redis] in
                    do throws(RedisError) {
                        let reply = try await redis.run(
                            QuotaScripts.removeStored, keys: [.string(victim.key)],
                            arguments: [.string(victim.storedAt)])
                        return .success(reply.integer == 1 ? victim : nil)
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var removed: [EvictedEntry] = []
        for result in results { if let victim = try result.get() { removed.append(victim) } }
        return removed
    }

    private func clearing(
        _ script: RedisScript, _ quota: String, _ budget: Budget, _ words: [RedisArgument]
    ) async throws(RedisError) -> EvictionResult {
        let limits = [budget.bytes, budget.pixels, budget.count].map { RedisArgument.integer($0 ?? -1) }
        let reply = try await run(script, quota, limits + words)
        guard let clearing = EvictionResult(reply) else {
            throw RedisError(.protocolError, "unexpected reply from the quota script: \(reply)")
        }
        return clearing
    }

    private func run(
        _ script: RedisScript, _ quota: String, _ words: [RedisArgument]
    ) async throws(RedisError) -> RedisValue {
        let quotas = "halcyon:{\(quota)}"
        return try await redis.run(
            script, keys: ["\(quotas):used", "\(quotas):expiry", "\(quotas):cost", "\(quotas):sum"], arguments: words)
    }
}

extension QuotaStore.EvictionResult {
    /// Decodes the reply of ``QuotaScripts/trim``.
    fileprivate init?(_ reply: RedisValue) {
        guard let words = reply.array, words.count >= 4, words.count.isMultiple(of: 4), let hasMore = words[0].integer,
            let bytes = words[1].integer, let pixels = words[2].integer, let count = words[3].integer
        else { return nil }
        var victims: [QuotaStore.EvictedEntry] = []
        for place in stride(from: 4, to: words.count, by: 4) {
            guard let key = words[place].string, let storedAt = words[place + 1].string,
                let bytes = words[place + 2].integer, let pixels = words[place + 3].integer
            else { return nil }
            victims.append(
                QuotaStore.EvictedEntry(key: key, storedAt: storedAt, cost: Cost(bytes: bytes, pixels: pixels)))
        }
        self.init(
            hasMore: hasMore == 1, left: QuotaUsage(count: count, bytes: bytes, pixels: pixels), victims: victims)
    }
}

/// Keeps entries in Redis within their quotas. It records changes, and removes evicted entries.
///
/// Tracking never fails an operation. If it cannot be updated, entries are stored and found regardless. Errors are
/// counted (``ToleratedErrors``), and the recorded usage is then too low.
public struct QuotaTracker: Sendable {
    /// The limits of each quota.
    public let budget: Budget
    /// The recorder of uses for LRU eviction.
    public let uses: AccessRecorder
    private let quotas: QuotaStore
    private let errors: ToleratedErrors

    /// Creates a tracker that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient, _ budget: Budget, errors: ToleratedErrors = .silent) {
        self.budget = budget
        self.errors = errors
        quotas = QuotaStore(redis)
        uses = AccessRecorder(quotas, errors)
    }

    /// An entry that was stored.
    public struct Entry: Sendable {
        let key: String
        let storedAt: String
        let expiresAt: Double
        let cost: Cost

        /// Creates an entry.
        /// - Parameters:
        ///   - storedAt: the value of its field with that name.
        ///   - expiresAt: the expiry in milliseconds since 1970.
        public init(key: String, storedAt: String, expiresAt: Double, cost: Cost) {
            self.key = key
            self.storedAt = storedAt
            self.expiresAt = expiresAt
            self.cost = cost
        }
    }

    /// Records a stored entry, and evicts others if the quota is exceeded.
    /// - Parameter budget: The limits of the quota if they are not those of all quotas.
    public func insert(_ entry: Entry, in quota: String, within budget: Budget? = nil) async {
        let budget = budget ?? self.budget
        await errors.tolerating {
            let clearing = try await quotas.insert(entry, in: quota, budget)
            _ = try await quotas.remove(clearing.victims)
            if clearing.hasMore { _ = try await quotas.trim(quota, to: budget) }
        }
    }

    /// Extends the expiry of an entry, to a time in milliseconds since 1970.
    public func extend(_ key: String, to expiresAt: Double, in quota: String) async {
        await errors.tolerating { try await quotas.extend(key, to: expiresAt, in: quota) }
    }

    /// Removes an entry that was stored at `storedAt` from a quota.
    public func remove(_ key: String, _ storedAt: String, in quota: String) async {
        await errors.tolerating { try await quotas.remove(key, storedAt, in: quota) }
    }
}
