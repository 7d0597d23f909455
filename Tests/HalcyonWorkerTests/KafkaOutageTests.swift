import HalcyonCluster
import HalcyonWorker
import Kafka
import Subprocess
import Telemetry
import TestSupport
import Testing

@Suite(.limitedParallelism, .enabled(if: ApacheKafka.isAvailable)) struct KafkaOutageTests {
    /// A worker on a broker that may come and go, and what it logged.
    struct Scene {
        let kafka: ApacheKafka
        let cluster: WorkerTestCluster
        let notes: RecordingLogSink
        let origin: RawOrigin

        /// Runs `body` beside a worker that was started while the broker was not.
        static func with(_ body: (Scene) async throws -> Void) async throws {
            let origin = try SampleImages.origin()
            let kafka = try await ApacheKafka(hasOwnController: true)
            try await WorkerTestCluster.with { cluster in
                let scene = Scene(kafka: kafka, cluster: cluster, notes: RecordingLogSink(), origin: origin)
                var options = cluster.options
                options.kafka = KafkaProperties(
                    brokers: kafka.bootstrapServers, properties: ["session.timeout.ms": "6000"])
                let worker = try await Worker.start(
                    options, log: Log(level: .info, sink: scene.notes), metrics: Metrics())
                try await body(scene)
                #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
            }
            await kafka.remove()
            try await origin.stop()
        }

        var properties: [String: String] { ["bootstrap.servers": kafka.bootstrapServers] }

        func makeTopics() async throws {
            try await kafka.create(cluster.topics.all, partitions: 2)
        }

        /// One job for each id, none waiting for another's acknowledgement.
        func submit(_ ids: Range<Int>, with producer: Producer) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for id in ids {
                    let job = #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64}"#
                    let record = ProducerRecord(topic: cluster.topics.jobs(.normal), value: Array(job.utf8))
                    group.addTask { try await producer.send(record) }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func kafkaAwayAtTheStartIsWaitedForAndSaidOnce() async throws {
        try await Scene.with { scene in
            try await until("the worker says that Kafka is away") {
                scene.notes.count("Kafka is unavailable; waiting for it") == 1
            }
            try await scene.kafka.start()
            try await scene.makeTopics()
            let events = try await EventLog(scene.cluster.topics, scene.properties)
            let producer = try Producer(properties: scene.properties)
            try await scene.submit(0..<1, with: producer)
            #expect(try await events.terminal(of: "0").kind == "ready")
            #expect(scene.notes.count("Kafka is unavailable; waiting for it") == 1)
            #expect(scene.notes.count("Kafka is available again") == 1)
            await producer.close()
            await events.close()
        }
    }

    @Test func kafkaKilledInTheMiddleLosesNoJob() async throws {
        try await Scene.with { scene in
            try await scene.kafka.start()
            try await scene.makeTopics()
            let events = try await EventLog(scene.cluster.topics, scene.properties)
            let producer = try Producer(properties: scene.properties)
            try await scene.submit(0..<400, with: producer)
            try await until("some jobs have ended") { events.terminal.count >= 40 }
            await scene.kafka.kill()
            try await Task.sleep(for: .seconds(3))
            try await scene.kafka.start()
            try await scene.submit(400..<500, with: producer)
            try await until("all jobs have ended") {
                Set(events.terminal.map(\.jobID)).count == 500
            }
            #expect(events.terminal.allSatisfy { $0.kind == "ready" })
            await producer.close()
            await events.close()
        }
    }
}
