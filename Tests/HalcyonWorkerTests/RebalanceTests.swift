import Concurrency
import HalcyonCluster
import HalcyonSources
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Workers that join and leave while most jobs wait, on Apache Kafka.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct RebalanceTests {
    /// The number of jobs that wait at least, until the rebalances have ended.
    private static let backlog = 400

    @Test func rebalanceMovesWaitingJobsWithoutRepeatingAny() async throws {
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        try await WorkerFixture.with(broker: .apache, partitions: 6, topics: topics) { cluster in
            // Sessions survive pauses of a busy machine.
            let kafka = KafkaProperties(
                brokers: cluster.broker.bootstrapServers, properties: ["session.timeout.ms": "60000"])
            try await joinAndLeave(kafka, cluster)
        }
    }

    private func joinAndLeave(_ kafka: KafkaProperties, _ cluster: WorkerFixture) async throws {
        let provider = SlowProvider(try SampleImages.bytes(), takes: .milliseconds(60))
        var options = cluster.options
        options.kafka = kafka
        options.providers = try CustomProviders([provider])
        options.fetches = 8
        // Waiting for jobs that have not started would not end in time.
        options.consumer.revocationTimeout = .seconds(600)
        let events = try await EventLog(cluster.topics, kafka.reader)
        let producer = try Producer(properties: kafka.producer)
        @Sendable func submit(_ numbers: Range<Int>) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in numbers {
                    let record = ProducerRecord(
                        topic: cluster.topics.jobs(.normal), value: Array(provider.job(number).utf8))
                    group.addTask { try await producer.send(record) }
                }
                try await group.waitForAll()
            }
        }
        try await submit(0..<Self.backlog)
        let isOver = Lock(false)
        defer { isOver.withLock { $0 = true } }
        let submitting = Task {
            var jobs = Self.backlog
            while !isOver.withLock({ $0 }) {
                if jobs < events.terminal.count + Self.backlog {
                    try await submit(jobs..<jobs + 100)
                    jobs += 100
                }
                try await Task.sleep(for: .milliseconds(10))
            }
            return jobs
        }

        let first = try await Worker.start(options, log: .silent, metrics: Metrics())
        try await until("some jobs have ended") { events.terminal.count >= 40 }
        let second = try await Worker.start(options, log: .silent, metrics: Metrics())
        await second.ready()
        try await until("more jobs have ended") { events.terminal.count >= 200 }
        #expect(await first.shutdown(gracePeriod: .seconds(600)) == 0)
        isOver.withLock { $0 = true }
        let jobs = try await submitting.value
        try await until("all jobs have ended") { Set(events.terminal.map(\.jobID)).count == jobs }
        #expect(await second.shutdown(gracePeriod: .seconds(600)) == 0)

        #expect(events.terminal.count == jobs)
        #expect(events.terminal.allSatisfy { $0.kind == "ready" })
        #expect(provider.fetches.count == jobs && provider.fetches.values.allSatisfy { $0 == 1 })
        await producer.close()
        await events.close()
    }
}
