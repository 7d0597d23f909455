import Concurrency
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
    private let copyBytes: Int
    private let handOverBytes: Int
    private let budget: SourceBudgetReader
    private let accounts: QuotaTracker?

    /// Creates a store. The caller closes the client.
    /// - Parameters:
    ///   - maximumBytes: The size limit of a cached body.
    ///   - copyBytes: The size limit of an archive copy.
    ///   - handOverBytes: The size limit of a body that is passed to other workers that wait for it.
    ///   - budget: The quota of all entries.
    ///   - errors: Counts and logs errors of quota accounting.
    init(
        _ redis: RedisClient, maximumBytes: Int, copyBytes: Int = 0, handOverBytes: Int = 0,
        budget: SourceBudget = .unlimited,
        errors: ToleratedErrors = .silent
    ) {
        self.redis = redis
        self.maximumBytes = maximumBytes
        self.copyBytes = copyBytes
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
            let left = replies[1].integer, left >= 0
        else { return nil }
        guard let entry = SourceEntry(description: description, body: body) else {
            // It is damaged, or of another version. While it is there, leases on it count as done.
            try await remove(key)
            return nil
        }
        accounts?.uses.recordAccess(CollectionOfOne(key), in: Self.quota)
        let fence = fields[3].integer
        return FoundEntry(
            entry: entry, residentTime: max(0, lifetime - Double(left)) / 1000, fence: fence, version: fence,
            loadedFor: fields[4].string.flatMap { TraceContext(traceparent: $0) })
    }

    func store(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async throws -> Bool {
        let (description, name) = (entry.description, LeaseName(product: key))
        let cost = Cost(bytes: entry.body.count + description.count)
        let budget = await budget.current()
        var (seconds, isKept) = (seconds, true)
        if entry.body.count > (entry.copy == nil ? maximumBytes : copyBytes) || budget?.canHold(cost) == false {
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
                .integer(terms.oldestFence),
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
            if isFencedOut(KEYS[2], KEYS[1], ARGV[5], fence, tonumber(ARGV[7])) then return false end
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

/// The quota of all sources in Redis, over all tenants and including metadata.
public enum SourceBudget: Hashable, Sendable {
    /// A quarter of the memory of Redis (`maxmemory`, the sum of all primaries), and 256 MiB if it has no limit.
    case automatic
    /// A number of bytes.
    case bytes(Int)
    /// No quota of its own, and no accounting.
    case unlimited
}

/// Reads the budget of the sources, for ``SourceBudget/automatic`` from Redis.
final class SourceBudgetReader: Sendable {
    /// The part of the memory of Redis.
    static let share = 4
    /// The budget in bytes if the memory of Redis has no limit.
    static let withoutLimit = 256 << 20
    /// The time for which a limit is used before it is read again, because operators change it while Redis runs.
    private static let refreshInterval = Duration.seconds(300)

    private let budget: SourceBudget
    private let redis: RedisClient
    private let errors: ToleratedErrors
    private let state = Lock<(budget: Budget?, readAt: ContinuousClock.Instant?)>((nil, nil))

    init(_ budget: SourceBudget, _ redis: RedisClient, errors: ToleratedErrors) {
        (self.budget, self.redis, self.errors) = (budget, redis, errors)
    }

    /// Returns the current budget; nil for no limit, also if Redis has not told its limit yet.
    func current() async -> Budget? {
        switch budget {
        case .unlimited: return nil
        case .bytes(let bytes): return Budget(bytes: bytes)
        case .automatic: break
        }
        let now = ContinuousClock.now
        let (known, isDue) = state.withLock { state in
            let isDue = state.readAt.map { $0.duration(to: now) >= Self.refreshInterval } ?? true
            // Only one task asks.
            if isDue { state.readAt = now }
            return (state.budget, isDue)
        }
        guard isDue else { return known }
        guard let found = await errors.tolerating({ try await read() }) else {
            state.withLock { $0.readAt = nil }
            return known
        }
        state.withLock { $0.budget = found }
        return found
    }

    private func read() async throws(RedisError) -> Budget {
        var total = 0
        for reply in try await redis.sendToAllPrimaries(["INFO", "memory"]) {
            let text = try reply.outcome.get().string ?? ""
            let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("maxmemory:") }
            guard let limit = line.flatMap({ Int($0.dropFirst("maxmemory:".utf8.count)) }), limit > 0 else {
                return Budget(bytes: Self.withoutLimit)
            }
            total += limit
        }
        return Budget(bytes: total / Self.share)
    }
}
