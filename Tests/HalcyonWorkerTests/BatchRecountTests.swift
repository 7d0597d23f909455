import Glibc
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Recounts that are requested more often than they are needed.
@Suite(.limitedParallelism) struct BatchRecountTests {
    /// The parts of a tracker that count batches again, without a coordinator, and two open batches, `a` and `b`.
    private struct Fixture {
        let cluster: WorkerFixture
        let sink = RecordingLogSink()
        let store: BatchStore
        let counter: BatchCounter
        let batches: BatchLog
        let recounter: BatchRecounter

        init(_ cluster: WorkerFixture) {
            let (options, properties) = (BatchOptions(), cluster.broker.consumerProperties)
            self.cluster = cluster
            store = BatchStore(cluster.client, options)
            counter = BatchCounter(
                store, cluster.producer, cluster.topics, options, log: .silent, metrics: BatchMetrics(Metrics()))
            batches = BatchLog(cluster.topics, properties: properties, retention: options.retention, log: .silent)
            recounter = BatchRecounter(
                counter, batches, properties: properties, log: Log(level: .info, sink: sink))
        }

        static func with(_ body: (Fixture) async throws -> Void) async throws {
            try await WorkerFixture.with { cluster in
                let fixture = Fixture(cluster)
                let result: Result<Void, any Error>
                do {
                    for batch in ["a", "b"] { try await fixture.writer(batch).open(created: 1) }
                    try await until("the batches are known") { fixture.batches.incomplete().count == 2 }
                    result = .success(try await body(fixture))
                } catch {
                    result = .failure(error)
                }
                await fixture.recounter.close()
                await fixture.batches.close()
                try result.get()
            }
        }

        func writer(_ batch: String) -> BatchWriter {
            BatchWriter(batch, cluster.producer, topics: cluster.topics, reader: JobDecoder())
        }

        /// The number of batches in each recount that has begun.
        var recounts: [Int64] {
            sink.records.compactMap { record in
                guard record.message == "counting batches again from the topic of events",
                    case .integer(let count)? = record.fields["batches"]
                else { return nil }
                return count
            }
        }
    }

    @Test func aRunningRecountIsNotRepeated() async throws {
        try await Fixture.with { fixture in
            // Redis holds the recount of one batch while it is requested again.
            fixture.cluster.redis.process.send(SIGSTOP)
            await fixture.recounter.request("a")
            try await until("the recount has begun") { fixture.recounts == [1] }
            for batch in ["a", "a", "b"] { await fixture.recounter.request(batch) }
            fixture.cluster.redis.process.send(SIGCONT)
            try await until("the other batch is counted, too") { try await fixture.store.state(of: "b").isOpened }
            // A busy machine may repeat recounts whose reader is late.
            let failures = fixture.sink.count("counting batches again failed; retrying")
            let recounts = fixture.recounts
            #expect(recounts.reduce(0, +) <= Int64(2 + 2 * failures), "\(recounts)")
        }
    }

    /// The coordinator has not handled the message about the counts yet.
    @Test func completeCountsAreNotCountedAgain() async throws {
        try await Fixture.with { fixture in
            try await fixture.writer("a").close(total: 1)
            try await fixture.writer("b").close(total: 0)
            try await until("the batches are closed") {
                fixture.batches.incomplete().allSatisfy { $0.batch.total != nil }
            }
            for entry in fixture.batches.incomplete() {
                try await fixture.store.open(entry.batch)
                try await fixture.store.note(entry.batch)
            }
            let membership = BatchMembership(batch: "a", index: 0)
            let end = BatchEnd(membership, job: "a-0", outcome: .ready, failure: nil, time: 1)
            let progress = try await fixture.store.count([end], of: "a", interval: .zero)
            #expect(progress.isOpened && progress.isDone)

            let audit = BatchAudit(
                counter: fixture.counter, batches: fixture.batches, recounter: fixture.recounter,
                recountAfter: .milliseconds(10))
            let auditing = Task { await audit.run { true } }
            defer { auditing.cancel() }
            let topic = fixture.cluster.topics.batches
            try await until("the coordinator is told again") {
                let reader = try await TopicReader.open(
                    topic, from: .end, properties: fixture.cluster.broker.consumerProperties, within: .patience)
                await reader.close()
                // Two messages have opened and closed each batch.
                return reader.endOffsets.values.reduce(0, +) >= 2 * 2 + 4
            }
            #expect(fixture.recounts.isEmpty)
        }
    }
}
