import Formats
import JSON
import Redis

/// The registry of running workers in Redis. Each worker refreshes its entry every few seconds. Entries expire by the
/// Redis clock.
///
/// The registry is one hash, so that it is in one hash slot of a Redis Cluster and is read atomically. It is used for
/// display, and by a starting worker to detect that another one has just crashed. While Redis is unavailable there is
/// no registry.
public struct WorkerRegistry: Sendable {
    private let redis: RedisClient

    /// The maximum number of entries returned.
    private static let most = 1000

    /// Creates a registry that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// Adds or refreshes the entry of a worker.
    /// - Parameter life: the TTL of the entry.
    /// - Throws: `RedisError`.
    public func register(_ entry: WorkerInfo, for life: Duration) async throws(RedisError) {
        var writer = JSONWriter(capacity: 256)
        writer.value(entry)
        _ = try await redis.run(
            Self.signing, keys: [Self.key],
            arguments: [.string(entry.id), .bytes(writer.bytes), .integer(Int(life / .milliseconds(1)))])
    }

    /// Removes the entry of a worker.
    /// - Throws: `RedisError`.
    public func deregister(_ id: String) async throws(RedisError) {
        _ = try await redis.send("HDEL", Self.key, .string(id))
    }

    /// The entries of all workers as JSON objects, ordered by id.
    /// - Throws: `RedisError`.
    public func entries() async throws(RedisError) -> [[UInt8]] {
        let fields = try await redis.run(Self.reading, keys: [Self.key]).array ?? []
        var entries: [(id: String, json: [UInt8])] = []
        for index in stride(from: 0, to: fields.count - 2, by: 3) {
            // Entries of other versions are returned if they are valid JSON.
            guard let id = fields[index].string, let json = fields[index + 1].bytes,
                (try? JSON.parse(json, maximumSize: 16 << 10)) != nil
            else { continue }
            entries.append((id, json))
        }
        return entries.sorted { $0.id < $1.id }.prefix(Self.most).map(\.json)
    }

    /// The expiry of each worker's entry, in milliseconds since 1970 by the Redis clock, by id. It grows with each
    /// refresh.
    /// - Throws: `RedisError`.
    public func expiries() async throws(RedisError) -> [String: Int] {
        let fields = try await redis.run(Self.reading, keys: [Self.key]).array ?? []
        var expiries: [String: Int] = [:]
        for index in stride(from: 0, to: fields.count - 2, by: 3) {
            if let id = fields[index].string, let expiry = fields[index + 2].integer { expiries[id] = expiry }
        }
        return expiries
    }

    private static let key: RedisArgument = "halcyon:{workers}"

    // A field is `EXPIRY JSON`, with the expiry in milliseconds since 1970.
    private static let signing = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + ARGV[3]) .. ARGV[2])
        if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        return 1
        """)

    private static let reading = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local fields = redis.call('HGETALL', KEYS[1])
        local found = {}
        for i = 1, #fields, 2 do
            local space = string.find(fields[i + 1], ' ', 1, true)
            local expiry = space and tonumber(string.sub(fields[i + 1], 1, space)) or 0
            if expiry > now then
                found[#found + 1] = fields[i]
                found[#found + 1] = string.sub(fields[i + 1], space + 1)
                found[#found + 1] = expiry
            else
                redis.call('HDEL', KEYS[1], fields[i])
            end
        end
        return found
        """)
}

/// The description of a worker in the registry. It contains no secrets, because every client that may read events can
/// see it.
public struct WorkerInfo: JSONWritable, Hashable, Sendable {
    /// The id, which is unique among all workers and new after each restart.
    public var id: String
    /// The name of the host.
    public var host: String
    /// The process id on the host.
    public var pid: Int32
    /// The version of Halcyon.
    public var version: String
    /// The start time in milliseconds since 1970.
    public var since: Int64
    /// The number of images that the worker renders concurrently.
    public var threads: Int
    /// The number of jobs in flight by lane. Retries are counted under `retry`.
    public var jobs: [String: Int]
    /// The number of jobs in flight of the busiest tenants, at most ``mostTenants``. Jobs without a tenant are not
    /// counted.
    public var tenants: [String: Int]
    /// The number of jobs that ended or were returned to the queue since the start.
    public var finished = 0
    /// The jobs that were finished per second, over the last ten heartbeats.
    public var rate = 0.0
    /// The resident memory of the process in bytes, in whole MiB; 0 if it is unknown.
    public var memory = 0

    /// The maximum number of tenants in a description.
    public static let mostTenants = 10

    /// Creates a description of a worker that has finished no job.
    public init(
        id: String, host: String, pid: Int32, version: String, since: Int64, threads: Int, jobs: [String: Int] = [:],
        tenants: [String: Int] = [:]
    ) {
        self.id = id
        self.host = host
        self.pid = pid
        self.version = version
        self.since = since
        self.threads = threads
        self.jobs = jobs
        self.tenants = tenants
    }

    /// Decodes an entry of the registry, also of other versions; returns nil if it has no id. Members that are missing
    /// are empty or 0.
    public init?(json: [UInt8]) {
        // Other versions may write something else.
        guard let root = try? JSON.parse(json, maximumSize: 16 << 10), let id = root.member("id")?.asString else {
            return nil
        }
        func counts(_ name: String) -> [String: Int] {
            var counts: [String: Int] = [:]
            // An object of other values has no counts.
            try? root.member(name)?.forEachMember { name, value in
                if let count = value.asInteger { counts[name.description] = Int(count) }
            }
            return counts
        }
        self.init(
            id: id, host: root.member("host")?.asString ?? "",
            pid: Int32(clamping: root.member("pid")?.asInteger ?? 0), version: root.member("version")?.asString ?? "",
            since: root.member("since")?.asString.flatMap { Timestamp(rfc3339: $0) }?.milliseconds ?? 0,
            threads: Int(root.member("threads")?.asInteger ?? 0), jobs: counts("jobs"), tenants: counts("tenants"))
        finished = Int(clamping: root.member("finished")?.asInteger ?? 0)
        rate = root.member("rate")?.asDouble ?? 0
        memory = Int(clamping: root.member("memory")?.asInteger ?? 0)
    }

    /// Returns the tenants with the most jobs, the busiest first. Those with as many jobs are in the order of their
    /// names.
    /// - Parameters:
    ///   - tenants: The number of jobs of each tenant.
    ///   - limit: The maximum number of tenants.
    public static func busiest(_ tenants: [String: Int], limit: Int = mostTenants) -> [(tenant: String, jobs: Int)] {
        let busy = tenants.filter { $0.value > 0 }.map { (tenant: $0.key, jobs: $0.value) }
        let sorted = busy.sorted { first, second in
            first.jobs == second.jobs ? first.tenant < second.tenant : first.jobs > second.jobs
        }
        return Array(sorted.prefix(limit))
    }

    /// Writes the description as a JSON object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("host", host)
            writer.member("pid", Int64(pid))
            writer.member("version", version)
            writer.member("since", Timestamp(milliseconds: since).rfc3339)
            writer.member("threads", Int64(threads))
            writer.name("jobs")
            writer.object { writer in
                for (lane, count) in jobs.sorted(by: { $0.key < $1.key }) { writer.member(lane, Int64(count)) }
            }
            writer.member("finished", Int64(finished))
            writer.member("rate", rate)
            writer.member("memory", Int64(memory))
            if tenants.isEmpty { return }
            writer.name("tenants")
            writer.object { writer in
                for (tenant, count) in Self.busiest(tenants) { writer.member(tenant, Int64(count)) }
            }
        }
    }
}
