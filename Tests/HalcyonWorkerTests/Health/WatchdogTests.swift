import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import Telemetry
import TestSupport
import Testing
import Vips

@testable import HalcyonWorker

/// Workers that do not get on, and workers that only wait.
@Suite(.limitedParallelism) struct WatchdogTests {
    /// Says that it has begun, holds its thread until the gate is open, and hears nothing.
    private struct Held: ImageProcessor {
        let name = "held"
        let begun: Lock<Bool>
        let gate: Latch

        func process(_ image: Image, parameters: String) throws -> Image {
            begun.withLock { $0 = true }
            gate.wait()
            return image
        }
    }

    private func isStuck(_ metrics: Metrics) -> Bool {
        metrics.value(of: "halcyon_stuck") == 1
    }

    @Test func aRenderingThatDoesNotStopIsSaidOnceAndItsEndToo() async throws {
        let (begun, gate, notes, metrics, hopeless) = (
            Lock(false), Latch(), RecordingLogSink(), Metrics(), Lock(0)
        )
        let origin = try SampleImages.origin()
        try await WorkerTestCluster.with { cluster in
            var options = cluster.options
            options.extensions = try Extensions(processors: [Held(begun: begun, gate: gate)])
            options.images.renderTime = .seconds(1)
            // Seconds, so that a machine which is busy with other tests is not taken for a worker that is stuck.
            (options.health.stuckAfter, options.health.exitAfter) = (.seconds(3), .milliseconds(200))
            let worker = try await Worker.start(options, log: Log(level: .info, sink: notes), metrics: metrics) {
                hopeless.withLock { $0 += 1 }
            }
            await worker.ready()
            try await cluster.submit(
                #"{"id":"a","source":"\#(origin.url("/a"))","width":9,"height":9,"processors":["held"]}"#)
            try await until("it is in the middle") { begun.withLock { $0 } }
            try await until("it is hopeless") { hopeless.withLock { $0 } > 0 }
            #expect(isStuck(metrics) && worker.liveness.liveness.isStuck && worker.liveness.progress.jobs == 1)
            // Other jobs go on meanwhile, on the other thread.
            try await cluster.submit(#"{"id":"b","source":"\#(origin.url("/b"))","width":9,"height":9}"#)
            #expect(try await cluster.events.terminal(of: "b").kind == "ready")
            gate.open()
            #expect(try await cluster.events.terminal(of: "a").code == "timeout")
            try await until("it moves again") { !isStuck(metrics) && !worker.liveness.liveness.isStuck }
            #expect(notes.count("worker is stuck") == 1 && notes.count("worker recovered") == 1)
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
            #expect(worker.liveness.progress.jobs == 0)
        }
        try await origin.stop()
    }

    @Test func whoWaitsForServersOrOriginsIsNotStuck() async throws {
        let (notes, metrics) = (RecordingLogSink(), Metrics())
        let origin = RawOrigin { _ in [.awaitEnd] }
        try await WorkerTestCluster.with { cluster in
            var options = cluster.options
            (options.health.stuckAfter, options.health.exitAfter) = (.seconds(2), .milliseconds(100))
            let worker = try await Worker.start(options, log: Log(level: .info, sink: notes), metrics: metrics)
            await worker.ready()
            try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":9,"height":9}"#)
            try await until("its fetch begins") { origin.requests.count == 1 }
            cluster.redis.process.send(SIGKILL)
            await cluster.redis.process.exit()
            await cluster.broker.stop()
            let before = worker.liveness.progress
            try await until("it has been looked at for longer than its patience") {
                let now = worker.liveness.progress
                return before.lastPoll.duration(to: now.lastPoll) > .seconds(6)
                    && before.lastTurn.duration(to: now.lastTurn) > .seconds(6)
            }
            #expect(worker.liveness.progress.jobs == 1)
            #expect(notes.count("worker is stuck") == 0)
            _ = await worker.shutdown(gracePeriod: .zero)
        }
        try await origin.stop()
    }
}
