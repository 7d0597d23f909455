import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import TestSupport
import Testing

/// A batch while workers are killed and join, Redis loses everything, and the broker is killed.
@Suite(.killableApacheKafka, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable)) struct BatchFaultTests {
    private static let jobs = 400

    @Test(arguments: ["at-least-once", "exactly-once"])
    func completesOnceWithRightCounts(_ delivery: String) async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        try await kafka.create(topics.all, partitions: JobStream.partitions)
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint("redis://127.0.0.1:\(redis.port)"))
        let events = try await EventLog(topics, properties)
        let producer = try Producer(properties: properties.merging(["enable.idempotence": "true"]) { $1 })
        let processes = WorkerProcesses(
            brokers: kafka.bootstrapServers, prefix: topics.prefix, redis, client,
            environment: [
                "HALCYON_DELIVERY": delivery, "HALCYON_WORKER_CONCURRENCY": "1", "HALCYON_BATCHES_RECOUNTAFTER": "2s",
            ])
        let result: Result<Void, any Error>
        do {
            let writer = BatchWriter("b", producer, topics: topics, reader: JobDecoder())
            let marker = BatchWriter("marker", producer, topics: topics, reader: JobDecoder())
            result = .success(try await injectFaults(writer, marker, processes, kafka, client, events))
        } catch {
            result = .failure(error)
        }
        await processes.close()
        await events.close()
        await producer.close()
        await client.close()
        await redis.stop()
        try result.get()
        let completions = Self.completions(events)
        #expect(completions.count == 1)
        let batch = completions.first?.data["batch"] as? [String: Any] ?? [:]
        let counts = batch["counts"] as? [String: Int] ?? [:]
        #expect(counts["ready"] == Self.jobs - Self.jobs / 40 && counts["failed"] == Self.jobs / 40, "\(batch)")
    }

    private static func completions(_ events: EventLog) -> [EventLog.Entry] {
        events.all.filter {
            $0.json["type"] as? String == "halcyon.batch.completed" && $0.json["subject"] as? String == "b"
        }
    }

    private func injectFaults(
        _ writer: BatchWriter, _ marker: BatchWriter, _ processes: WorkerProcesses, _ kafka: ApacheKafka,
        _ redis: RedisClient,
        _ events: EventLog
    ) async throws {
        for _ in 0..<3 { try await processes.add() }
        try await writer.open(created: 0)
        func submit(_ part: Int) async throws {
            let size = Self.jobs / 4
            for index in part * size..<(part + 1) * size {
                var job = JobBuilder()
                job.set("source", index % 40 == 0 ? "file:///nowhere.png" : "initials:A")
                job.set("width", 8 + index % 100)
                try await writer.send(try writer.validated(job, index: index))
            }
        }
        func ended(_ count: Int) async throws {
            try await until("more jobs have ended") { Set(events.terminal.map(\.jobID)).count >= count }
        }
        try await submit(0)
        try await ended(40)
        await processes.kill(processes.members[0])
        try await submit(1)
        try await processes.add()
        try await ended(140)
        _ = try await redis.send("FLUSHALL")
        try await submit(2)
        try await ended(240)
        await kafka.kill()
        try await kafka.start()
        try await submit(3)
        await processes.kill(processes.members[0])
        try await processes.add()
        try await writer.close(total: Self.jobs)
        try await until("the batch is completed", within: .seconds(180)) { !Self.completions(events).isEmpty }
        // The messages that were in flight then are handled before a later batch is completed.
        await processes.kill(processes.members[0])
        try await marker.close(total: 0)
        try await until("a later batch is completed", within: .seconds(180)) {
            events.all.contains { $0.json["id"] as? String == "batch-marker-completed" }
        }
    }
}
