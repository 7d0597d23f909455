import HalcyonModel
import HalcyonWire
import JSON
import Redis

/// Results in Redis, each for as long as its freshness says.
///
/// A result is a hash: `body` (the file), `facts` (JSON, ``ResultFacts``) and `expiresAt` (milliseconds since 1970). Expiry is
/// absolute and by Redis' own clock, so that workers whose clocks differ agree on it.
public struct ResultTier: Sendable {
    private let redis: RedisClient

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient) {
        self.redis = redis
    }

    /// A result that is there.
    public struct Found: Hashable, Sendable {
        /// What is known of it.
        public let facts: ResultFacts
        /// When it goes, in seconds since 1970.
        public let expiresAt: Double
    }

    /// Looks a result up without reading its bytes; nil when it is not there, or when another version wrote what this one cannot
    /// read.
    /// - Throws: ``RedisError``.
    public func find(_ key: String) async throws(RedisError) -> Found? {
        Found(try await redis.send(["HMGET", .string(key), "facts", "expiresAt"]))
    }

    /// Looks several up at once, in their order.
    /// - Throws: ``RedisError``.
    public func find(_ keys: [String]) async throws(RedisError) -> [Found?] {
        try await redis.pipeline(keys.map { ["HMGET", .string($0), "facts", "expiresAt"] }).map { Found($0) }
    }

    /// The bytes of several results, and what is known of them, in their order.
    /// - Throws: ``RedisError``.
    public func read(_ keys: [String]) async throws(RedisError) -> [(body: [UInt8], result: Found)?] {
        try await redis.pipeline(keys.map { ["HMGET", .string($0), "facts", "expiresAt", "body"] }).map { reply in
            guard let result = Found(reply), let body = reply.array?.last?.bytes else { return nil }
            return (body, result)
        }
    }

    /// The bytes of a result and what is known of it; nil when it is not there.
    /// - Throws: ``RedisError``.
    public func read(_ key: String) async throws(RedisError) -> (body: [UInt8], facts: ResultFacts)? {
        let isHandOff = key.contains(Self.handOffMark)
        let commands: [[RedisArgument]] = [["HMGET", .string(key), "body", "facts"]]
        let replies = try await redis.pipeline(isHandOff ? commands + [["DEL", .string(key)]] : commands)
        guard let fields = replies.first?.array, fields.count == 2, let body = fields[0].bytes,
            let json = fields[1].bytes,
            let facts = try? ResultFacts(json: json)
        else { return nil }
        return (body, facts)
    }

    /// Stores a result in place of what was there.
    /// - Parameter lifetime: seconds from now, above 0.
    /// - Returns: when it will go, in seconds since 1970.
    /// - Throws: ``RedisError``; code `server("OOM")` when Redis' memory is full.
    public func store(
        _ body: [UInt8], _ facts: ResultFacts, as key: String, for lifetime: Double
    ) async throws(RedisError) -> Double {
        // A hundred years: above that Redis' own arithmetic is near its end.
        let milliseconds = Int((min(lifetime, 3_155_760_000) * 1000).rounded(.up))
        var json = JSONWriter(capacity: 256)
        json.value(facts)
        let reply = try await redis.run(
            Self.storing, keys: [.string(key)], arguments: [.integer(milliseconds), .bytes(body), .bytes(json.bytes)])
        guard let expiresAt = reply.string.flatMap(Double.init) else {
            throw RedisError(.protocolError, "storing a result gave no time: \(reply)")
        }
        return expiresAt / 1000
    }

    /// A key for a result that only who is told the key may read, and only once.
    public static func handOffKey(for key: ResultKey) -> String {
        let secret = (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        return "halcyon:{\(key.sourceHash)}\(handOffMark)\(secret.joined())"
    }

    private static let handOffMark = ":handoff:"

    // All fields are written, so nothing of an older result stays. HSET comes first: once a script has written, Redis lets it go on
    // past maxmemory.
    private static let storing = RedisScript(
        """
        local now = redis.call('TIME')
        local expires = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[1])
        redis.call('HSET', KEYS[1], 'body', ARGV[2], 'facts', ARGV[3], 'expiresAt', expires)
        redis.call('PEXPIREAT', KEYS[1], expires)
        return expires
        """)
}

extension ResultTier.Found {
    /// From a reply that begins with the fields `facts` and `expiresAt`.
    fileprivate init?(_ reply: RedisValue) {
        guard let fields = reply.array, fields.count >= 2, let json = fields[0].bytes,
            let milliseconds = fields[1].string.flatMap(Double.init), let facts = try? ResultFacts(json: json)
        else { return nil }
        self.init(facts: facts, expiresAt: milliseconds / 1000)
    }
}
