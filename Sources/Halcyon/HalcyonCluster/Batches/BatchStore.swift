import Formats
import HalcyonCoding
import HalcyonModel
import Redis

/// The options of batches.
public struct BatchOptions: Sendable {
    /// The seconds for which a completed batch is stored, and a batch without progress is waited for.
    public var retention = 604_800.0
    /// The maximum number of failures stored for a batch.
    public var mostFailures = 10_000
    /// The minimum time between two progress events of a batch; zero for none.
    public var progressInterval = Duration.seconds(1)
    /// The time without progress after which the ends of a batch are counted again, doubled with each repetition.
    public var recountAfter = Duration.seconds(10)
    /// The maximum number of jobs that a worker lists for a batch.
    public var mostListed = 1_000_000
    /// The number of jobs that are listed with one request, up to 1000.
    public var jobsPerPage = 1000
    /// The maximum number of lists that are read at the same time.
    public var lists = 4
    /// The time for which a server that does not respond is asked again, before the list ends.
    public var listPatience = Duration.seconds(600)

    /// Creates options with default values.
    public init() {}
}

/// The end of a job of a batch, as its event tells.
public struct BatchEnd: Hashable, Sendable {
    /// The batch, and the index of the job in it.
    let membership: BatchMembership
    /// The id of the job.
    let job: String
    /// The kind of its terminal event.
    let outcome: Event.Kind
    /// The failure, if the job failed.
    let failure: BatchFailure?
    /// The time of the event, in milliseconds since 1970.
    let time: Int64

    /// Creates the end of a job.
    /// - Parameters:
    ///   - membership: the batch, and the index of the job in it.
    ///   - job: the id of the job.
    ///   - outcome: the kind of its terminal event.
    ///   - failure: the failure, if the job failed.
    ///   - time: the time of the event, in milliseconds since 1970.
    public init(
        _ membership: BatchMembership, job: String, outcome: Event.Kind, failure: BatchFailure?, time: Int64
    ) {
        self.membership = membership
        self.job = job
        self.outcome = outcome
        self.failure = failure
        self.time = time
    }
}

/// The state of a batch after ends were counted.
struct BatchProgress: Sendable {
    let batch: Batch
    /// True if Redis has all counts since the creation of the batch.
    let isOpened: Bool
    /// True if all jobs have ended, and the batch is not completed.
    let isDone: Bool
    /// True if a progress event is due.
    let isProgressDue: Bool
}

/// The counts of batches in Redis, shared by all workers and gateways.
///
/// They are derived from the topic of events and can be rebuilt from it. Open batches are listed in the sorted set
/// `halcyon:batches` by the time of their creation, like completed ones for as long as they are stored.
public struct BatchStore: Sendable {
    let redis: RedisClient
    /// The milliseconds by which events may be older than the creation of their batch, as it is known.
    static let clockTolerance: Int64 = 600_000
    /// The milliseconds for which a completed batch is stored.
    let retention: Int64
    /// The maximum number of failures stored for a batch.
    let mostFailures: Int

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient, _ options: BatchOptions) {
        self.redis = redis
        retention = Int64(options.retention * 1000)
        mostFailures = options.mostFailures
    }

    /// Counts ends of jobs of one batch, each once, however often it is counted.
    func count(_ ends: [BatchEnd], of batch: String, interval: Duration) async throws(RedisError) -> BatchProgress {
        let bitmaps = Set(ends.compactMap(\.membership.index).map { $0 / BatchScripts.indicesPerKey }).sorted()
        let keys =
            [Self.key(of: batch), Self.key(of: batch, "ids"), Self.key(of: batch, "failures")]
            + bitmaps.map { Self.key(of: batch, "ended:\($0)") }
        var arguments: [RedisArgument] = [
            .integer(Int(Timestamp.now.milliseconds)), .integer(Int(interval / .milliseconds(1))),
            .integer(Int(2 * retention)), .integer(mostFailures), .integer(Int(ends.map(\.time).min() ?? 0)),
            .integer(bitmaps.count),
        ]
        arguments += bitmaps.map { .integer($0) }
        let places = Dictionary(uniqueKeysWithValues: bitmaps.enumerated().map { ($1, $0 + 4) })
        for end in ends {
            if let index = end.membership.index {
                arguments.append(.integer(places[index / BatchScripts.indicesPerKey] ?? 0))
                arguments.append(.integer(index % BatchScripts.indicesPerKey))
            } else {
                arguments.append("0")
                arguments.append(.string(end.job))
            }
            arguments.append(.string(end.outcome.rawValue))
            arguments.append(end.failure.map { .bytes($0.json) } ?? "")
        }
        let reply = try await redis.run(BatchScripts.count, keys: keys, arguments: arguments).array ?? []
        guard reply.count == 4 else { throw RedisError(.protocolError, "unexpected reply to a count") }
        return BatchProgress(
            batch: Batch(batch, reply[3]) ?? Batch(id: batch, created: ends.map(\.time).min() ?? 0),
            isOpened: reply[0].integer == 1, isDone: reply[1].integer == 1, isProgressDue: reply[2].integer == 1)
    }

    /// Lists a batch before the workers have handled the message that opens it, unless its id is in use.
    /// - Returns: the batch with this id, or nil if only counts of it are known, as after a loss of Redis; and true if
    ///   the id was not in use.
    /// - Throws: ``RedisError``.
    public func announce(_ batch: Batch) async throws(RedisError) -> (batch: Batch?, isNew: Bool) {
        var fields = Self.facts(of: batch)
        if let tenant = batch.tenant { fields += ["tenant", .string(tenant)] }
        if let owner = batch.owner { fields += ["owner", .string(owner)] }
        let reply = try await redis.run(
            BatchScripts.announce, keys: [Self.key(of: batch.id)],
            arguments: [.integer(Int(batch.created)), .integer(Int(2 * retention))] + fields)
        let isNew = reply.array?.first?.integer == 1
        if isNew { _ = try await redis.send(["ZADD", Self.list, .integer(Int(batch.created)), .string(batch.id)]) }
        return (reply.array?.last.flatMap { Batch(batch.id, $0) }, isNew)
    }

    /// Records that a batch exists, and lists it.
    /// - Parameter recount: the token of ``beginRecount(of:token:)``, if all its ends were counted again.
    @discardableResult
    func open(_ batch: Batch, after recount: String = "") async throws(RedisError) -> RecountOutcome {
        let reply = try await redis.run(
            BatchScripts.open, keys: [Self.key(of: batch.id)],
            arguments: [
                .integer(Int(batch.created)), .string(batch.tenant ?? ""), .string(batch.owner ?? ""), .string(recount),
                .integer(Int(2 * retention)),
            ])
        _ = try await redis.send(["ZADD", Self.list, .integer(Int(batch.created)), .string(batch.id)])
        return reply.integer == 1 ? .opened : reply.integer == 2 ? .superseded : .lost
    }

    /// Marks the counts of a batch as incomplete.
    func beginRecount(of batch: String, token: String) async throws(RedisError) {
        let replies = try await redis.pipeline([
            ["HSET", Self.key(of: batch), "recount", .string(token)], ["HDEL", Self.key(of: batch), "opened"],
        ])
        for case .error(let error) in replies { throw error }
    }

    /// Records what messages tell about a batch, unless it is known.
    /// - Returns: the batch; nil if Redis does not know it.
    @discardableResult func note(_ batch: Batch) async throws(RedisError) -> (batch: Batch?, isOpened: Bool) {
        let reply = try await redis.run(
            BatchScripts.note, keys: [Self.key(of: batch.id)], arguments: Self.facts(of: batch))
        return (Batch(batch.id, reply), reply.fields["opened"] != nil)
    }

    /// The fields that come from messages, and not from counts.
    private static func facts(of batch: Batch) -> [RedisArgument] {
        var fields: [RedisArgument] = []
        if let total = batch.total { fields += ["total", .integer(total)] }
        if let moment = batch.cancelled { fields += ["cancelledAt", .integer(Int(moment))] }
        if let prefix = batch.prefix { fields += ["prefix", .string(prefix)] }
        if let preset = batch.preset { fields += ["preset", .string(preset)] }
        if batch.submitted > 0 { fields += ["submitted", .integer(batch.submitted)] }
        if let error = batch.error {
            fields += ["errorCode", .string(error.code), "errorMessage", .string(error.message)]
        }
        return fields
    }

    /// Records that a batch is completed. It expires after the retention.
    func complete(_ batch: Batch) async throws(RedisError) {
        let last = min(max(batch.total ?? 0, batch.counts.ended), Batch.highestIndex + 1) / BatchScripts.indicesPerKey
        let keys = [Self.key(of: batch.id), Self.key(of: batch.id, "ids"), Self.key(of: batch.id, "failures")]
        _ = try await redis.run(
            BatchScripts.complete, keys: keys + (0...last).map { Self.key(of: batch.id, "ended:\($0)") },
            arguments: [
                .integer(Int(batch.completed ?? Timestamp.now.milliseconds)), .integer(Int(retention)),
            ] + Self.facts(of: batch) + [
                "created", .integer(Int(batch.created)), "total", .integer(batch.total ?? batch.counts.ended), "ended",
                .integer(batch.counts.ended), "ready", .integer(batch.counts.ready), "failed",
                .integer(batch.counts.failed), "cancelled", .integer(batch.counts.cancelled), "superseded",
                .integer(batch.counts.superseded),
            ])
        _ = try await redis.send([
            "ZREMRANGEBYSCORE", Self.list, "-inf", .integer(Int(Timestamp.now.milliseconds - 10 * retention)),
        ])
    }

    /// Returns a batch; nil if it is unknown.
    /// - Throws: ``RedisError``.
    public func batch(_ id: String) async throws(RedisError) -> Batch? {
        try await state(of: id).batch
    }

    /// Returns a batch, or nil if it is unknown; whether Redis has all its counts; and whether it knows who owns the
    /// batch. It does not if it has only counts, as after a loss of Redis.
    /// - Throws: ``RedisError``.
    public func state(
        of id: String
    ) async throws(RedisError) -> (batch: Batch?, isOpened: Bool, isOwnerKnown: Bool) {
        let reply = try await redis.send(["HGETALL", Self.key(of: id)])
        let fields = reply.fields
        return (Batch(id, reply), fields["opened"] != nil, fields["announced"] ?? fields["created"] != nil)
    }

    /// Returns batches, the newest first.
    /// - Parameter count: the maximum number of batches.
    /// - Throws: ``RedisError``.
    public func newest(_ count: Int) async throws(RedisError) -> [Batch] {
        let ids = try await redis.send(["ZREVRANGE", Self.list, 0, .integer(count - 1)]).array ?? []
        var batches: [Batch] = []
        for id in ids.compactMap(\.string) {
            if let batch = try await batch(id) {
                batches.append(batch)
            } else {
                _ = try await redis.send(["ZREM", Self.list, .string(id)])
            }
        }
        return batches
    }

    /// Returns failures of a batch in the order of their ends.
    /// - Parameters:
    ///   - start: the number of failures to skip.
    ///   - count: the maximum number of failures.
    /// - Throws: ``RedisError``.
    public func failures(of id: String, from start: Int, count: Int) async throws(RedisError) -> [BatchFailure] {
        let reply = try await redis.send([
            "LRANGE", Self.key(of: id, "failures"), .integer(start), .integer(start + count - 1),
        ])
        return (reply.array ?? []).compactMap { $0.bytes.flatMap { BatchFailure(json: $0) } }
    }

    private static let list: RedisArgument = "halcyon:batches"

    private static func key(of batch: String, _ part: String? = nil) -> RedisArgument {
        .string("halcyon:batch:{\(batch)}" + (part.map { ":\($0)" } ?? ""))
    }
}

extension Batch {
    /// Decodes the reply to HGETALL; returns nil if the key does not exist.
    fileprivate init?(_ id: String, _ reply: RedisValue) {
        let fields = reply.fields
        guard !fields.isEmpty else { return nil }
        func number(_ name: String) -> Int? { fields[name].flatMap { Int($0) } }
        self.init(
            id: id, tenant: fields["tenant"], owner: fields["owner"],
            created: Int64(number("created") ?? number("announced") ?? number("counted") ?? 0))
        total = number("total")
        prefix = fields["prefix"]
        preset = fields["preset"]
        submitted = number("submitted") ?? 0
        error = fields["errorCode"].map { BatchError(code: $0, message: fields["errorMessage"] ?? "") }
        counts.ready = number("ready") ?? 0
        counts.failed = number("failed") ?? 0
        counts.cancelled = number("cancelled") ?? 0
        counts.superseded = number("superseded") ?? 0
        cancelled = number("cancelledAt").map { Int64($0) }
        completed = number("completedAt").map { Int64($0) }
    }
}

extension RedisValue {
    /// The fields of a hash.
    fileprivate var fields: [String: String] {
        let words = (array ?? []).map { $0.string ?? "" }
        let pairs = stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) }
        return Dictionary(pairs) { first, _ in first }
    }
}

/// The atomic operations on a batch. Its keys are in one hash slot:
///
/// | key | contents |
/// |---|---|
/// | `halcyon:batch:{ID}` | a hash: counts by outcome, `ended` (their sum), `created`, `total`, and the fields below |
/// | `…:ended:N` | a bitmap of the indices from N × ``indicesPerKey`` that have ended |
/// | `…:ids` | a set of the ids of jobs without an index that have ended |
/// | `…:failures` | a list of failures, in the order of their ends, as JSON |
///
/// `opened` in the hash says that it has counted all ends since the batch was created. The hash has a field for each of
/// the other keys (`ids`, `b0`, `b1`, …). A key that is missing or left over shows that Redis has lost or evicted
/// something. All keys are reset then, `opened` is missing, and the ends are counted again from the topic of events.
enum BatchScripts {
    /// The number of jobs whose ends one bitmap records.
    static let indicesPerKey = 16_384

    /// Counts ends of jobs, each once.
    ///
    /// KEYS: the hash, ids, failures, then the bitmaps. ARGV: the time, the interval of progress events and the TTL of
    /// the keys, all in milliseconds, the maximum number of failures, the time of the earliest event, the number of
    /// bitmaps and their numbers, then for each end: the index of the bitmap in KEYS and the bit, or `0` and the id;
    /// the outcome; the failure, or an empty text.
    ///
    /// Returns an array of `isOpened`, `isDone`, `isProgressDue` and the fields of the hash.
    static let count = RedisScript(
        """
        local batch, ids, failures = KEYS[1], KEYS[2], KEYS[3]
        local now, interval, ttl, most, earliest =
          tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
        local bitmaps = tonumber(ARGV[6])
        local function check(key, field)
          local isKnown, exists = redis.call('HEXISTS', batch, field) == 1, redis.call('EXISTS', key) == 1
          if exists and not isKnown then redis.call('DEL', key) end
          if isKnown and not exists then
            for _, name in ipairs(redis.call('HKEYS', batch)) do
              if string.match(name, '^b%d+$') then redis.call('DEL', batch .. ':ended:' .. string.sub(name, 2)) end
            end
            redis.call('DEL', batch, ids, failures)
          end
        end
        if redis.call('HEXISTS', batch, 'completedAt') == 0 then
          check(ids, 'ids')
          for i = 1, bitmaps do check(KEYS[3 + i], 'b' .. ARGV[6 + i]) end
          local ended = 0
          for i = 7 + bitmaps, #ARGV, 4 do
            local isNew
            if ARGV[i] == '0' then
              isNew = redis.call('SADD', ids, ARGV[i + 1]) == 1
              redis.call('HSET', batch, 'ids', 1)
            else
              isNew = redis.call('SETBIT', KEYS[tonumber(ARGV[i])], ARGV[i + 1], 1) == 0
            end
            if isNew then
              ended = ended + 1
              local count = redis.call('HINCRBY', batch, ARGV[i + 2], 1)
              if ARGV[i + 3] ~= '' and count <= most then redis.call('RPUSH', failures, ARGV[i + 3]) end
            end
          end
          for i = 1, bitmaps do redis.call('HSET', batch, 'b' .. ARGV[6 + i], 1) end
          if ended > 0 then
            redis.call('HINCRBY', batch, 'ended', ended)
            redis.call('HSET', batch, 'counted', ARGV[1])
          end
          for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
        end
        local known = redis.call('HMGET', batch, 'opened', 'created', 'ended', 'total', 'completedAt', 'progress')
        local isOpened = known[5] or known[1] and tonumber(known[2] or earliest) <= earliest + \(BatchStore.clockTolerance)
        local isDone = known[4] and not known[5] and tonumber(known[3] or 0) >= tonumber(known[4])
        local isDue = interval > 0 and not known[5] and not isDone and now - tonumber(known[6] or 0) >= interval
        if isDue then redis.call('HSET', batch, 'progress', ARGV[1]) end
        return {isOpened and 1 or 0, isDone and 1 or 0, isDue and 1 or 0, redis.call('HGETALL', batch)}
        """)

    /// Enters the time of creation and other fields of a batch that does not exist. KEYS: the hash. ARGV: the time and
    /// the TTL in milliseconds, then names and values of the fields.
    ///
    /// Returns an array of 1 if it did not exist, otherwise 0, and the fields of the hash; none if it has only counts.
    static let announce = RedisScript(
        """
        local batch, isNew = KEYS[1], redis.call('EXISTS', KEYS[1]) == 0
        if isNew then
          redis.call('HSET', batch, 'announced', ARGV[1], unpack(ARGV, 3))
          redis.call('PEXPIRE', batch, ARGV[2])
        end
        local isKnown = redis.call('HEXISTS', batch, 'announced') + redis.call('HEXISTS', batch, 'created') > 0
        return {isNew and 1 or 0, isKnown and redis.call('HGETALL', batch) or {}}
        """)

    /// Marks a batch as opened, once. KEYS: the hash. ARGV: created, tenant and owner (empty for none), the token of a
    /// recount (empty for none), the TTL in milliseconds. After a recount it has an effect only if the hash still has
    /// the token: Redis has not lost the counts meanwhile. A key that has announced the batch after its creation does
    /// not own it.
    ///
    /// Returns 1 if the batch is opened, 2 if the hash has the token of a later recount, and 0 if it has none.
    static let open = RedisScript(
        """
        local batch = KEYS[1]
        local token, announced = redis.call('HGET', batch, 'recount'), redis.call('HGET', batch, 'announced')
        if ARGV[4] ~= '' and token ~= ARGV[4] then return token and 2 or 0 end
        if ARGV[4] == '' and redis.call('HEXISTS', batch, 'opened') == 1 then return 1 end
        redis.call('HSET', batch, 'opened', 1, 'created', ARGV[1])
        redis.call('HDEL', batch, 'recount')
        if ARGV[2] ~= '' then redis.call('HSET', batch, 'tenant', ARGV[2]) end
        if tonumber(announced or 0) > tonumber(ARGV[1]) then redis.call('HDEL', batch, 'owner') end
        if ARGV[3] ~= '' then redis.call('HSET', batch, 'owner', ARGV[3]) end
        if redis.call('PTTL', batch) < 0 then redis.call('PEXPIRE', batch, ARGV[5]) end
        return 1
        """)

    /// Sets fields of a batch that is not completed, unless they have a value; `submitted` in any case. KEYS: the hash.
    /// ARGV: names and values.
    static let note = RedisScript(
        """
        for i = 1, #ARGV, 2 do
          redis.call(ARGV[i] == 'submitted' and 'HSET' or 'HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
        end
        return redis.call('HGETALL', KEYS[1])
        """)

    /// Marks a batch as completed and deletes its bitmaps and ids. KEYS: the hash, ids, failures, then the bitmaps.
    /// ARGV: the time, the TTL, both in milliseconds, then names and values of the final counts.
    static let complete = RedisScript(
        """
        redis.call('HSETNX', KEYS[1], 'completedAt', ARGV[1])
        for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        redis.call('PEXPIRE', KEYS[3], ARGV[2])
        redis.call('DEL', KEYS[2], unpack(KEYS, 4))
        return 1
        """)
}
