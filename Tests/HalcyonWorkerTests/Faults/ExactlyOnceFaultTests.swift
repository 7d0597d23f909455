import Glibc
import HalcyonCluster
import Kafka
import Redis
import TestSupport
import Testing

/// Workers in exactly-once mode that are killed and that stand still, and a broker that is killed, in the middle of a stream of jobs.
@Suite(.limitedParallelism, .enabled(if: ApacheKafka.isAvailable)) struct ExactlyOnceFaultTests {
    @Test func readersOfCommittedEventsSeeEachJobEndOnce() async throws {
        let kafka = try await ApacheKafka(hasOwnController: true)
        do {
            try await kafka.start()
            try await run(kafka)
        } catch {
            await kafka.remove()
            throw error
        }
        await kafka.remove()
    }

    private func run(_ kafka: ApacheKafka) async throws {
        let (topics, properties) = (Topics(), ["bootstrap.servers": kafka.bootstrapServers])
        try await kafka.create(topics.all, partitions: JobStream.partitions)
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint("redis://127.0.0.1:\(redis.port)"))
        let events = try await EventLog(topics, properties)
        // A job that lay in its topic twice, for the broker was killed before it could say that it had it, would be two jobs.
        let producer = try Producer(properties: properties.merging(["enable.idempotence": "true"]) { $1 })
        let origin = try JobStream.origin()
        let stream = JobStream(producer, events, origin)
        let team = WorkerTeam(
            brokers: kafka.bootstrapServers, redis, client,
            environment: ["HALCYON_DELIVERY": "exactly-once", "HALCYON_WORKER_CONCURRENCY": "1"])
        let result: Result<Void, any Error>
        do {
            result = .success(try await faults(team, stream, kafka))
        } catch {
            result = .failure(error)
        }
        await team.close()
        await events.close()
        await producer.close()
        await client.close()
        await redis.stop()
        try await origin.stop()
        try result.get()

        #expect(stream.ends.count == stream.submitted)
        #expect(stream.failed.isEmpty)
        for (job, events) in stream.ends { #expect(events.count == 1, "job \(job) ended \(events.count) times") }
    }

    private func faults(_ team: WorkerTeam, _ stream: JobStream, _ kafka: ApacheKafka) async throws {
        for _ in 0..<3 { try await team.add() }
        let submitting = Task { try await stream.run() }
        defer { submitting.cancel() }
        var seen = 0
        /// Until more jobs have ended: those before the fault may still be on their way to the reader.
        func progress() async throws {
            let before = stream.ends.count
            try await until("more jobs end") { stream.ends.count >= before + 40 }
            seen = stream.ends.count
        }
        try await progress()
        await team.kill(team.members[0])
        try await team.add()
        try await progress()
        // For longer than the session: the group goes on without it, and then it wakes up.
        let sleeper = team.members[0]
        sleeper.child.send(SIGSTOP)
        try await Task.sleep(for: .seconds(9))
        sleeper.child.send(SIGCONT)
        try await progress()
        await kafka.kill()
        try await kafka.start()
        try await progress()
        #expect(seen > 100)
        submitting.cancel()
        try await submitting.value
        try await stream.settled()
    }
}
