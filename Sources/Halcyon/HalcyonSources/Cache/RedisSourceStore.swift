import HalcyonCoordination
import Redis
import Telemetry

/// Entries in Redis, which all workers share, perhaps all of them within a budget.
///
/// An entry is a hash: `body`, `about` (JSON), `lifetime` (milliseconds), `storedAt` (``StoringMoment``), `fence` (of the lease under which it was loaded) and
/// perhaps `trace` (the `traceparent` of what it was loaded for). How old it is follows from the lifetime and from what Redis says is left of it, so that no
/// two clocks are compared.
struct RedisSourceStore: SourceStore {
    private let redis: RedisClient
    private let maximumBytes: Int
    private let handOverBytes: Int
    private let accounts: Accounts?

    /// The client stays its maker's, who closes it.
    /// - Parameters:
    ///   - maximumBytes: of the largest body that is kept.
    ///   - handOverBytes: of the largest that is handed to other workers which wait for it.
    ///   - budget: bytes of all entries; nil for as many as there are, without books.
    ///   - errors: those of keeping the books.
    init(
        _ redis: RedisClient, maximumBytes: Int, handOverBytes: Int = 0, budget: Int? = nil,
        errors: ToleratedErrors = .silent
    ) {
        self.redis = redis
        self.maximumBytes = maximumBytes
        self.handOverBytes = handOverBytes
        accounts = budget.map { Accounts(redis, Budget(bytes: $0), errors: errors) }
    }

    /// All entries are in one book, whoever they were loaded for.
    private static let book = "source-budget"

    func find(_ key: String) async throws -> FoundEntry? {
        let replies = try await redis.pipeline([
            ["HMGET", .string(key), "about", "lifetime", "body", "fence", "trace"], ["PTTL", .string(key)],
        ])
        guard let fields = replies[0].array, fields.count == 5, let description = fields[0].bytes,
            let lifetime = fields[1].string.flatMap(Double.init), let body = fields[2].bytes,
            let left = replies[1].integer, left >= 0, let entry = SourceEntry(description: description, body: body)
        else { return nil }
        accounts?.uses.note(CollectionOfOne(key), in: Self.book)
        return FoundEntry(
            entry: entry, residentTime: max(0, lifetime - Double(left)) / 1000, version: fields[3].integer,
            loadedFor: fields[4].string.flatMap { TraceContext(traceparent: $0) })
    }

    func keep(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: KeepingTerms) async throws -> Bool {
        let (description, name) = (entry.description, LeaseName(product: key))
        let cost = Cost(bytes: entry.body.count + description.count)
        var (seconds, isKept) = (seconds, true)
        if entry.body.count > maximumBytes || accounts?.budget.canHold(cost) == false {
            guard entry.body.count <= handOverBytes, await terms.isWanted() else {
                try await remove(key)
                return false
            }
            (seconds, isKept) = (min(seconds, SourceStores.handOverTime), false)
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
        else { throw RedisError(.protocolError, "keeping a source gave no time: \(reply)") }
        if isKept {
            await accounts?.enter(
                Accounts.Entry(key: key, storedAt: storedAt, expiresAt: expiresAt, cost: cost), in: Self.book)
        }
        return true
    }

    func remove(_ key: String) async throws {
        let reply = try await redis.run(Self.removing, keys: [.string(key)])
        if let storedAt = reply.string { await accounts?.strike(key, storedAt, in: Self.book) }
    }

    /// Tells the book what is known of uses. Called at the end, before the client is closed.
    func close() async { await accounts?.uses.close() }

    // HSET is the first to write: once a script has written, Redis lets it go on past maxmemory.
    private static let keeping = RedisScript(
        Fencing.check + StoringMoment.lua + """
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
