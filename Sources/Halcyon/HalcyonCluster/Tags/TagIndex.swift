import Formats
import HalcyonCoding
import HalcyonCoordination
import HalcyonModel
import HalcyonResults
import Redis

/// The index of results by tag, in Redis. Only jobs with tags use it.
///
/// A tag of a tenant has two keys in one hash slot:
///
/// | key | contents |
/// |---|---|
/// | `halcyon:tag:{tenant/tag}` | the keys of its results by their expiry in ms since 1970 |
/// | `halcyon:tag:{tenant/tag}:purged` | the time of the last purge in µs since 1970 |
///
/// The first key expires with the last result, the second after ten minutes.
///
/// A tenant has no index, only the time of its last purge in `halcyon:tenant:{tenant}:purged`.
///
/// Tags and results are in different hash slots and cannot change atomically. A result is added to the index after it
/// was stored, and a job reads the time of the last purge when it starts. Therefore either the purge finds the result,
/// or the job notices the purge.
public struct TagIndex: Sendable {
    private let redis: RedisClient

    /// Creates an index that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// The time of the last purge of each tag, and of the tenant.
    public struct TagVersions: Hashable, Sendable {
        fileprivate let purged: [[UInt8]: String]
        fileprivate let tenant: String?
    }

    /// Reads the last purges of tags and of the tenant, before work on a result starts.
    /// - Throws: ``RedisError``.
    public func marks(_ tags: [String], of tenant: String?) async throws(RedisError) -> TagVersions {
        let names = tags.map { Names($0, of: tenant).purged } + (tenant.map { [Self.purged(tenant: $0)] } ?? [])
        let replies = try await redis.pipeline(names.map { ["GET", .string($0)] })
        for case .error(let error) in replies { throw error }
        var purged: [[UInt8]: String] = [:]
        for (tag, reply) in zip(tags, replies) { purged[Array(tag.utf8)] = reply.string }
        return TagVersions(purged: purged, tenant: tenant == nil ? nil : replies.last?.string)
    }

    /// Adds a result to its tags, and the tags to the result.
    /// - Parameters:
    ///   - expiresAt: the expiry in seconds since 1970 by the Redis clock. If the result is in the index already, or
    ///     its life has been extended, the later expiry applies.
    ///   - marks: the last purges when the work started; nil for a result that was stored before.
    /// - Returns: true if no tag has been purged since, nor the tenant. Otherwise the result must not be retained.
    /// - Throws: ``RedisError``. The result may have been added to some of the tags.
    @discardableResult
    public func index(
        _ key: String, until expiresAt: Double, under tags: [String], of tenant: String?,
        since marks: TagVersions? = nil
    ) async throws(RedisError) -> Bool {
        let end = Int((expiresAt * 1000).rounded(.up))
        let replies = try await enter(key, until: end, under: tags, of: tenant)
        var isGood = true
        for (tag, reply) in zip(tags, replies) {
            if let marks, let purged = reply.string, purged != marks.purged[Array(tag.utf8)] { isGood = false }
        }
        if let marks, let tenant {
            let purged = try await redis.send("GET", .string(Self.purged(tenant: tenant))).string
            if let purged, purged != marks.tenant { isGood = false }
        }
        if !tags.isEmpty {
            // For responses with the result. A result that was purged in the meantime stays absent.
            let stored = try await redis.run(
                ResultScripts.addTags, keys: [.string(key)], arguments: [.string(ResultTags.text(tags, of: tenant))])
            // A job that extended its life in the meantime did not find these tags.
            if let later = stored.string.flatMap({ Int($0) }), later > end {
                _ = try await enter(key, until: later, under: tags, of: tenant)
            }
        }
        return isGood
    }

    /// Extends the entries of a result whose life was extended, under the tags of the jobs that have made or hit it.
    /// Tags of which only a digest is known keep their entries, and so do all tags of a result with too many of them
    /// (``ResultTags``).
    /// - Parameter expiresAt: the new expiry in seconds since 1970 by the Redis clock.
    /// - Returns: the tags.
    /// - Throws: ``RedisError``. Some of the entries may have been extended.
    public func extend(
        _ key: String, until expiresAt: Double, of tenant: String?
    ) async throws(RedisError) -> [String] {
        let text = try await redis.send("HGET", .string(key), "tags").string ?? ""
        let tags = ResultTags.tags(in: text, of: tenant)
        _ = try await enter(key, until: Int((expiresAt * 1000).rounded(.up)), under: tags, of: tenant)
        return tags
    }

    /// Adds a result to tags, or extends its entries.
    /// - Parameter end: the expiry in milliseconds since 1970 by the Redis clock.
    /// - Returns: the time of the last purge of each tag.
    private func enter(
        _ key: String, until end: Int, under tags: [String], of tenant: String?
    ) async throws(RedisError) -> [RedisValue] {
        let replies = try await redis.run(
            Self.entering,
            onEach: tags.map { tag -> (keys: [RedisArgument], arguments: [RedisArgument]) in
                let names = Names(tag, of: tenant)
                return ([.string(names.results), .string(names.purged)], [.string(key), .integer(end + Self.slack)])
            })
        for case .error(let error) in replies { throw error }
        return replies
    }

    /// Marks a tenant as purged.
    /// - Throws: ``RedisError``.
    func purge(tenant: String) async throws(RedisError) {
        _ = try await redis.run(
            Self.marking, keys: [.string(Self.purged(tenant: tenant))], arguments: [.integer(FencingTokens.memory)])
    }

    private static func purged(tenant: String) -> String { "halcyon:tenant:{\(tenant)}:purged" }

    /// Marks a tag as purged and returns the keys of its results.
    /// - Throws: ``RedisError``.
    func purge(_ tag: String, of tenant: String?) async throws(RedisError) -> [String] {
        let names = Names(tag, of: tenant)
        let reply = try await redis.run(
            Self.purging, keys: [.string(names.results), .string(names.purged)],
            arguments: [.integer(FencingTokens.memory)])
        return reply.array?.compactMap(\.string) ?? []
    }

    /// Removes keys from a tag.
    /// - Throws: ``RedisError``.
    func remove(_ keys: [String], from tag: String, of tenant: String?) async throws(RedisError) {
        _ = try await redis.send(
            ["ZREM", .string(Names(tag, of: tenant).results)] + keys.map { .string($0) })
    }

    /// The milliseconds by which entries outlive their results, because the clocks of cluster nodes may differ.
    private static let slack = 60_000

    private struct Names {
        let results: String
        var purged: String { "\(results):purged" }

        init(_ tag: String, of tenant: String?) { results = "halcyon:tag:{\(tenant ?? "")/\(tag)}" }
    }

    // ZADD precedes all other writes, because Redis allows a script that has written to exceed maxmemory.
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

    private static let purging = RedisScript(
        mark + """
            mark(KEYS[2])
            return redis.call('ZRANGE', KEYS[1], 0, -1)
            """)

    private static let marking = RedisScript(mark + "mark(KEYS[1])")

    // UNLINK comes first for the same reason.
    private static let mark = """
        local function mark(key)
          local time = redis.call('TIME')
          local now = time[1] * 1000000 + time[2]
          local known = tonumber(redis.call('GET', key)) or 0
          redis.call('UNLINK', key)
          redis.call('SET', key, string.format('%.0f', math.max(now, known + 1)), 'PX', ARGV[1])
        end

        """
}

/// The tags by which shared caches, such as those of CDNs, index responses and purge them. A response has the tags of
/// its result, and a purge has the tags of the responses that it makes invalid:
///
/// | purged | tag |
/// |---|---|
/// | a source | `source-` and the hash of the source |
/// | a result | `key-` and the two hashes of the key |
/// | a tag | the tag, after the tenant and `/` if there is one; or `tag-` and its digest |
/// | a tenant | `tenant-` and its digest |
///
/// Tags consist of letters, digits and the characters `-._~%/:`, so that they need no escapes in HTTP headers, JSON and
/// XML. All other bytes are percent-encoded. A value.
public enum CacheTag {
    /// The maximum length, which is that of CloudFront. The digest of a tag is used in place of a longer one.
    public static let longest = 256

    /// Returns the tags of all responses with a result.
    public static func all(of key: ResultKey) -> [String] { [of(key), of(source: key.sourceHash)] }

    /// Returns the tags of the responses that a purge makes invalid.
    /// - Parameter hasStore: True if there is a result store. The results that it restores have digests in place of
    ///   tags.
    public static func all(of purge: Purge, hasStore: Bool) -> [String] {
        switch purge.target {
        case .source(let source): return [of(source: SourceRequest(source, tenant: purge.tenant).sourceHash)]
        case .key(let key): return [of(key)]
        case .tag(let tag):
            let tags = [of(tag, of: purge.tenant), of(digest: TagDigest.of(tag, tenant: purge.tenant))]
            return hasStore && tags[0] != tags[1] ? tags : [tags[0]]
        case .tenant(let tenant): return [of(tenant: tenant)]
        }
    }

    /// Returns the tags of a job's tags and of its tenant.
    public static func all(of tags: [String], of tenant: String?) -> [String] {
        tags.map { of($0, of: tenant) } + (tenant.map { [of(tenant: $0)] } ?? [])
    }

    /// Returns the tag of a digest of a result store.
    static func of(digest: String) -> String { "tag-\(digest)" }

    /// Returns the tag of all responses with results of a tenant.
    static func of(tenant: String) -> String { "tenant-\(TagDigest.of(tenant: tenant))" }

    private static func of(source hash: String) -> String { "source-\(hash)" }

    private static func of(_ key: ResultKey) -> String { "key-\(key.sourceHash)-\(key.variantHash)" }

    private static func of(_ tag: String, of tenant: String?) -> String {
        let text = scope(of: tenant) + PercentEncoding.encode(tag, keeping: ":")
        return text.utf8.count <= longest ? text : of(digest: TagDigest.of(tag, tenant: tenant))
    }

    /// Returns the tag of jobs that a tag of responses stands for; nil for that of the tenant, and for a digest of a
    /// tenant's tag. Without a tenant, a digest is returned as if it were a tag.
    static func tag(_ text: Substring, of tenant: String?) -> String? {
        let scope = scope(of: tenant)
        return text.hasPrefix(scope) ? PercentEncoding.decode(text.dropFirst(scope.count)) : nil
    }

    private static func scope(of tenant: String?) -> String {
        tenant.map { PercentEncoding.encode($0, keeping: ":") + "/" } ?? ""
    }
}
