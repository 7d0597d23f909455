import Concurrency
import HalcyonCluster
import JSON
import Kafka
import PlainLoop
import Redis
import Subprocess
import TestSupport

/// The servers of a run, one worker, and somebody who sends jobs and counts their events.
public final class OneWorker: Sendable {
    /// The broker of the run.
    public let broker: RunBroker
    /// Where the worker keeps results.
    public let redis: RedisServer
    private let photographs: PhotographServer
    private let worker: ChildProcess
    private let producer: Producer
    private let reader: TopicReader
    private let counting: Task<Void, any Error>
    private let ended = Lock((ready: 0, failed: 0))
    /// The waiters for the ready events of jobs, by id.
    private let waiting = Lock<[String: AsyncEvent]>([:])
    /// The latest event of a job that was ready.
    private let example = Lock<[UInt8]>([])
    private static let plainEvents = "plain.events"

    /// Starts all of them.
    /// - Parameters:
    ///   - executable: `halcyon`.
    ///   - photographs: what jobs are about.
    ///   - delay: the time until the server of the photographs answers.
    public init(executable: String, photographs: [[UInt8]], delay: Duration = .zero) async throws {
        let topics = Topics()
        self.photographs = try await PhotographServer(photographs, delay: delay)
        redis = try await RedisServer.start()
        broker = try await RunBroker.start(topics.all + [Self.plainEvents])
        let servers = broker.bootstrapServers
        producer = try Producer(
            properties: ["bootstrap.servers": servers, "queue.buffering.max.messages": "1000000"])
        reader = try await TopicReader.open(
            topics.events, from: .end, properties: ["bootstrap.servers": servers, "fetch.wait.max.ms": "10"])
        let (reader, ended, example, waiting) = (reader, ended, example, waiting)
        counting = Task {
            for try await record in reader {
                let event = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64)
                let type = try event.member("type")?.string()
                ended.withLock { ended in
                    if type == "halcyon.image.ready" {
                        ended.ready += 1
                        example.withLock { $0 = record.value ?? [] }
                    }
                    if type == "halcyon.image.failed" { ended.failed += 1 }
                }
                if type == "halcyon.image.ready", let id = event.member("data")?.member("job")?.member("id")?.asString {
                    waiting.withLock { $0.removeValue(forKey: id) }?.signal()
                }
            }
        }
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": servers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_LOG_LEVEL": "warning",
            "HALCYON_SOURCES_ORIGIN_CONCURRENCY": delay == .zero ? "16" : "64",
        ]
        options.errors = .inherited
        worker = try await ChildProcess.start(executable, ["worker"], options: options)
    }

    /// A job for one of the photographs under a name of its own, so that nothing of it is stored yet.
    public func job(_ number: Int, _ tag: String, id: String? = nil, tenant: String? = nil) -> [UInt8] {
        Array(
            """
            {"id":"\(id ?? "\(tag)\(number)")",\(tenant.map { #""tenant":"\#($0)","# } ?? "")"source":"\(photographs.url(number, tag))","width":\(PlainLoops.usual.width),\
            "height":\(PlainLoops.usual.height),"format":"jpeg","quality":80}
            """.utf8)
    }

    /// Seconds of the worker's CPU, and of the clock, for each of these jobs.
    public func cost(of jobs: [[UInt8]]) async throws -> (processor: Double, wall: Double) {
        let clock = ContinuousClock()
        let before = processorTime(of: worker.pid)
        let wanted = ended.withLock { $0.ready + $0.failed } + jobs.count
        let wall = try await clock.measure {
            try await withThrowingTaskGroup(of: Void.self) { [producer] group in
                for job in jobs {
                    group.addTask { try await producer.send(ProducerRecord(topic: Topics().jobs(.normal), value: job)) }
                }
                try await group.waitForAll()
            }
            try await until("all jobs end", within: .seconds(300)) { [ended] in
                ended.withLock { $0.ready + $0.failed } >= wanted
            }
        }
        guard ended.withLock({ $0.failed }) == 0 else { throw ConditionTimeout(description: "some jobs failed") }
        let spent = processorTime(of: worker.pid) - before
        return (spent / Double(jobs.count), wall / .seconds(1) / Double(jobs.count))
    }

    /// Sends jobs and waits until Kafka has them.
    public func submit(_ jobs: [[UInt8]]) async throws {
        // More than the queue of the producer holds are sent in parts.
        for first in stride(from: 0, to: jobs.count, by: 10_000) {
            let part = jobs[first..<min(first + 10_000, jobs.count)]
            let errors = await producer.send(
                all: part.map { ProducerRecord(topic: Topics().jobs(.normal), value: $0) })
            for case let error? in errors { throw error }
        }
    }

    /// The number of jobs that have ended.
    public var endedJobs: Int { ended.withLock { $0.ready + $0.failed } }

    /// Seconds from sending a job to its ready event.
    public func latency(of job: [UInt8], id: String) async throws -> Double {
        let event = AsyncEvent()
        waiting.withLock { $0[id] = event }
        let start = ContinuousClock.now
        try await submit([job])
        await event.wait()
        return start.duration(to: .now) / .seconds(1)
    }

    /// Seconds of CPU that a plain C loop takes for each of the jobs sent last: it consumes them, looks a cached result
    /// up and produces an event like the worker's, but reads no job and computes no key.
    public func plainCost(ofLast count: Int) async throws -> Double {
        let client = RedisClient(RedisEndpoint(loopbackPort: redis.port))
        let names = try await client.send(["KEYS", "halcyon:{*}:*"]).array?.compactMap(\.string) ?? []
        let facts = try await client.pipeline(names.map { ["HEXISTS", .string($0), "facts"] })
        await client.close()
        // Other kinds of keys have other types, or no such field.
        let keys = zip(names, facts).filter { $0.1.integer == 1 }.map(\.0)
        let (brokers, port, event) = (broker.bootstrapServers, Int32(redis.port), example.withLock { $0 })
        return try await blocking { () throws(ConditionTimeout) in
            let start = processorTime()
            let done = PlainLoops.hits(
                brokers: brokers, jobs: Topics().jobs(.normal), partitions: 8, count: count, events: Self.plainEvents,
                redisPort: port, keys: keys, event: event)
            guard done > 0 else { throw ConditionTimeout(description: "the plain loop failed") }
            return (processorTime() - start) / Double(done)
        }
    }

    /// Ends all of them.
    public func remove() async {
        await worker.stop()
        counting.cancel()
        await reader.close()
        await producer.close()
        await photographs.remove()
        await redis.stop()
        await broker.remove()
    }
}
