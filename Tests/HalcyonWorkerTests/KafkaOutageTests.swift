import HalcyonCluster
import HalcyonWorker
import Kafka
import Subprocess
import Telemetry
import TestSupport
import Testing

@Suite(.killableApacheKafka, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable), .serialized)
struct KafkaOutageTests {
    /// A worker, its log, and a broker that the test kills and starts.
    struct KafkaOutageFixture {
        let kafka: ApacheKafka
        let cluster: WorkerFixture
        let sink: RecordingLogSink
        let origin: RawOrigin

        /// Runs `body` beside a supervised worker.
        /// - Parameter isKilled: True if the broker is killed before the worker is started.
        static func with(isKilled: Bool = false, _ body: (KafkaOutageFixture) async throws -> Void) async throws {
            let origin = try SampleImages.origin()
            let kafka = try #require(SharedApacheKafka.current)
            let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
            try await WorkerFixture.with(broker: .apache, topics: topics) { cluster in
                if isKilled { await kafka.kill() }
                let fixture = KafkaOutageFixture(
                    kafka: kafka, cluster: cluster, sink: RecordingLogSink(), origin: origin)
                let (errors, error) = AsyncStream<KafkaError>.makeStream()
                async let supervised: Void = fixture.superviseWorker(errors) { error.yield($0) }
                let result: Result<Void, any Error>
                do { result = .success(try await body(fixture)) } catch { result = .failure(error) }
                error.finish()
                try await supervised
                try result.get()
            }
            try await origin.stop()
        }

        /// Runs a worker until the stream of its fatal errors ends. After each error it is replaced, as systemd or
        /// Kubernetes would do.
        ///
        /// If a broker crashes while several produce requests are in flight, the idempotent producer of librdkafka
        /// before 2.3 may end with OUT_OF_ORDER_SEQUENCE_NUMBER (https://github.com/confluentinc/librdkafka/pull/4438).
        private func superviseWorker(
            _ errors: AsyncStream<KafkaError>, onEnd: @escaping @Sendable (KafkaError) -> Void
        ) async throws {
            var options = cluster.options
            options.kafka = KafkaProperties(
                brokers: kafka.bootstrapServers, properties: ["session.timeout.ms": "6000"])
            let log = Log(level: .info, sink: sink)
            var worker = try await Worker.start(options, log: log, metrics: Metrics(), onEnd: onEnd)
            for await _ in errors {
                _ = await worker.shutdown(gracePeriod: .seconds(60))
                worker = try await Worker.start(options, log: log, metrics: Metrics(), onEnd: onEnd)
            }
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
        }

        /// Submits one job for each id, without waiting for acknowledgements in between.
        func submit(_ ids: Range<Int>) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for id in ids {
                    let job = #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64}"#
                    let record = ProducerRecord(topic: cluster.topics.jobs(.normal), value: Array(job.utf8))
                    group.addTask { try await cluster.producer.send(record) }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func waitsForKafkaAtStartAndLogsOnce() async throws {
        let start = ContinuousClock.now
        try await KafkaOutageFixture.with(isKilled: true) { fixture in
            let (sink, lines) = (fixture.sink, ["Kafka is unavailable; waiting for it", "Kafka is available again"])
            try await until("the worker logs that Kafka is unavailable") { sink.count(lines[0]) == 1 }
            try await fixture.kafka.start()
            try await fixture.submit(0..<1)
            #expect(try await fixture.cluster.events.terminal(of: "0").kind == "ready")
            // Its clients reconnect at different times.
            try await until("the worker logs that Kafka is available") {
                sink.records.last { lines.contains($0.message) }?.message == lines[1]
            }
            // A busy machine may lose the connection again, but not often.
            let logged = sink.records.map(\.message).filter { lines.contains($0) }
            #expect(logged.indices.allSatisfy { logged[$0] == lines[$0 % 2] }, "\(logged)")
            let pairs = 1 + Int(start.duration(to: .now) / .seconds(10))
            #expect(logged.count <= 2 * pairs, "\(logged)")
        }
    }

    @Test func losesNoJobWhenKafkaIsKilled() async throws {
        try await KafkaOutageFixture.with { fixture in
            let events = fixture.cluster.events
            try await fixture.submit(0..<400)
            try await until("some jobs have ended") { events.terminal.count >= 40 }
            await fixture.kafka.kill()
            try await Task.sleep(for: .seconds(3))
            try await fixture.kafka.start()
            try await fixture.submit(400..<500)
            try await until("\(events.terminal.count) of 500 jobs have ended; log: \(fixture.sink.records)") {
                Set(events.terminal.map(\.jobID)).count == 500
            }
            #expect(events.terminal.allSatisfy { $0.kind == "ready" })
        }
    }
}
