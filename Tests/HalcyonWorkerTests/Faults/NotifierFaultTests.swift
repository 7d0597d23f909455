import Concurrency
import Glibc
import HalcyonCluster
import Kafka
import Subprocess
import TestSupport
import Testing

/// Workers that are killed while their notifiers send a webhook.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct NotifierFaultTests {
    @Test func webhookIsResentIfItsWorkerIsKilledBeforeTheCommit() async throws {
        let kafka = try #require(SharedApacheKafka.current)
        let redis = try await RedisServer.start()
        let isSlow = Lock(true)
        let origin = RawOrigin { _ in isSlow.withLock { $0 } ? [.awaitEnd] : RawOrigin.answer() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await run(kafka, redis, origin, isSlow))
        } catch {
            result = .failure(error)
        }
        try await origin.stop()
        await redis.stop()
        try result.get()
    }

    private func run(
        _ kafka: ApacheKafka, _ redis: RedisServer, _ origin: RawOrigin, _ isSlow: Lock<Bool>
    ) async throws {
        let (topics, properties) = (
            Topics(prefix: SharedApacheKafka.uniquePrefix()), ["bootstrap.servers": kafka.bootstrapServers]
        )
        try await kafka.create(topics.all, partitions: 2)
        let settings = [
            "HALCYON_LOG_LEVEL": "error", "HALCYON_DELIVERY": "exactly-once",
            "HALCYON_WEBHOOKS_URL_shop": origin.url("/hook"),
            "HALCYON_WEBHOOKS_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ]
        func worker() async throws -> ChildProcess {
            try await WorkerProcess.start(
                brokers: kafka.bootstrapServers, redisPort: redis.port, prefix: topics.prefix, settings)
        }
        let first = try await worker()
        let producer = try Producer(properties: properties)
        try await producer.send(
            ProducerRecord(
                topic: topics.jobs(.normal),
                value: Array(#"{"id":"a","source":"initials:JD","width":8,"webhook":"shop"}"#.utf8)))
        await producer.close()
        try await until("the webhook receives a request") { origin.requests.count == 1 || !first.isRunning }
        first.send(SIGKILL)
        await first.exit()
        isSlow.withLock { $0 = false }
        let second = try await worker()
        try await until("another worker sends the request again") { origin.requests.count >= 2 || !second.isRunning }
        await second.stop(grace: .seconds(60))
        let heads = origin.requests.map { request in
            request.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("webhook-id:") }
        }
        #expect(heads[0] != nil && Set(heads).count == 1)
        #expect(Set(origin.requests.map(\.body)).count == 1)
    }
}
