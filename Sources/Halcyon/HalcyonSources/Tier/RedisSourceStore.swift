import Redis

/// Entries in Redis, which all workers share.
///
/// An entry is a hash: `body`, `about` (JSON) and `lifetime` (milliseconds). How old it is follows from the lifetime and from
/// what Redis says is left of it, so that no two clocks are compared.
struct RedisSourceStore: SourceStore {
    private let redis: RedisClient
    private let maximumBytes: Int

    /// The client stays its maker's, who closes it.
    /// - Parameter maximumBytes: of the largest body that is kept.
    init(_ redis: RedisClient, maximumBytes: Int) {
        self.redis = redis
        self.maximumBytes = maximumBytes
    }

    func find(_ key: String) async throws -> FoundEntry? {
        let replies = try await redis.pipeline([
            ["HMGET", .string(key), "about", "lifetime", "body"], ["PTTL", .string(key)],
        ])
        guard let fields = replies[0].array, fields.count == 3, let description = fields[0].bytes,
            let lifetime = fields[1].string.flatMap(Double.init), let body = fields[2].bytes,
            let left = replies[1].integer, left >= 0, let entry = SourceEntry(description: description, body: body)
        else { return nil }
        return FoundEntry(entry: entry, residentTime: max(0, lifetime - Double(left)) / 1000)
    }

    func keep(_ entry: SourceEntry, as key: String, for seconds: Double) async throws {
        guard entry.body.count <= maximumBytes else { return try await remove(key) }
        let lifetime = Int((seconds * 1000).rounded(.up))
        _ = try await redis.run(
            Self.keeping, keys: [.string(key)],
            arguments: [.integer(lifetime), .bytes(entry.description), .bytes(entry.body)])
    }

    func remove(_ key: String) async throws { _ = try await redis.send(["UNLINK", .string(key)]) }

    // HSET comes first: once a script has written, Redis lets it go on past maxmemory.
    private static let keeping = RedisScript(
        """
        redis.call('HSET', KEYS[1], 'about', ARGV[2], 'body', ARGV[3], 'lifetime', ARGV[1])
        return redis.call('PEXPIRE', KEYS[1], ARGV[1])
        """)
}
