import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import Telemetry
import TestSupport
import Testing
import Vips

@testable import HalcyonWorker

/// Stuck workers, and workers that only wait.
@Suite(.limitedParallelism) struct WatchdogTests {
    /// A processor that reports its start, blocks its thread until the latch is open, and ignores cancellation.
    private struct BlockingProcessor: ImageProcessor {
        let name = "blocking"
        let hasStarted: Lock<Bool>
        let latch: Latch

        func process(_ image: Image, parameters: String) throws -> Image {
            hasStarted.withLock { $0 = true }
            latch.wait()
            return image
        }
    }

    private func isStuck(_ metrics: Metrics) -> Bool {
        metrics.value(of: "halcyon_stuck") == 1
    }

    @Test func stuckRenderingAndItsRecoveryAreLoggedOnce() async throws {
        let (hasStarted, latch, sink, metrics, hopeless) = (
            Lock(false), Latch(), RecordingLogSink(), Metrics(), Lock(0)
        )
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            var options = cluster.options
            options.extensions = try Extensions(processors: [BlockingProcessor(hasStarted: hasStarted, latch: latch)])
            options.images.renderTime = .seconds(1)
            // Seconds, so that the worker does not count as stuck because the machine is busy with other tests.
            (options.health.stuckAfter, options.health.exitAfter) = (.seconds(3), .milliseconds(200))
            let worker = try await Worker.start(options, log: Log(level: .info, sink: sink), metrics: metrics) {
                hopeless.withLock { $0 += 1 }
            }
            await worker.ready()
            var stuck = ""
            while !hasStarted.withLock({ $0 }) {
                let id = stuck + "a"
                try #require(id.count <= 20, "no rendering starts within its time limit")
                try await cluster.submit(
                    #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":9,"height":9,"processors":["blocking"]}"#)
                // On a busy machine, the time limit may pass before the rendering starts.
                try await until("the rendering starts or the job ends") {
                    hasStarted.withLock { $0 } || cluster.events.terminal.contains { $0.jobID == id }
                }
                if let end = cluster.events.terminal.first(where: { $0.jobID == id }) {
                    try #require(end.code == "timeout", "\(end.json)")
                }
                stuck = id
            }
            // The exit limit may have passed before, if the machine was too busy for seconds.
            try await until("the worker is stuck with the job") {
                isStuck(metrics) && worker.liveness.liveness.isStuck && worker.liveness.progress.jobs == 1
            }
            try await until("the exit limit has passed") { hopeless.withLock { $0 } > 0 }
            // Other jobs continue meanwhile, on the other thread.
            try await cluster.submit(#"{"id":"b","source":"\#(origin.url("/b"))","width":9,"height":9}"#)
            #expect(try await cluster.events.terminal(of: "b").kind == "ready")
            latch.open()
            let end = try await cluster.events.terminal(of: stuck)
            #expect(end.code == "timeout", "\(end.json)")
            // The state changes before the line is logged.
            try await until("the worker recovers") {
                !isStuck(metrics) && !worker.liveness.liveness.isStuck
                    && sink.count("worker recovered") == sink.count("worker is stuck")
            }
            // A machine that is too busy for seconds is another episode. In each, one line follows the other.
            let lines = sink.records.map(\.message).filter { ["worker is stuck", "worker recovered"].contains($0) }
            #expect(
                lines.count >= 2
                    && lines.indices.allSatisfy { lines[$0] == ["worker is stuck", "worker recovered"][$0 % 2] },
                "\(lines)")
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
            // A job is counted until it has been reported.
            try await until("no job is left") { worker.liveness.progress.jobs == 0 }
        }
        try await origin.stop()
    }

    @Test(.extended) func waitingForServersOrOriginsIsNotStuck() async throws {
        let (sink, metrics) = (RecordingLogSink(), Metrics())
        let origin = RawOrigin { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            var options = cluster.options
            // A busy machine can delay a worker for seconds.
            (options.health.stuckAfter, options.health.exitAfter) = (.seconds(15), .milliseconds(100))
            let worker = try await Worker.start(options, log: Log(level: .info, sink: sink), metrics: metrics)
            await worker.ready()
            try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":9,"height":9}"#)
            try await until("its fetch begins") { origin.requests.count == 1 }
            cluster.redis.process.send(SIGKILL)
            await cluster.redis.process.exit()
            await cluster.broker.stop()
            let before = worker.liveness.progress
            try await until("the watchdog has run for longer than its limits") {
                let now = worker.liveness.progress
                return before.lastPoll.duration(to: now.lastPoll) > .seconds(17)
                    && before.lastTurn.duration(to: now.lastTurn) > .seconds(17)
            }
            #expect(worker.liveness.progress.jobs == 1)
            #expect(sink.count("worker is stuck") == 0)
            _ = await worker.shutdown(gracePeriod: .zero)
        }
        try await origin.stop()
    }
}
