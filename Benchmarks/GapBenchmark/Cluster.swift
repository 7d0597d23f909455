import Concurrency
import Glibc
import HalcyonCluster
import JSON
import Kafka
import Subprocess
import TestSupport

/// Apache Kafka, Redis, workers, and a reader of their events.
final class Cluster: Sendable {
    /// As many as `halcyon topics create` makes.
    static let partitions: Int32 = 12

    private let executable: String
    private let kafka: ApacheKafka
    private let redis: RedisServer
    private let producer: Producer
    private let reader: TopicReader
    private let reading: Task<Void, any Error>
    private let running = Lock<[GapWorker]>([])
    private let ends = Lock<[String: ContinuousClock.Instant]>([:])
    private let submitted = Lock(0)

    init(executable: String) async throws {
        self.executable = executable
        let topics = Topics()
        redis = try await RedisServer.start()
        kafka = try await ApacheKafka()
        try await kafka.start()
        try await kafka.create(topics.all, partitions: Int(Self.partitions))
        let client = ["bootstrap.servers": kafka.bootstrapServers]
        producer = try Producer(properties: client.merging(["linger.ms": "0"]) { $1 })
        reader = try await TopicReader.open(topics.events, from: .end, properties: client)
        let (reader, ends) = (reader, ends)
        reading = Task {
            for try await record in reader {
                let event = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64)
                guard try event.member("type")?.string() == "halcyon.image.ready",
                    let job = try event.member("data")?.member("job")?.member("id")?.string()
                else { continue }
                // An event may come again, under the same id.
                ends.withLock { if $0[job] == nil { $0[job] = .now } }
            }
        }
    }

    /// The workers that were started and not ended, the oldest first.
    var workers: [GapWorker] { running.withLock { $0 } }

    /// Starts one more.
    func add() async throws {
        let worker = try await GapWorker(
            executable: executable,
            environment: [
                "HALCYON_KAFKA_BROKERS": kafka.bootstrapServers,
                "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            ], topic: Topics().jobs(.normal))
        running.withLock { $0.append(worker) }
    }

    /// Ends one by a signal.
    func end(_ worker: GapWorker, by signal: Int32) async {
        running.withLock { $0.removeAll { $0 === worker } }
        worker.process.send(signal)
        await worker.process.exit()
    }

    /// Starts as many as are missing, and waits until all have their partitions.
    func scale(to count: Int) async throws {
        while workers.count < count { try await add() }
        try await settle()
    }

    /// Waits until each worker has partitions, and each partition one worker.
    func settle() async throws {
        try await until("each partition is one worker's") { [self] in
            let shares = workers.map(\.partitions)
            let all = shares.reduce(into: Set()) { $0.formUnion($1) }
            return !shares.contains([]) && all.count == Self.partitions
                && shares.reduce(0) { $0 + $1.count } == all.count
        }
    }

    /// Begins to submit jobs.
    func submit() -> JobStream { JobStream(producer, first: submitted.withLock { $0 }) }

    /// Ends the stream, and waits until its jobs have ended, or for a minute.
    func jobs(of stream: JobStream) async throws -> [Job] {
        let jobs = try await stream.stop()
        submitted.withLock { $0 += jobs.count }
        try? await until("all jobs have ended", within: .seconds(60)) { [ends] in
            ends.withLock { ends in jobs.allSatisfy { ends[$0.id] != nil } }
        }
        return ends.withLock { ends in
            jobs.map { Job(partition: $0.partition, submitted: $0.time, ended: ends[$0.id]) }
        }
    }

    func remove() async {
        for worker in workers {
            worker.process.send(SIGCONT)
            await worker.process.stop()
        }
        reading.cancel()
        await reader.close()
        await producer.close()
        await redis.stop()
        await kafka.remove()
    }
}
