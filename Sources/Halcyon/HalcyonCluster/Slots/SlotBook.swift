import HalcyonModel
import Redis
import Telemetry

/// Which generation of each slot is the newest, in Redis and for all workers together. Jobs without a slot have nothing to do with it.
///
/// With Redis away no job is superseded: all of them are done, and nothing is lost but work.
public struct SlotBook: Sendable {
    private let redis: RedisClient
    private let errors: ToleratedErrors

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient, errors: ToleratedErrors = .silent) {
        self.redis = redis
        self.errors = errors
    }

    /// The channel on which all workers hear of newer generations.
    static let channel = "halcyon:slots"

    /// Enters a job's generation, and tells all workers when that is newer than what was known.
    /// - Returns: the higher generation that the slot is for; nil when it is for this one.
    public func claim(_ claim: SlotClaim) async -> Int64? {
        let reply = await errors.tolerating {
            try await redis.run(
                Self.claiming, keys: [.string(claim.key)],
                arguments: [.integer(Int(claim.generation)), .string(Self.channel)])
        }
        return Self.higher(reply, than: claim)
    }

    /// Looks whether a slot is still for a job's generation.
    /// - Returns: the higher one that it is for; nil when there is none.
    public func newer(than claim: SlotClaim) async -> Int64? {
        Self.higher(await errors.tolerating { try await redis.send("GET", .string(claim.key)) }, than: claim)
    }

    private static func higher(_ reply: RedisValue?, than claim: SlotClaim) -> Int64? {
        reply?.integer.flatMap { $0 > Int(claim.generation) ? Int64($0) : nil }
    }

    /// Hears of newer generations until the task is cancelled or the subscriber closed. What is said while the connection is away is
    /// missed: who must be sure asks ``newer(than:)`` before the end.
    /// - Parameter told: called with a slot's key and its generation.
    public static func listen(
        _ subscriber: RedisSubscriber, _ told: @Sendable (_ key: String, _ generation: Int64) -> Void
    ) async {
        await subscriber.follow(channel, keeping: 4096) { message in
            if let (key, generation) = rise(message.payload) { told(key, generation) }
        }
    }

    /// `generation key`.
    private static func rise(_ payload: [UInt8]) -> (String, Int64)? {
        guard let space = payload.firstIndex(of: UInt8(ascii: " ")),
            let generation = Int64(String(decoding: payload[..<space], as: UTF8.self))
        else { return nil }
        return (String(decoding: payload[space...].dropFirst(), as: UTF8.self), generation)
    }

    // A slot that nobody has claimed for a day is free. Generations end at 2^53, and so are whole numbers to Lua too.
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

/// A job's claim to a slot.
public struct SlotClaim: Hashable, Sendable {
    /// Where the slot's generation lies in Redis.
    public let key: String
    /// The job's.
    public let generation: Int64

    /// - Parameter generation: the job's, 0 to 2^53.
    public init(_ name: String, generation: Int64, of tenant: String?) {
        key = "\(Self.prefix)\(tenant ?? "")/\(name)}"
        self.generation = generation
    }

    /// Of a job that was written at `submitted`, in seconds since 1970; nil when it has no slot.
    public init?(_ job: Job, submitted: Double) {
        guard let slot = job.slot else { return nil }
        self.init(slot.name, generation: slot.generation(submitted: submitted), of: job.tenant)
    }

    static let prefix = "halcyon:slot:{"
}
