import Glibc
import HalcyonCluster
import Kafka
import Redis
import TestSupport
import Testing

/// Workers in exactly-once mode that are killed and paused, and a broker that is killed, during a stream of jobs.
@Suite(.killableApacheKafka, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable)) struct ExactlyOnceFaultTests {
    @Test func committedReadersSeeOneTerminalEventPerJob() async throws {
        let environment = ["HALCYON_DELIVERY": "exactly-once", "HALCYON_WORKER_CONCURRENCY": "1"]
        try await FaultFixture.with(environment) { fixture in
            let origin = try JobStream.origin()
            let stream = JobStream(fixture.producer, fixture.topics, fixture.events, origin)
            let result: Result<Void, any Error>
            do {
                result = .success(try await injectFaults(fixture.processes, stream, fixture.kafka))
            } catch {
                result = .failure(error)
            }
            try await origin.stop()
            try result.get()
            #expect(stream.terminalEventIDs.count == stream.submitted)
            #expect(stream.failed.isEmpty)
            for (job, ids) in stream.terminalEventIDs {
                #expect(ids.count == 1, "job \(job) ended \(ids.count) times")
            }
        }
    }

    private func injectFaults(_ processes: WorkerProcesses, _ stream: JobStream, _ kafka: ApacheKafka) async throws {
        for _ in 0..<3 { try await processes.add() }
        let submitting = Task { try await stream.run() }
        defer { submitting.cancel() }
        var seen = 0
        /// Waits until more jobs have ended. Events from before the fault may still be on their way to the reader.
        func waitForProgress() async throws {
            let before = stream.terminalEventIDs.count
            try await until("more jobs end") { stream.terminalEventIDs.count >= before + 40 }
            seen = stream.terminalEventIDs.count
        }
        try await waitForProgress()
        await processes.kill(processes.members[0])
        try await processes.add()
        try await waitForProgress()
        // The worker resumes after its session has expired and the others have done its jobs.
        let (paused, sources) = (processes.members[0], stream.sources)
        paused.child.send(SIGSTOP)
        try await until("the others have done the jobs of the paused worker") {
            stream.hasCompleted(sources: sources)
        }
        paused.child.send(SIGCONT)
        try await waitForProgress()
        await kafka.kill()
        try await kafka.start()
        try await waitForProgress()
        #expect(seen > 100)
        submitting.cancel()
        try await submitting.value
        try await stream.waitUntilSettled()
    }
}
