import HalcyonCoordination
import Redis

/// Which results have which tags, in Redis. Only jobs with tags have to do with it.
///
/// A tag of a tenant is two keys in one slot:
///
/// | key | holds |
/// |---|---|
/// | `halcyon:tag:{tenant/tag}` | the keys of its results by their expiry, milliseconds since 1970; it goes with the last of them |
/// | `halcyon:tag:{tenant/tag}:purged` | when the tag was purged last, in microseconds since 1970, for ten minutes |
///
/// Tags and results lie in different slots, so nothing changes both at once. A result is entered when it has been stored, and its job
/// knows from its beginning when the tag had been purged last: so a purge either finds it, or the job finds the purge.
public struct TagIndex: Sendable {
    private let redis: RedisClient

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// When each tag had been purged last.
    public struct Marks: Hashable, Sendable {
        fileprivate let purged: [[UInt8]: String]
    }

    /// What is known of purges before the work for a result begins.
    /// - Throws: ``RedisError``.
    public func marks(_ tags: [String], of tenant: String?) async throws(RedisError) -> Marks {
        let replies = try await redis.pipeline(tags.map { ["GET", .string(Names($0, of: tenant).purged)] })
        var purged: [[UInt8]: String] = [:]
        for (tag, reply) in zip(tags, replies) {
            if case .error(let error) = reply { throw error }
            purged[Array(tag.utf8)] = reply.string
        }
        return Marks(purged: purged)
    }

    /// Enters a result under its tags.
    /// - Parameters:
    ///   - expiresAt: when it goes, in seconds since 1970 by Redis' clock; entered again, it keeps the later of the two moments.
    ///   - marks: what was known when the work for it began; nil for a result that was there.
    /// - Returns: whether none of the tags has been purged since. Otherwise the result must not be kept.
    /// - Throws: ``RedisError``; it may be entered under some of them.
    @discardableResult
    public func enter(
        _ key: String, until expiresAt: Double, under tags: [String], of tenant: String?, since marks: Marks? = nil
    ) async throws(RedisError) -> Bool {
        let moment = Int((expiresAt * 1000).rounded(.up)) + Self.slack
        var isGood = true
        for tag in tags {
            let names = Names(tag, of: tenant)
            let reply = try await redis.run(
                Self.entering, keys: [.string(names.results), .string(names.purged)],
                arguments: [.string(key), .integer(moment)])
            if let marks, let purged = reply.string, purged != marks.purged[Array(tag.utf8)] { isGood = false }
        }
        return isGood
    }

    /// The keys that have a tag, which is purged from now on.
    /// - Throws: ``RedisError``.
    func purge(_ tag: String, of tenant: String?) async throws(RedisError) -> [String] {
        let names = Names(tag, of: tenant)
        let reply = try await redis.run(
            Self.purging, keys: [.string(names.results), .string(names.purged)],
            arguments: [.integer(Fencing.memory)])
        return reply.array?.compactMap(\.string) ?? []
    }

    /// Takes keys out.
    /// - Throws: ``RedisError``.
    func remove(_ keys: [String], from tag: String, of tenant: String?) async throws(RedisError) {
        _ = try await redis.send(
            ["ZREM", .string(Names(tag, of: tenant).results)] + keys.map { .string($0) })
    }

    /// Milliseconds that entries outlive their results, for nodes of a cluster whose clocks differ.
    private static let slack = 60_000

    private struct Names {
        let results: String
        var purged: String { "\(results):purged" }

        init(_ tag: String, of tenant: String?) { results = "halcyon:tag:{\(tenant ?? "")/\(tag)}" }
    }

    // ZADD comes first: once a script has written, Redis lets it go on past maxmemory.
    private static let entering = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local known = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) or 0
        redis.call('ZADD', KEYS[1], string.format('%.0f', math.max(known, tonumber(ARGV[2]))), ARGV[1])
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
        local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
        if last then redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last)) end
        return redis.call('GET', KEYS[2])
        """)

    // UNLINK comes first for the same reason.
    private static let purging = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local known = tonumber(redis.call('GET', KEYS[2])) or 0
        redis.call('UNLINK', KEYS[2])
        redis.call('SET', KEYS[2], string.format('%.0f', math.max(now, known + 1)), 'PX', ARGV[1])
        return redis.call('ZRANGE', KEYS[1], 0, -1)
        """)
}
