import HalcyonModel
import Redis
import Telemetry

/// The newest generation of each display slot, in Redis, shared by all workers. Jobs without a display slot do not use
/// it.
///
/// While Redis is unavailable no job is superseded. All jobs are processed, and the only loss is unnecessary work.
public struct SupersedeStore: Sendable {
    private let redis: RedisClient
    private let errors: ToleratedErrors

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient, errors: ToleratedErrors = .silent) {
        self.redis = redis
        self.errors = errors
    }

    /// The channel on which workers are notified of newer generations.
    static let channel = "halcyon:slots"

    /// Records a job's generation, and notifies all workers if it is newer than the known one.
    /// - Returns: the newer generation of the display slot; nil if the job's generation is the newest.
    public func claim(_ claim: SupersedeToken) async -> Int64? {
        let reply = await errors.tolerating {
            try await redis.run(
                Self.claiming, keys: [.string(claim.key)],
                arguments: [.integer(Int(claim.generation)), .string(Self.channel)])
        }
        return Self.higher(reply, than: claim)
    }

    /// Checks for a newer generation of a job's display slot.
    /// - Returns: the newer generation; nil if there is none.
    public func newer(than claim: SupersedeToken) async -> Int64? {
        Self.higher(await errors.tolerating { try await redis.send("GET", .string(claim.key)) }, than: claim)
    }

    private static func higher(_ reply: RedisValue?, than claim: SupersedeToken) -> Int64? {
        reply?.integer.flatMap { $0 > Int(claim.generation) ? Int64($0) : nil }
    }

    /// Receives newer generations until the task is cancelled or the subscriber is closed. Messages are lost while the
    /// connection is down, so call ``newer(than:)`` before a job ends.
    /// - Parameter told: the callback, which receives the key and the generation of a display slot.
    public static func listen(
        _ subscriber: RedisSubscriber, _ told: @Sendable (_ key: String, _ generation: Int64) -> Void
    ) async {
        await subscriber.follow(channel, keeping: 4096) { message in
            if let (key, generation) = rise(message.payload) { told(key, generation) }
        }
    }

    /// Parses `generation key`.
    private static func rise(_ payload: [UInt8]) -> (String, Int64)? {
        guard let space = payload.firstIndex(of: UInt8(ascii: " ")),
            let generation = Int64(String(decoding: payload[..<space], as: UTF8.self))
        else { return nil }
        return (String(decoding: payload[space...].dropFirst(), as: UTF8.self), generation)
    }

    // A display slot expires a day after the last claim. Generations are at most 2^53, the limit of exact integers in
    // Lua.
    private static let claiming = RedisScript(
        """
        local known = tonumber(redis.call('GET', KEYS[1]))
        local own = tonumber(ARGV[1])
        if known and known > own then return string.format('%.0f', known) end
        redis.call('SET', KEYS[1], ARGV[1], 'PX', 86400000)
        if known and known < own then redis.call('PUBLISH', ARGV[2], ARGV[1] .. ' ' .. KEYS[1]) end
        return ARGV[1]
        """)
}

/// A job's claim to a display slot.
public struct SupersedeToken: Hashable, Sendable {
    /// The Redis key of the display slot.
    public let key: String
    /// The generation of the job.
    public let generation: Int64

    /// Creates a claim.
    /// - Parameter generation: the generation of the job, from 0 to 2^53.
    public init(_ name: String, generation: Int64, of tenant: String?) {
        key = "\(Self.prefix)\(tenant ?? "")/\(name)}"
        self.generation = generation
    }

    /// Creates the claim of a job that was submitted at `submitted`, in seconds since 1970; nil if it has no display
    /// slot.
    public init?(_ job: Job, submitted: Double) {
        guard let slot = job.slot else { return nil }
        self.init(slot.name, generation: slot.generation(submitted: submitted), of: job.tenant)
    }

    static let prefix = "halcyon:slot:{"
}
