import HalcyonCluster
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Events that Kafka rejects although it is available.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct RejectedEventTests {
    @Test(arguments: [false, true]) func jobsWaitUntilKafkaAcceptsTheirEvents(exactlyOnce: Bool) async throws {
        let origin = try SampleImages.origin()
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        try await WorkerFixture.with(broker: .apache, partitions: 1, topics: topics) { cluster in
            let (sink, metrics) = (RecordingLogSink(), Metrics())
            var options = cluster.options
            options.transactions = exactlyOnce ? TransactionOptions() : nil
            (options.health.stuckAfter, options.health.exitAfter) = (.seconds(2), nil)
            let worker = try await Worker.start(options, log: Log(level: .info, sink: sink), metrics: metrics)
            await worker.ready()
            let (events, producer) = (cluster.events, cluster.producer)

            // Once a topic has an ACL, everything that no ACL allows is denied.
            try await kafka.acl(["--add", "--allow-principal", "User:*"], topics.events)
            try await kafka.acl(["--add", "--deny-principal", "User:ANONYMOUS", "--operation", "Write"], topics.events)
            // Brokers apply ACLs a moment after they have accepted them.
            try await until("writing is denied") {
                do {
                    _ = try await producer.send(ProducerRecord(topic: topics.events, value: Array("{}".utf8)))
                    return false
                } catch {
                    return true
                }
            }
            for id in 0..<3 {
                let job = #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64}"#
                try await producer.send(ProducerRecord(topic: topics.jobs(.normal), value: Array(job.utf8)))
            }
            // A busy machine is another reason to be stuck.
            try await until("the worker is stuck and holds the offset") {
                worker.liveness.liveness.isStuck && metrics.value(of: "halcyon_committed_offset_held_seconds") > 1
                    && sink.count("Kafka rejects events; retrying until it accepts them") == 1
            }
            #expect(events.terminal.isEmpty)

            try await kafka.acl(
                ["--remove", "--force", "--deny-principal", "User:ANONYMOUS", "--operation", "Write"], topics.events)
            try await until("all jobs end") { Set(events.terminal.map(\.jobID)).count == 3 }
            #expect(events.terminal.allSatisfy { $0.kind == "ready" })
            try await until("the worker recovers") { !worker.liveness.liveness.isStuck }
            try await until("no offset is held") { metrics.value(of: "halcyon_committed_offset_held_seconds") == 0 }
            try await until("the end of the refusals is logged") { sink.count("Kafka accepts events again") == 1 }
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
        }
        try await origin.stop()
    }
}
