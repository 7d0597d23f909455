import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis

/// A job in flight, as a worker describes it.
public struct JobDescription: Hashable, Sendable {
    /// The part of the work that a job is in.
    public enum Stage: String, CaseIterable, Sendable {
        /// The job waits for a permit, or for another job with the same result.
        case waiting
        /// The worker loads the source of the job.
        case loading
        /// The source is being rendered, and the results are being stored.
        case rendering
        /// The results exist. They are uploaded, indexed, or written to the result store.
        case delivering
        /// The job waits for its next attempt.
        case retrying
    }

    /// The id of the job.
    public var id: String
    /// The lane of the job.
    public var lane: Lane
    /// The tenant of the job; nil if it has none.
    public var tenant: String?
    /// The batch of the job; nil if it has none.
    public var batch: String?
    /// The source without credentials.
    public var source: String
    /// The part of the work that the job is in.
    public var stage: Stage
    /// The number of the current or last attempt, from 1.
    public var attempt: Int
    /// The time at which the job was written to its lane, in milliseconds since 1970.
    public var submitted: Int64
    /// The time since then in seconds, by the clock of the worker.
    public var age: Double
    /// The id of the worker.
    public var worker: String

    /// Creates a description from all values.
    /// - Parameters:
    ///   - id: The id of the job.
    ///   - lane: The lane of the job.
    ///   - tenant: The tenant of the job; nil if it has none.
    ///   - batch: The batch of the job; nil if it has none.
    ///   - source: The source without credentials. It is truncated to 1,000 characters.
    ///   - stage: The part of the work that the job is in.
    ///   - attempt: The number of the current or last attempt, from 1.
    ///   - submitted: The time at which the job was written to its lane, in milliseconds since 1970.
    ///   - age: The time since then in seconds.
    ///   - worker: The id of the worker.
    public init(
        id: String, lane: Lane, tenant: String? = nil, batch: String? = nil, source: String, stage: Stage,
        attempt: Int, submitted: Int64, age: Double, worker: String
    ) {
        self.id = id
        self.lane = lane
        self.tenant = tenant
        self.batch = batch
        self.source = String(source.prefix(1000))
        self.stage = stage
        self.attempt = attempt
        self.submitted = submitted
        self.age = age
        self.worker = worker
    }
}

extension JobDescription: JSONWritable {
    /// Writes the description as a JSON object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            writer.member("lane", lane.rawValue)
            writer.member("tenant", tenant)
            writer.member("batch", batch)
            writer.member("source", source)
            writer.member("stage", stage.rawValue)
            writer.member("attempt", attempt)
            writer.member("submitted", Timestamp(milliseconds: submitted).rfc3339)
            writer.member("age", age)
            writer.member("worker", worker)
        }
    }

    init(_ value: JSONElement) throws(JSONError) {
        guard let id = value.member("id")?.asString, let source = value.member("source")?.asString,
            let lane = value.member("lane")?.asString.flatMap(Lane.init(rawValue:)),
            let stage = value.member("stage")?.asString.flatMap(Stage.init(rawValue:)),
            let attempt = value.member("attempt")?.asInteger, let age = value.member("age")?.asDouble,
            let submitted = value.member("submitted")?.asString.flatMap(Timestamp.init(rfc3339:)),
            let worker = value.member("worker")?.asString
        else { throw JSONError(.invalid, "expected a job in flight") }
        self.init(
            id: id, lane: lane, tenant: value.member("tenant")?.asString, batch: value.member("batch")?.asString,
            source: source, stage: stage, attempt: Int(attempt), submitted: submitted.milliseconds, age: age,
            worker: worker)
    }
}

/// The jobs in flight on one or several workers.
public struct JobListing: Hashable, Sendable {
    /// The jobs, the oldest first.
    public var jobs: [JobDescription]
    /// The number of jobs in flight that match the request, including those that are not listed.
    public var total: Int
    /// The ids of the workers that have replied.
    public var workers: [String]
    /// The ids of the running workers that did not reply in time.
    public var missing: [String] = []

    /// Creates the list of one worker.
    /// - Parameters:
    ///   - jobs: The jobs, the oldest first.
    ///   - total: The number of jobs in flight that match the request.
    ///   - worker: The id of the worker.
    public init(jobs: [JobDescription], total: Int, worker: String) {
        self.jobs = jobs
        self.total = total
        workers = [worker]
    }

    /// Creates the list of several workers.
    /// - Parameters:
    ///   - lists: The lists of the workers that replied.
    ///   - limit: The maximum number of jobs.
    ///   - expected: The ids of the running workers.
    init(merging lists: [JobListing], limit: Int, expected: Set<String>) {
        jobs = Array(lists.flatMap(\.jobs).sorted { ($0.submitted, $0.id) < ($1.submitted, $1.id) }.prefix(limit))
        total = lists.reduce(0) { $0 + $1.total }
        workers = lists.flatMap(\.workers).sorted()
        missing = expected.subtracting(workers).sorted()
    }
}

extension JobListing: JSONWritable {
    /// Writes the list as a JSON object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("jobs", jobs)
            writer.member("total", total)
            writer.member("workers", workers)
            writer.member("missing", missing)
        }
    }

    /// Decodes the reply of a worker.
    init(json: [UInt8]) throws(JSONError) {
        let root = try JSON.parse(json, maximumSize: 16 << 20)
        guard let total = root.member("total")?.asInteger, let list = root.member("jobs") else {
            throw JSONError(.invalid, "expected a list of jobs")
        }
        var (jobs, workers): ([JobDescription], [String]) = ([], [])
        try list.forEachElement { element throws(JSONError) in jobs.append(try JobDescription(element)) }
        try root.member("workers")?.forEachElement { element throws(JSONError) in
            workers.append(try element.string())
        }
        self.jobs = jobs
        self.total = Int(total)
        self.workers = workers
    }
}

/// Lists the jobs in flight on all workers: broadcasts a request, and collects the replies from a list in Redis.
///
/// Workers do nothing for it until they are asked.
public struct JobLister: Sendable {
    private let redis: RedisClient
    private let control: ControlPublisher

    /// The age in milliseconds from which on workers ignore a request, and the TTL of the replies.
    public static let lifetime: Int64 = 60_000

    /// The interval at which new replies are read.
    private static let interval = Duration.milliseconds(20)

    /// Creates a lister that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - redis: The client.
    ///   - control: The publisher of control messages.
    public init(_ redis: RedisClient, _ control: ControlPublisher) {
        self.redis = redis
        self.control = control
    }

    /// Lists the oldest jobs in flight. It returns when all running workers have replied, or after the timeout.
    /// - Parameters:
    ///   - limit: The maximum number of jobs.
    ///   - tenant: The tenant whose jobs are listed; nil for all.
    ///   - lane: The lane whose jobs are listed; nil for all.
    ///   - timeout: The time to wait for replies.
    /// - Throws: `RedisError`, `KafkaError`, `CancellationError`.
    public func list(
        limit: Int = JobListRequest.standardLimit, tenant: String? = nil, lane: Lane? = nil,
        within timeout: Duration = .seconds(3)
    ) async throws -> JobListing {
        let running = Set(try await WorkerRegistry(redis).expiries().keys)
        let name = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 16) }.joined()
        let request = JobListRequest(reply: name, limit: limit, tenant: tenant, lane: lane)
        let end = ContinuousClock.now + timeout
        if !running.isEmpty { try await control.publish(.list(request)) }
        var lists: [JobListing] = []
        var read = 0
        while !running.isSubset(of: lists.flatMap(\.workers)) {
            let replies = try await redis.send("LRANGE", Self.key(request), .integer(read), -1).array ?? []
            read += replies.count
            // Replies of other versions are ignored, and their workers are missing.
            lists += replies.compactMap { reply in reply.bytes.flatMap { try? JobListing(json: $0) } }
            if .now >= end { break }
            if replies.isEmpty { try await Task.sleep(for: Self.interval) }
        }
        return JobListing(merging: lists, limit: limit, expected: running)
    }

    /// Replies to a request.
    /// - Parameters:
    ///   - request: The request.
    ///   - list: The jobs of this worker.
    ///   - redis: The client of the worker.
    /// - Throws: `RedisError`.
    public static func reply(
        to request: JobListRequest, with list: JobListing, _ redis: RedisClient
    ) async throws(RedisError) {
        var writer = JSONWriter(capacity: 256 + list.jobs.count * 256)
        writer.value(list)
        _ = try await redis.run(
            replying, keys: [key(request)], arguments: [.bytes(writer.bytes), .integer(Int(lifetime))])
    }

    private static func key(_ request: JobListRequest) -> RedisArgument { .string("halcyon:jobs:{\(request.reply)}") }

    // KEYS: the list. ARGV: the reply, and the TTL in milliseconds.
    private static let replying = RedisScript(
        """
        redis.call('RPUSH', KEYS[1], ARGV[1])
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        return 1
        """)
}
