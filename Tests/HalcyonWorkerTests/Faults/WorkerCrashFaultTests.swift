import Concurrency
import Glibc
import HalcyonCluster
import Kafka
import Redis
import Subprocess
import TestSupport
import Testing

/// The effect of a worker crash on the other workers, with default settings.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct WorkerCrashFaultTests {
    /// Once a worker joins, the group waits for the session of the crashed one, so a replacement joins only after that.
    @Test func otherWorkersContinueWhenOneIsKilledAndReplaced() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(redis.url), settings: .patient())
        let result: Result<Void, any Error>
        do {
            result = .success(try await run(kafka, redis, client))
        } catch {
            result = .failure(error)
        }
        await client.close()
        await redis.stop()
        try result.get()
    }

    private func run(_ kafka: ApacheKafka, _ redis: RedisServer, _ client: RedisClient) async throws {
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        try await kafka.create(topics.all, partitions: 6)
        let registry = WorkerRegistry(client)
        var workers: [ChildProcess] = []
        func start() async throws {
            workers.append(
                try await WorkerProcess.start(
                    brokers: kafka.bootstrapServers, redisPort: redis.port, prefix: topics.prefix,
                    [
                        "HALCYON_LOG_LEVEL": "error", "HALCYON_KAFKA_PROPERTY_client.id": "worker-\(workers.count)",
                        // The others have time for jobs before the group reassigns the partitions of the crashed one.
                        "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "20000",
                    ]))
        }
        for _ in 0..<3 { try await start() }
        let events = try await EventLog(topics, properties)
        let producer = try Producer(properties: properties.merging(["linger.ms": "0"]) { $1 })
        /// Submits a job to each partition, named after the partition.
        func submit(_ round: String) async throws {
            for partition in 0..<6 {
                let job = #"{"id":"\#(round)\#(partition)","source":"initials:JD","width":8}"#
                _ = try await producer.send(
                    ProducerRecord(topic: topics.jobs(.normal), partition: Int32(partition), value: Array(job.utf8)))
            }
        }
        @Sendable func ended(_ round: String) -> [String] {
            events.terminal.map(\.jobID).filter { $0.hasPrefix(round) }
        }

        try await until("all three workers are registered") { try await registry.entries().count == 3 }
        try await submit("a")
        try await until("all jobs end") { Set(ended("a")).count == 6 }

        let group = WorkerProcess.group(prefix: topics.prefix)
        let owners = try await firstValue("each worker has partitions") { () async throws -> [Int: String]? in
            let owners = try await kafka.owners(of: topics.jobs(.normal), in: group)
            return owners.count == 6 && Set(owners.values).count == 3 ? owners : nil
        }
        let others = owners.filter { $0.value != "worker-0" }.keys
        workers[0].send(SIGKILL)
        await workers[0].exit()
        try await start()
        // The others continue. The partitions of the crashed one follow.
        for round in ["b", "c"] {
            try await submit(round)
            try await until("the jobs of the other workers end") {
                Set(ended(round)).isSuperset(of: others.map { "\(round)\($0)" })
            }
        }
        try await until("all jobs end") { Set(ended("b")).count == 6 && Set(ended("c")).count == 6 }
        await producer.close()
        await events.close()
        for worker in workers.dropFirst() { await worker.stop(grace: .seconds(60)) }
    }
}
