import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis
import TestSupport
import Testing

/// A batch while workers are killed and join, Redis loses everything, and the broker is killed.
@Suite(.killableApacheKafka, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable)) struct BatchFaultTests {
    private static let jobs = 400

    @Test(arguments: ["at-least-once", "exactly-once"])
    func completesOnceWithRightCounts(_ delivery: String) async throws {
        let environment = [
            "HALCYON_DELIVERY": delivery, "HALCYON_WORKER_CONCURRENCY": "1", "HALCYON_BATCHES_RECOUNTAFTER": "2s",
        ]
        try await FaultFixture.with(environment) { fixture in
            func writer(_ batch: String) -> BatchWriter {
                BatchWriter(batch, fixture.producer, topics: fixture.topics, reader: JobDecoder())
            }
            try await injectFaults(writer("b"), writer("marker"), fixture)
            let completions = Self.completions(fixture.events)
            #expect(completions.count == 1)
            let batch = completions.first?.data["batch"] as? [String: Any] ?? [:]
            let counts = batch["counts"] as? [String: Int] ?? [:]
            #expect(counts["ready"] == Self.jobs - Self.jobs / 40 && counts["failed"] == Self.jobs / 40, "\(batch)")
        }
    }

    private static func completions(_ events: EventLog) -> [EventLog.Entry] {
        events.all.filter {
            $0.json["type"] as? String == "halcyon.batch.completed" && $0.json["subject"] as? String == "b"
        }
    }

    private func injectFaults(
        _ writer: BatchWriter, _ marker: BatchWriter, _ fixture: FaultFixture
    ) async throws {
        let (processes, events) = (fixture.processes, fixture.events)
        for _ in 0..<3 { try await processes.add() }
        try await writer.open(created: 0)
        func submit(_ part: Int) async throws {
            let size = Self.jobs / 4
            for index in part * size..<(part + 1) * size {
                var job = JobBuilder()
                job.set("source", index % 40 == 0 ? "file:///nowhere.png" : "initials:A")
                job.set("width", 8 + index % 100)
                try await writer.send(try writer.validated(job, index: index))
            }
        }
        func ended(_ count: Int) async throws {
            try await until("more jobs have ended") { Set(events.terminal.map(\.jobID)).count >= count }
        }
        try await submit(0)
        try await ended(40)
        await processes.kill(processes.members[0])
        try await submit(1)
        try await processes.add()
        try await ended(140)
        _ = try await fixture.client.send("FLUSHALL")
        try await submit(2)
        try await ended(240)
        await fixture.kafka.kill()
        try await fixture.kafka.start()
        try await submit(3)
        await processes.kill(processes.members[0])
        try await processes.add()
        try await writer.close(total: Self.jobs)
        try await until("the batch is completed", within: .seconds(180)) { !Self.completions(events).isEmpty }
        // The messages that were in flight then are handled before a later batch is completed.
        await processes.kill(processes.members[0])
        try await marker.close(total: 0)
        try await until("a later batch is completed", within: .seconds(180)) {
            events.all.contains { $0.json["id"] as? String == "batch-marker-completed" }
        }
    }
}
