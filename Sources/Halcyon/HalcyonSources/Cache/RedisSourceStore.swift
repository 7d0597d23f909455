import HalcyonCoordination
import Redis
import Telemetry

/// A store in Redis that all workers share, optionally with a size quota.
///
/// An entry is a hash with `body`, `about` (JSON), `lifetime` (milliseconds), `storedAt` (``StoreTimestamp``), `fence`
/// (of the lease under which it was fetched) and optionally `trace` (the `traceparent` of the fetch). The age is
/// computed from the lifetime and the remaining TTL in Redis, so that clocks of different machines are never compared.
struct RedisSourceStore: SourceStore {
    private let redis: RedisClient
    private let maximumBytes: Int
    private let handOverBytes: Int
    private let budget: SourceBudgetReader
    private let accounts: QuotaTracker?

    /// Creates a store. The caller closes the client.
    /// - Parameters:
    ///   - maximumBytes: The size limit of a cached body.
    ///   - handOverBytes: The size limit of a body that is passed to other workers that wait for it.
    ///   - budget: The quota of all entries.
    ///   - errors: Counts and logs errors of quota accounting.
    init(
        _ redis: RedisClient, maximumBytes: Int, handOverBytes: Int = 0, budget: SourceBudget = .unlimited,
        errors: ToleratedErrors = .silent
    ) {
        self.redis = redis
        self.maximumBytes = maximumBytes
        self.handOverBytes = handOverBytes
        self.budget = SourceBudgetReader(budget, redis, errors: errors)
        accounts = budget == .unlimited ? nil : QuotaTracker(redis, Budget(), errors: errors)
    }

    /// One quota covers the entries of all tenants.
    private static let quota = "source-budget"

    func find(_ key: String) async throws -> FoundEntry? {
        let replies = try await redis.pipeline([
            ["HMGET", .string(key), "about", "lifetime", "body", "fence", "trace"], ["PTTL", .string(key)],
        ])
        guard let fields = replies[0].array, fields.count == 5, let description = fields[0].bytes,
            let lifetime = fields[1].string.flatMap(Double.init), let body = fields[2].bytes,
            let left = replies[1].integer, left >= 0, let entry = SourceEntry(description: description, body: body)
        else { return nil }
        accounts?.uses.recordAccess(CollectionOfOne(key), in: Self.quota)
        return FoundEntry(
            entry: entry, residentTime: max(0, lifetime - Double(left)) / 1000, version: fields[3].integer,
            loadedFor: fields[4].string.flatMap { TraceContext(traceparent: $0) })
    }

    func store(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async throws -> Bool {
        let (description, name) = (entry.description, LeaseName(product: key))
        let cost = Cost(bytes: entry.body.count + description.count)
        let budget = await budget.current()
        var (seconds, isKept) = (seconds, true)
        if entry.body.count > maximumBytes || budget?.canHold(cost) == false {
            guard entry.body.count <= handOverBytes, await terms.isWanted() else {
                try await remove(key)
                return false
            }
            (seconds, isKept) = (min(seconds, SourceCacheStack.handOverTime), false)
        }
        let reply = try await redis.run(
            Self.keeping, keys: [.string(key), .string(name.fences)],
            arguments: [
                .integer(Int((seconds * 1000).rounded(.up))), .bytes(description), .bytes(entry.body),
                .integer(terms.fence), .string(String(name.item)), .string(terms.trace?.traceparent ?? ""),
            ])
        if reply.isNull { return false }
        guard let moments = reply.array, moments.count == 2, let expiresAt = moments[0].string.flatMap(Double.init),
            let storedAt = moments[1].string
        else { throw RedisError(.protocolError, "unexpected reply from the source store script: \(reply)") }
        if isKept, let budget {
            await accounts?.insert(
                QuotaTracker.Entry(key: key, storedAt: storedAt, expiresAt: expiresAt, cost: cost), in: Self.quota,
                within: budget)
        }
        return true
    }

    func remove(_ key: String) async throws {
        let reply = try await redis.run(Self.removing, keys: [.string(key)])
        if let storedAt = reply.string { await accounts?.remove(key, storedAt, in: Self.quota) }
    }

    /// Flushes usage records to the quota. Called at shutdown, before the client is closed.
    func close() async { await accounts?.uses.close() }

    // HSET must be the first write: once a script has written, Redis lets it continue beyond maxmemory.
    private static let keeping = RedisScript(
        FencingTokens.check + StoreTimestamp.lua + """
            local fence = tonumber(ARGV[4])
            if isFencedOut(KEYS[2], KEYS[1], ARGV[5], fence, fence) then return false end
            local old = redis.call('HMGET', KEYS[1], 'storedAt', 'trace')
            local stored = stamp(old[1])
            local expires = string.format('%.0f', math.floor(now) + ARGV[1])
            redis.call(
              'HSET', KEYS[1], 'about', ARGV[2], 'body', ARGV[3], 'lifetime', ARGV[1], 'storedAt', stored,
              'fence', ARGV[4])
            if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'trace', ARGV[6])
            elseif old[2] then redis.call('HDEL', KEYS[1], 'trace') end
            redis.call('PEXPIREAT', KEYS[1], expires)
            return {expires, stored}
            """)

    private static let removing = RedisScript(
        """
        local stored = redis.call('HGET', KEYS[1], 'storedAt')
        redis.call('UNLINK', KEYS[1])
        return stored
        """)
}
