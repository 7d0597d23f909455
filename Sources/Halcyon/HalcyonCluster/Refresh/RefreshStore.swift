import HalcyonModel
import Hashing
import Redis

/// The jobs whose results are refreshed, in Redis, shared by all workers with the same topic prefix.
///
/// The results are in Redis as well, so that nothing needs a refresh when this data is lost. All keys have the same
/// hash tag: a sorted set of ids by the time at which they are due, a hash of the jobs, a set of ids that were asked for
/// since the last refresh, the number of jobs by tenant, and the number of refreshes in the current second.
public struct RefreshStore: Sendable {
    private let redis: RedisClient
    private let keys: [RedisArgument]
    private let options: RefreshOptions

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - redis: The client.
    ///   - topics: The topics of the cluster, whose prefix is part of the keys.
    ///   - options: The budgets.
    public init(_ redis: RedisClient, topics: Topics, options: RefreshOptions = RefreshOptions()) {
        self.redis = redis
        self.options = options
        keys = ["due", "jobs", "asked", "tenants", "rate"].map {
            .string("halcyon:refresh:{\(topics.prefix)}:\($0)")
        }
    }

    /// Returns the id under which the results with these keys are refreshed: 32 hexadecimal digits.
    public static func id(of keys: [ResultKey]) -> String {
        String(SHA256.hash(keys.map(\.description).joined(separator: " ")).description.prefix(32))
    }

    /// A job that is due.
    public struct Entry: Sendable {
        /// The id of its results.
        public let id: String
        /// The message of the job to submit.
        public let message: [UInt8]
    }

    /// The jobs that are due, and those that were forgotten.
    public struct Claim: Sendable {
        /// The jobs that are to be submitted now.
        public var entries: [Entry] = []
        /// The number of jobs that nobody has asked for since their last refresh.
        public var forgotten = 0
    }

    /// Records that results were asked for.
    /// - Returns: False if they are not refreshed yet.
    /// - Throws: `RedisError`.
    public func ask(for id: String) async throws(RedisError) -> Bool {
        try await redis.run(Self.asking, keys: keys, arguments: [.string(id)]).integer == 1
    }

    /// Adds a job.
    /// - Parameters:
    ///   - id: The id of its results.
    ///   - due: The time of the refresh, in milliseconds since 1970.
    ///   - message: The message of the job to submit.
    ///   - tenant: The tenant that owns the results; nil for none.
    /// - Returns: False if a budget is exceeded.
    /// - Throws: `RedisError`.
    public func add(
        _ id: String, due: Int64, _ message: [UInt8], of tenant: String?
    ) async throws(RedisError) -> Bool {
        try await redis.run(
            Self.adding, keys: keys,
            arguments: [
                .string(id), .integer(Int(due)), .bytes(Array("\(tenant ?? "")\n".utf8) + message),
                .string(tenant ?? ""), .integer(options.maximumJobs), .integer(options.maximumJobsPerTenant),
            ]
        ).integer == 1
    }

    /// Sets the time of the next refresh of a job, unless the job was removed.
    /// - Parameter asked: True if the results count as asked for since their last refresh.
    /// - Throws: `RedisError`.
    public func schedule(_ id: String, due: Int64, asked: Bool = false) async throws(RedisError) {
        _ = try await redis.run(
            Self.scheduling, keys: keys, arguments: [.string(id), .integer(Int(due)), .integer(asked ? 1 : 0)])
    }

    /// Removes a job.
    /// - Throws: `RedisError`.
    public func remove(_ id: String) async throws(RedisError) {
        _ = try await redis.run(Self.removing, keys: keys, arguments: [.string(id)])
    }

    /// Removes all jobs of a tenant. All jobs are looked at, in steps.
    /// - Throws: `RedisError`. Jobs that were removed before the error are gone.
    public func removeAll(of tenant: String) async throws(RedisError) {
        let owner = Array("\(tenant)\n".utf8)
        try await redis.scan(["HSCAN", keys[1]]) { (page) async throws(RedisError) in
            for place in stride(from: 0, to: page.count - 1, by: 2)
            where page[place + 1].bytes?.starts(with: owner) == true {
                if let id = page[place].string { try await remove(id) }
            }
        }
    }

    /// Claims jobs that are due and were asked for, within the budget of refreshes per second. Those that were not asked
    /// for are removed. A claimed job whose refresh does not end within ``RefreshOptions/claimTimeout`` is due again.
    /// - Parameters:
    ///   - now: The time, in milliseconds since 1970.
    ///   - most: The maximum number of jobs.
    /// - Throws: `RedisError`.
    public func claim(at now: Int64, most: Int) async throws(RedisError) -> Claim {
        let reply =
            try await redis.run(
                Self.claiming, keys: keys,
                arguments: [
                    .integer(Int(now)), .integer(Int(now) + Int(RefreshOptions.claimTimeout * 1000)), .integer(most),
                    .integer(options.rate),
                ]
            ).array ?? []
        var claim = Claim(forgotten: reply.first?.integer ?? 0)
        for index in stride(from: 1, to: reply.count - 1, by: 2) {
            guard let id = reply[index].string, let value = reply[index + 1].bytes,
                let end = value.firstIndex(of: UInt8(ascii: "\n"))
            else { continue }
            claim.entries.append(Entry(id: id, message: Array(value[(end + 1)...])))
        }
        return claim
    }

    // KEYS of all scripts: due, jobs, asked, tenants, rate. ARGV[1] of most: the id.
    private static let asking = RedisScript(
        """
        if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
        redis.call('SADD', KEYS[3], ARGV[1])
        return 1
        """)

    // ARGV: id, due, value, tenant, maximum number of jobs, and of one tenant.
    private static let adding = RedisScript(
        """
        if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
            if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5]) then return 0 end
            if tonumber(redis.call('HGET', KEYS[4], ARGV[4]) or 0) >= tonumber(ARGV[6]) then return 0 end
            redis.call('HINCRBY', KEYS[4], ARGV[4], 1)
        end
        redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
        redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
        return 1
        """)

    // ARGV: id, due, 1 if asked for.
    private static let scheduling = RedisScript(
        """
        if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
        redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
        if ARGV[3] == '1' then redis.call('SADD', KEYS[3], ARGV[1]) end
        return 1
        """)

    private static let remove = """
        local function remove(id)
            redis.call('ZREM', KEYS[1], id)
            redis.call('SREM', KEYS[3], id)
            local value = redis.call('HGET', KEYS[2], id)
            redis.call('HDEL', KEYS[2], id)
            local tenant = value and string.match(value, '^[^\\n]*') or ''
            if redis.call('HINCRBY', KEYS[4], tenant, -1) <= 0 then redis.call('HDEL', KEYS[4], tenant) end
        end

        """

    private static let removing = RedisScript(
        remove + """
            if redis.call('ZSCORE', KEYS[1], ARGV[1]) then remove(ARGV[1]) end
            return 1
            """)

    // ARGV: now, end of the claim, maximum number of jobs, maximum number per second.
    private static let claiming = RedisScript(
        remove + """
            local reply = {0}
            for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
                local value = redis.call('HGET', KEYS[2], id)
                if redis.call('SREM', KEYS[3], id) == 0 or not value then
                    remove(id)
                    reply[1] = reply[1] + 1
                else
                    local count = redis.call('INCR', KEYS[5])
                    if count == 1 then redis.call('PEXPIRE', KEYS[5], 1000) end
                    if count > tonumber(ARGV[4]) then
                        redis.call('SADD', KEYS[3], id)
                        return reply
                    end
                    redis.call('ZADD', KEYS[1], ARGV[2], id)
                    reply[#reply + 1] = id
                    reply[#reply + 1] = value
                end
            end
            return reply
            """)
}

/// The budgets and times of refreshes.
public struct RefreshOptions: Sendable {
    /// The maximum number of jobs whose results are refreshed in the cluster; 0 to refresh none.
    public var maximumJobs = 10_000
    /// The maximum number of such jobs of one tenant.
    public var maximumJobsPerTenant = 1000
    /// The maximum number of refreshes per second in the cluster.
    public var rate = 10
    /// The time before the expiry of a result at which it is refreshed, in seconds. At most a fifth of its TTL is used.
    public var lead = 30.0

    /// The minimum time between two refreshes of the same results, in seconds. Results that expire earlier are not
    /// refreshed.
    public var minimumInterval = 10.0
    /// The time between two looks for jobs that are due.
    public var interval = Duration.seconds(1)

    /// The time after which a refresh that has not ended is repeated, in seconds.
    static let claimTimeout = 600.0
    /// The maximum size of a message, in bytes. Larger jobs are not refreshed.
    public static let maximumBytes = 16 << 10

    /// Creates options with default values.
    public init() {}

    /// Returns the time of the next refresh, in milliseconds since 1970; nil if the results live too briefly.
    /// - Parameters:
    ///   - rule: The rule of the job.
    ///   - expiresAt: The expiry of the first result that expires, in seconds since 1970.
    ///   - now: The current time, in seconds since 1970.
    public func due(_ rule: Job.Refresh, expiresAt: Double, now: Double) -> Int64? {
        let life = expiresAt - now
        let beforeExpiry = life - min(lead, life / 5)
        let wait =
            switch rule {
            case .beforeExpiry: beforeExpiry
            case .every(let seconds): min(seconds, beforeExpiry)
            }
        return wait >= minimumInterval ? Int64(((now + wait) * 1000).rounded()) : nil
    }
}

/// The header of a job that refreshes results: their id in the ``RefreshStore``. It stays the same in retry topics.
public enum RefreshHeader {
    /// The name of the header.
    public static let name = "halcyon-refresh"
}
