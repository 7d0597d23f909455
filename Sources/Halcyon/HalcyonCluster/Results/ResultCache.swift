import HalcyonCoding
import HalcyonCoordination
import HalcyonModel
import HalcyonResults
import Hashing
import JSON
import Redis
import Telemetry

/// The result cache in Redis. Each result has a TTL, and the results of a tenant share a quota.
///
/// A result is a hash: `body` (the file), `facts` (JSON, ``ResultMetadata``), `expiresAt` and `storedAt` (milliseconds
/// since 1970), `rule` (the ``ResultTTLPolicy/name`` of the policy that determined the expiry), `fence` and `since`
/// (the fencing tokens of the lease and of the oldest input), and optionally `tenant`, `tags` (``ResultTags``) and
/// `trace` (the `traceparent` of the job that produced it). The expiry is absolute and uses the Redis clock, so that
/// workers with different clocks agree.
public struct ResultCache: Sendable {
    let redis: RedisClient
    private let accounts: QuotaTracker?

    /// Creates a cache that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - budget: the quota of each tenant. Without limits, usage is not tracked.
    ///   - errors: the counter of errors in tracking usage.
    public init(_ redis: RedisClient, budget: Budget = Budget(), errors: ToleratedErrors = .silent) {
        self.redis = redis
        accounts = budget.isLimited ? QuotaTracker(redis, budget, errors: errors) : nil
    }

    /// Looks up a result without reading its bytes; nil if it is missing, or was written by a version whose format
    /// cannot be read. The lookup does not count as a use; see ``used(_:of:)``.
    /// - Parameter rule: the policy of a later call of ``extend(_:as:by:of:)``.
    /// - Throws: ``RedisError``.
    public func find(_ key: String, for rule: ResultTTLPolicy = .response) async throws(RedisError) -> Found? {
        Found(try await redis.send(Self.look(for: key, rule)))
    }

    /// Looks up several results, in the order of the keys.
    /// - Throws: ``RedisError``.
    public func find(_ keys: [String], for rule: ResultTTLPolicy = .response) async throws(RedisError) -> [Found?] {
        try await redis.pipeline(keys.map { Self.look(for: $0, rule) }).map { Found($0) }
    }

    /// Most policies do not need `storedAt`, and a cache hit is cheaper without it.
    private static func look(for key: String, _ rule: ResultTTLPolicy) -> [RedisArgument] {
        let fields: [RedisArgument] = ["HMGET", .string(key), "facts", "expiresAt"]
        return rule.canExtend ? fields + ["storedAt"] : fields
    }

    /// Reads the bytes and metadata of several results, in the order of the keys.
    /// - Throws: ``RedisError``.
    public func read(_ keys: [String]) async throws(RedisError) -> [(body: [UInt8], result: Found)?] {
        let commands: [[RedisArgument]] = keys.map { ["HMGET", .string($0), "facts", "expiresAt", "body"] }
        return try await redis.pipeline(commands).map { reply in
            guard let fields = reply.array, let body = fields.last?.bytes,
                let result = Found(.array(Array(fields.dropLast())))
            else { return nil }
            return (body, result)
        }
    }

    /// Reads the bytes and metadata of a result; nil if it is missing. A one-time result is removed, and only one of
    /// several readers gets it.
    /// - Throws: ``RedisError``.
    public func read(_ key: String) async throws(RedisError) -> (body: [UInt8], facts: ResultMetadata)? {
        let reply =
            try await key.contains(Self.handOffMark)
            ? redis.run(ResultScripts.take, keys: ResultScripts.keys(of: key))
            : redis.send(["HMGET", .string(key), "body", "facts"])
        // Metadata of another version may be unreadable.
        guard let fields = reply.array, fields.count == 2, let body = fields[0].bytes,
            let json = fields[1].bytes, let facts = try? ResultMetadata(json: json)
        else { return nil }
        return (body, facts)
    }

    /// The trace contexts in which these results were produced. Missing results and results without a recorded trace
    /// are omitted.
    /// - Throws: ``RedisError``.
    public func makers(of keys: [String]) async throws(RedisError) -> [TraceContext] {
        try await redis.pipeline(keys.map { ["HGET", .string($0), "trace"] })
            .compactMap { $0.string.flatMap { TraceContext(traceparent: $0) } }
    }

    /// True if a result fits into the quota of its tenant on its own.
    public func canHold(_ facts: ResultMetadata) -> Bool { accounts?.budget.canHold(Cost(facts)) ?? true }

    /// Stores a result, replacing the stored one. A later expiry that another policy determined is retained.
    ///
    /// If the quota is exceeded, the least recently used results are evicted. Errors in tracking usage are ignored.
    /// - Parameters:
    ///   - lifetime: the TTL in seconds, greater than 0.
    ///   - rule: the job's policy, which determined the TTL.
    ///   - tenant: the tenant of the job.
    ///   - fence: the fencing token of the lease; 0 for none.
    ///   - since: the fencing token of the oldest input; nil for that of the lease.
    ///   - maker: the trace context in which the result was produced, if it was recorded.
    ///   - tags: the tags of the job.
    /// - Returns: the expiry and the time of storing; nil if nothing was stored because a newer result is there or the
    ///   key has been purged since.
    /// - Throws: ``RedisError``, with the code `server("OOM")` if the memory of Redis is full.
    public func store(
        _ body: [UInt8], _ facts: ResultMetadata, as key: String, for lifetime: Double, by rule: ResultTTLPolicy,
        of tenant: String? = nil, fence: Int = 0, since: Int? = nil, maker: TraceContext? = nil, tags: [String] = []
    ) async throws(RedisError) -> StoredLife? {
        guard
            let (expiresAt, storedAt, rule) = try await put(
                body, facts, as: key, for: lifetime, rule, fence, since ?? fence, maker, tags: tags, of: tenant)
        else { return nil }
        await accounts?.insert(
            QuotaTracker.Entry(key: key, storedAt: storedAt, expiresAt: expiresAt, cost: Cost(facts)),
            in: Self.quota(of: tenant))
        return StoredLife(
            expiresAtMilliseconds: Int64(expiresAt), storedAtMilliseconds: Int64(Double(storedAt) ?? 0), rule: rule)
    }

    /// Puts a result back that Redis has evicted, for the rest of its life.
    /// - Returns: false if it has expired or has been purged since, or if another one is there.
    /// - Throws: ``RedisError``.
    public func restore(_ result: StoredResult) async throws(RedisError) -> Bool {
        var json = JSONWriter(capacity: 256)
        json.value(result.metadata)
        let key = result.key.description
        let name = LeaseName(product: key)
        let reply = try await redis.run(
            ResultScripts.restore, keys: ResultScripts.keys(of: key, fencedBy: name),
            arguments: [
                .integer(Int(result.expiresAt)), .bytes(result.body), .bytes(json.bytes), .string(result.rule),
                .integer(Int(result.fence)), .string(String(name.item)), .integer(Int(result.since)),
                .integer(Int(result.storedAt)), .string(ResultTags.text(of: result)), .string(result.tenant ?? ""),
            ])
        guard let storedAt = reply.string else { return false }
        await accounts?.insert(
            QuotaTracker.Entry(
                key: key, storedAt: storedAt, expiresAt: Double(result.expiresAt), cost: Cost(result.metadata)),
            in: Self.quota(of: result.tenant))
        return true
    }

    /// Returns whether a newer result of the same key is stored, and whether this one has been purged.
    /// - Throws: ``RedisError``.
    public func standing(of result: StoredResult) async throws(RedisError) -> ResultStanding {
        let name = LeaseName(product: result.key.description)
        let reply = try await redis.run(
            ResultScripts.standing, keys: ResultScripts.keys(of: result.key.description, fencedBy: name),
            arguments: [.integer(Int(result.fence)), .string(String(name.item)), .integer(Int(result.since))])
        switch reply.integer {
        case 1: return .purged
        // A newer one that has gone since is not in the way.
        case 2: return try await whole(result.key, of: result.tenant).map { .replaced(by: $0) } ?? .current
        default: return .current
        }
    }

    /// Returns true in at most one process of the cluster within an interval: the one that sweeps the result store.
    public func beginSweep(of interval: Duration) async -> Bool {
        let milliseconds = Int(interval / .milliseconds(1))
        // Without Redis nobody sweeps.
        let reply = try? await redis.send(["SET", "halcyon:{results}:sweep", "1", "NX", "PX", .integer(milliseconds)])
        return reply?.string == "OK"
    }

    /// Reads a result with all that the result store has to know about it; nil if it is missing.
    /// - Throws: ``RedisError``.
    public func whole(_ key: ResultKey, of tenant: String?) async throws(RedisError) -> StoredResult? {
        let reply = try await redis.send(
            // Metadata of another version may be unreadable.
            ["HMGET", .string(key.description), "body", "facts", "expiresAt", "storedAt", "rule", "fence", "since"])
        guard let fields = reply.array, fields.count == 7, let body = fields[0].bytes, let json = fields[1].bytes,
            let facts = try? ResultMetadata(json: json), let expiresAt = fields[2].string.flatMap({ Double($0) }),
            let storedAt = fields[3].string.flatMap({ Double($0) })
        else { return nil }
        let fence = fields[5].string.flatMap { Int64($0) } ?? 0
        return StoredResult(
            key: key, tenant: tenant, body: body, metadata: facts, expiresAt: Int64(expiresAt),
            storedAt: Int64(storedAt), rule: fields[4].string ?? "", fence: fence,
            since: fields[6].string.flatMap { Int64($0) } ?? fence)
    }

    /// Stores a result that is read once, under a key of ``handOffKey(for:)``. It does not count toward the quota.
    /// - Parameter lifetime: the TTL in seconds, greater than 0.
    /// - Throws: ``RedisError``.
    public func storeOnce(
        _ body: [UInt8], _ facts: ResultMetadata, as key: String, for lifetime: Double
    ) async throws(RedisError) -> Double {
        guard let stored = try await put(body, facts, as: key, for: lifetime, .never, -1, -1, nil) else {
            throw RedisError(.protocolError, "storing a one-time result returned no expiry")
        }
        return stored.expiresAt / 1000
    }

    private func put(
        _ body: [UInt8], _ facts: ResultMetadata, as key: String, for lifetime: Double, _ rule: ResultTTLPolicy,
        _ fence: Int, _ since: Int, _ maker: TraceContext?, tags: [String] = [], of tenant: String? = nil
    ) async throws(RedisError) -> (expiresAt: Double, storedAt: String, rule: String)? {
        var json = JSONWriter(capacity: 256)
        json.value(facts)
        let name = LeaseName(product: key)
        let reply = try await redis.run(
            ResultScripts.store, keys: ResultScripts.keys(of: key, fencedBy: name),
            arguments: [
                .integer(Self.milliseconds(lifetime)), .bytes(body), .bytes(json.bytes), .string(rule.name),
                .integer(fence), .string(String(name.item)), .integer(since), .string(maker?.traceparent ?? ""),
                .string(ResultTags.text(tags, of: tenant)), .string(tenant ?? ""),
            ])
        if reply.isNull { return nil }
        guard let fields = reply.array, fields.count == 3, let expiresAt = fields[0].string.flatMap(Double.init),
            let storedAt = fields[1].string, let rule = fields[2].string
        else { throw RedisError(.protocolError, "unexpected reply from the store script: \(reply)") }
        return (expiresAt, storedAt, rule)
    }

    /// Extends the expiry of a stored result if the job's policy gives it a longer TTL, counted from the time it was
    /// stored.
    /// - Returns: the result with its expiry; nil if it has expired meanwhile.
    /// - Throws: ``RedisError``.
    public func extend(
        _ found: Found, as key: String, by rule: ResultTTLPolicy, of tenant: String? = nil
    ) async throws(RedisError) -> Found? {
        guard case .own(let seconds) = rule, let storedAt = found.storedAt,
            storedAt.rounded(.down) + Double(Self.milliseconds(seconds)) > found.expiresAtMilliseconds
        else { return found }
        let reply = try await redis.run(
            ResultScripts.extend, keys: ResultScripts.keys(of: key),
            arguments: [.integer(Self.milliseconds(seconds)), .string(rule.name)])
        guard let expiresAt = reply.string.flatMap(Double.init) else { return nil }
        await accounts?.extend(key, to: expiresAt, in: Self.quota(of: tenant))
        return Found(facts: found.facts, expiresAtMilliseconds: expiresAt, storedAt: found.storedAt)
    }

    /// Removes a result whose expiry was determined by this policy, which no longer allows storing it. Results of other
    /// policies stay.
    /// - Returns: true if a result was removed.
    /// - Throws: ``RedisError``.
    @discardableResult
    public func remove(
        _ key: String, by rule: ResultTTLPolicy, of tenant: String? = nil
    ) async throws(RedisError) -> Bool {
        let reply = try await redis.run(
            ResultScripts.removeOfRule, keys: ResultScripts.keys(of: key), arguments: [.string(rule.name)])
        guard let storedAt = reply.string else { return false }
        await accounts?.remove(key, storedAt, in: Self.quota(of: tenant))
        return true
    }

    /// Records that jobs have used these results, for LRU eviction. Redis is updated about a second later. Without a
    /// quota this does nothing.
    public func used(_ keys: some Sequence<String>, of tenant: String?) {
        accounts?.uses.recordAccess(keys, in: Self.quota(of: tenant))
    }

    /// Removes the least recently used results of a tenant until the rest is within these limits.
    ///
    /// Only results that were stored while a quota was set are considered.
    /// - Returns: the usage that was removed and the usage that is left.
    /// - Throws: ``RedisError``. Results that were removed before the error are gone.
    public func trim(
        _ tenant: String?, to budget: Budget
    ) async throws(RedisError) -> (removed: QuotaUsage, left: QuotaUsage) {
        try await QuotaStore(redis).trim(Self.quota(of: tenant), to: budget)
    }

    /// The name of a tenant's quota. Results without a tenant share one.
    static func quota(of tenant: String?) -> String { "budget:\(tenant ?? "")" }

    /// Writes pending uses to Redis. Call it before the client is closed.
    public func close() async { await accounts?.uses.close() }

    /// Creates a secret key for a result that can be read only once.
    public static func handOffKey(for key: ResultKey) -> String {
        "halcyon:{\(key.sourceHash)}\(handOffMark)\(String.randomHexadecimal())"
    }

    private static let handOffMark = ":handoff:"

    /// The maximum is a hundred years, because larger numbers approach the limits of Redis' arithmetic.
    private static func milliseconds(_ lifetime: Double) -> Int {
        Int((min(lifetime, 3_155_760_000) * 1000).rounded(.up))
    }
}

extension Cost {
    /// Creates the cost of a result: the bytes of its file, without metadata and key.
    init(_ facts: ResultMetadata) {
        self.init(bytes: facts.bytes, pixels: facts.width * facts.height * (facts.frames ?? 1))
    }
}

extension ResultCache {
    /// The life of a stored result, by the Redis clock.
    public struct StoredLife: Hashable, Sendable {
        /// The expiry in milliseconds since 1970.
        public var expiresAtMilliseconds: Int64
        /// The time of storing, in the same unit.
        public var storedAtMilliseconds: Int64
        /// The ``ResultTTLPolicy/name`` of the policy that determined the expiry.
        public var rule: String

        /// The expiry in seconds since 1970.
        public var expiresAt: Double { Double(expiresAtMilliseconds) / 1000 }

        /// Creates the life of a result.
        public init(expiresAtMilliseconds: Int64, storedAtMilliseconds: Int64, rule: String) {
            self.expiresAtMilliseconds = expiresAtMilliseconds
            self.storedAtMilliseconds = storedAtMilliseconds
            self.rule = rule
        }
    }

    /// A result with its remaining TTL.
    public struct Stored: Sendable {
        /// The metadata of the result.
        public let facts: ResultMetadata
        /// The remaining TTL according to the Redis clock, independent of the reader's clock.
        public var remainingMilliseconds: Int64
        /// The file; nil if it was not requested.
        public let body: [UInt8]?
        /// The ``CacheTag`` of each tag of the jobs that have made or hit the result; nil if they are too many.
        public let tags: [String]?
    }

    /// Reads a result in one round trip; nil if it is missing, or was written by a version whose format cannot be read.
    /// This does not count as a use, and a one-time result is not removed.
    /// - Throws: ``RedisError``.
    public func stored(_ key: String, withBody: Bool) async throws(RedisError) -> Stored? {
        let fields: [RedisArgument] = ["HMGET", .string(key), "facts", "tags"]
        let replies = try await redis.pipeline([withBody ? fields + ["body"] : fields, ["PTTL", .string(key)]])
        for case .error(let error) in replies { throw error }
        // Metadata of another version may be unreadable.
        guard replies.count == 2, let values = replies[0].array, values.count == (withBody ? 3 : 2),
            let json = values[0].bytes, let facts = try? ResultMetadata(json: json), let remaining = replies[1].integer
        else { return nil }
        let body = withBody ? values[2].bytes : nil
        if withBody && body == nil { return nil }
        let tags = values[1].string ?? ""
        return Stored(
            facts: facts, remainingMilliseconds: Int64(max(0, remaining)), body: body,
            tags: tags == ResultTags.overflow ? nil : tags.split(separator: "\n").map(String.init))
    }

    /// True if a text has the format of ``handOffKey(for:)``.
    public static func isHandOffKey(_ text: String) -> Bool {
        // A result key with the mark instead of the colon between its parts.
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 4, parts[2].elementsEqual("handoff".utf8) else { return false }
        return ResultKey("\(Substring(parts[0])):\(Substring(parts[1])):\(Substring(parts[3]))") != nil
    }
}

extension ResultCache {
    /// A result that was found in the cache.
    public struct Found: Hashable, Sendable {
        /// The metadata of the result.
        public let facts: ResultMetadata
        /// The expiry in milliseconds since 1970, as stored in Redis.
        let expiresAtMilliseconds: Double
        /// The time of storing, in the same unit; nil if it was not requested or an older version stored the result.
        let storedAt: Double?

        /// The expiry in seconds since 1970.
        public var expiresAt: Double { expiresAtMilliseconds / 1000 }

        init(facts: ResultMetadata, expiresAtMilliseconds: Double, storedAt: Double?) {
            self.facts = facts
            self.expiresAtMilliseconds = expiresAtMilliseconds
            self.storedAt = storedAt
        }

        /// Decodes a reply with the fields `facts`, `expiresAt` and optionally `storedAt`.
        init?(_ reply: RedisValue) {
            // Metadata of another version may be unreadable.
            guard let fields = reply.array, fields.count >= 2, let json = fields[0].bytes,
                let expiresAt = fields[1].string.flatMap(Double.init), let facts = try? ResultMetadata(json: json)
            else { return nil }
            self.init(
                facts: facts, expiresAtMilliseconds: expiresAt,
                storedAt: fields.count > 2 ? fields[2].string.flatMap(Double.init) : nil)
        }
    }
}

/// The Redis keys for one source of one tenant, all in one hash slot.
struct SourceKeys: Hashable, Sendable {
    /// `halcyon:{…}:`
    private let stem: String

    /// Creates the keys of a source.
    /// - Parameter sourceHash: the hash tag between the braces.
    init(sourceHash: String) { stem = "halcyon:{\(sourceHash)}:" }

    /// Creates the keys of the source of a result.
    /// - Parameter key: the key of a result, `halcyon:{…}:…`, or of a one-time result.
    init(of key: String) {
        let end = key.utf8.firstIndex(of: UInt8(ascii: "}")) ?? key.endIndex
        stem = "\(key[..<end])}:"
    }

    /// The index of the names of all results by their expiry.
    var results: String { stem + "results" }
    /// The cached source.
    var source: String { stem + "source" }
    /// The archive copy of the source.
    var copy: String { stem + "copy" }
    /// The fencing tokens of work in flight, and the minimum tokens for storing.
    var fences: String { LeaseName(product: source).fences }
    /// The key of the result with this name.
    func result(_ name: String) -> String { stem + name }
}
