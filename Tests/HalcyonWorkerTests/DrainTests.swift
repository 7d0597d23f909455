import Concurrency
import HalcyonSources
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

@Suite(.limitedParallelism) struct DrainTests {
    @Test func finishesStartedJobsAndLeavesTheRestToOthers() async throws {
        let gate = AsyncEvent()
        defer { gate.signal() }
        let provider = SlowProvider(try SampleImages.bytes(), takes: .milliseconds(20), free: 10, gate: gate)
        let providers = try CustomProviders([provider])
        try await WorkerFixture.with { cluster in
            var options = cluster.options
            options.fetches = 2
            options.providers = providers
            let metrics = Metrics()
            let first = try await Worker.start(options, log: .silent, metrics: metrics)
            await first.ready()
            for number in 0..<120 { try await cluster.submit(provider.job(number)) }
            try await until("the first jobs end") { cluster.events.terminal.count == 10 }
            let drain = Task { await first.shutdown(gracePeriod: .seconds(600)) }
            try await until("jobs that have not started are returned") {
                metrics.value(of: "halcyon_jobs_revoked_total") > 0
            }
            gate.signal()
            #expect(await drain.value == 0)
            try await until("all published events are read") {
                cluster.events.terminal.count == cluster.events.all.count { $0.kind == "started" }
            }
            let done = Set(cluster.events.terminal.map(\.jobID))
            #expect((10..<60).contains(done.count))

            try await cluster.withWorker({ $0.providers = providers }) {
                try await until("all jobs end") { Set(cluster.events.terminal.map(\.jobID)).count == 120 }
            }
            // Records that had ended were skipped, wherever they were in their partitions.
            #expect(cluster.events.terminal.count == 120)
            #expect(cluster.events.terminal.allSatisfy { $0.kind == "ready" })
            #expect(provider.fetches.values.allSatisfy { $0 == 1 } && provider.fetches.count == 120)
        }
    }

    @Test func abortsJobsThatExceedTheGracePeriod() async throws {
        let origin = RawOrigin { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            let (sink, metrics) = (RecordingLogSink(), Metrics())
            let worker = try await Worker.start(
                cluster.options, log: Log(level: .info, sink: sink), metrics: metrics)
            await worker.ready()
            try await cluster.submit(#"{"id":"stuck","source":"\#(origin.url("/stuck"))"}"#)
            try await until("the fetch begins") { origin.requests.count == 1 }
            #expect(await worker.shutdown(gracePeriod: .milliseconds(300)) == 1)
            #expect(sink.count("drained") == 1)
            #expect(metrics.value(of: #"halcyon_drained_jobs_total{fate="cut_short"}"#) == 1)
            #expect(metrics.value(of: #"halcyon_drained_jobs_total{fate="ended"}"#) == 0)
            #expect(metrics.value(of: "halcyon_drain_seconds") >= 0.3)
            #expect(metrics.value(of: "halcyon_partitions") == 0)
            // If it had waited for the fetch to fail, there would be a terminal event.
            #expect(cluster.events.terminal.isEmpty)
        }
        try await origin.stop()
    }
}
