import Formats
import JSON
import Redis

/// Which workers there are, in Redis: each signs the roll every few seconds, and is off it when it has not for a while, by Redis' own clock.
///
/// The roll is one hash, so that a cluster of Redis has all of it in one place and reading it is one step. It is for people to look at, and for a worker
/// that starts, to see whether another one has just died; with Redis away there is none.
public struct WorkerRoll: Sendable {
    private let redis: RedisClient

    /// More than these are not read.
    private static let most = 1000

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// Enters a worker, or what is new of it.
    /// - Parameter life: after which it is off the roll unless it signs again.
    /// - Throws: `RedisError`.
    public func sign(_ entry: WorkerEntry, for life: Duration) async throws(RedisError) {
        var writer = JSONWriter(capacity: 256)
        writer.value(entry)
        _ = try await redis.run(
            Self.signing, keys: [Self.key],
            arguments: [.string(entry.id), .bytes(writer.bytes), .integer(Int(life / .milliseconds(1)))])
    }

    /// Takes a worker off it.
    /// - Throws: `RedisError`.
    public func leave(_ id: String) async throws(RedisError) {
        _ = try await redis.send("HDEL", Self.key, .string(id))
    }

    /// What the workers say of themselves, each one JSON object, by their ids.
    /// - Throws: `RedisError`.
    public func entries() async throws(RedisError) -> [[UInt8]] {
        let fields = try await redis.run(Self.reading, keys: [Self.key]).array ?? []
        var entries: [(id: String, json: [UInt8])] = []
        for index in stride(from: 0, to: fields.count - 2, by: 3) {
            // What another release has written is handed on, if it is JSON.
            guard let id = fields[index].string, let json = fields[index + 1].bytes,
                (try? JSON.parse(json, maximumSize: 16 << 10)) != nil
            else { continue }
            entries.append((id, json))
        }
        return entries.sorted { $0.id < $1.id }.prefix(Self.most).map(\.json)
    }

    /// The expiry of each worker's entry, in milliseconds since 1970 by Redis' clock, by their ids: later whenever it signs.
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

    // A field is `EXPIRY JSON`, in milliseconds since 1970.
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

/// What a worker says of itself. Nothing of it is secret: who may follow events may see it.
public struct WorkerEntry: JSONWritable, Hashable, Sendable {
    /// Its own among all workers: a restarted one has another.
    public var id: String
    /// The name of its machine.
    public var host: String
    /// Its process there.
    public var pid: Int32
    /// Which Halcyon it is.
    public var version: String
    /// When it started, in milliseconds since 1970.
    public var since: Int64
    /// Images that it renders at once.
    public var threads: Int
    /// Jobs under way, by lane; those that came back through a topic of retries are under `retry`.
    public var jobs: [String: Int]

    /// Takes the values as they are.
    public init(
        id: String, host: String, pid: Int32, version: String, since: Int64, threads: Int, jobs: [String: Int] = [:]
    ) {
        self.id = id
        self.host = host
        self.pid = pid
        self.version = version
        self.since = since
        self.threads = threads
        self.jobs = jobs
    }

    /// As one JSON object.
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
        }
    }
}
