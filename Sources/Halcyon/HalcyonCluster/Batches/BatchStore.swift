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
    /// - Returns: the batch with this id.
    public func announce(_ batch: Batch) async throws(RedisError) -> Batch {
        let reply = try await redis.run(
            BatchScripts.announce, keys: [Self.key(of: batch.id)],
            arguments: [
                .integer(Int(batch.created)), .string(batch.tenant ?? ""), .string(batch.owner ?? ""),
                .integer(Int(2 * retention)),
            ])
        _ = try await redis.send(["ZADD", Self.list, "NX", .integer(Int(batch.created)), .string(batch.id)])
        return Batch(batch.id, reply) ?? batch
    }

    /// Records that a batch exists, and lists it.
    /// - Parameter recount: the token of ``beginRecount(of:token:)``, if all its ends were counted again.
    /// - Returns: false if Redis has lost the counts since the recount began.
    func open(_ batch: Batch, after recount: String = "") async throws(RedisError) -> Bool {
        let reply = try await redis.run(
            BatchScripts.open, keys: [Self.key(of: batch.id)],
            arguments: [
                .integer(Int(batch.created)), .string(batch.tenant ?? ""), .string(batch.owner ?? ""), .string(recount),
                .integer(Int(2 * retention)),
            ])
        _ = try await redis.send(["ZADD", Self.list, .integer(Int(batch.created)), .string(batch.id)])
        return reply.integer == 1
    }

    /// Marks the counts of a batch as incomplete.
    func beginRecount(of batch: String, token: String) async throws(RedisError) {
        let replies = try await redis.pipeline([
            ["HSET", Self.key(of: batch), "recount", .string(token)], ["HDEL", Self.key(of: batch), "opened"],
        ])
        for case .error(let error) in replies { throw error }
    }

    /// Records the number of jobs or the time of cancellation, once.
    /// - Returns: the batch; nil if Redis does not know it.
    @discardableResult func note(
        _ batch: String, total: Int? = nil, cancelled: Int64? = nil
    ) async throws(RedisError) -> (batch: Batch?, isOpened: Bool) {
        var fields: [RedisArgument] = []
        if let total { fields += ["total", .integer(total)] }
        if let cancelled { fields += ["cancelledAt", .integer(Int(cancelled))] }
        let reply = try await redis.run(BatchScripts.note, keys: [Self.key(of: batch)], arguments: fields)
        return (Batch(batch, reply), reply.fields["opened"] != nil)
    }

    /// Records that a batch is completed. It expires after the retention.
    func complete(_ batch: Batch) async throws(RedisError) {
        let last = min(max(batch.total ?? 0, batch.counts.ended), Batch.highestIndex + 1) / BatchScripts.indicesPerKey
        let keys = [Self.key(of: batch.id), Self.key(of: batch.id, "ids"), Self.key(of: batch.id, "failures")]
        _ = try await redis.run(
            BatchScripts.complete, keys: keys + (0...last).map { Self.key(of: batch.id, "ended:\($0)") },
            arguments: [
                .integer(Int(batch.completed ?? Timestamp.now.milliseconds)), .integer(Int(retention)), "created",
                .integer(Int(batch.created)), "total", .integer(batch.total ?? batch.counts.ended), "ended",
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
        Batch(id, try await redis.send(["HGETALL", Self.key(of: id)]))
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
