import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Hashing
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

    /// Workers are killed while they list the objects of a batch. Each object has one job, and each job counts once.
    @Test func listsObjectsOnce() async throws {
        let dot = Base64.decode("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=") ?? []
        let count = 300
        let store = try await S3Server.start(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("pictures/\(1000 + $0).gif", dot) }))
        let environment = [
            "HALCYON_SOURCES_S3_ENDPOINT": "http://127.0.0.1:\(store.port)",
            "HALCYON_SOURCES_S3_REGION": S3Server.region, "HALCYON_SOURCES_S3_ACCESSKEY": S3Server.accessKey,
            "HALCYON_SOURCES_S3_SECRETKEY": S3Server.secretKey, "HALCYON_BATCHES_JOBSPERPAGE": "3",
            "HALCYON_BATCHES_RECOUNTAFTER": "2s",
        ]
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await FaultFixture.with(environment) { fixture in
                    try await killWhileListing(fixture, store)
                    let completions = Self.completions(fixture.events)
                    let batch = completions.first?.data["batch"] as? [String: Any] ?? [:]
                    #expect(completions.count == 1 && batch["error"] == nil)
                    #expect(batch["total"] as? Int == count && (batch["counts"] as? [String: Int])?["ready"] == count)
                    let jobs = try await Self.jobs(fixture)
                    #expect(jobs.count == count && Set(jobs).count == count)
                })
        } catch {
            result = .failure(error)
        }
        await store.stop()
        try result.get()
    }

    private func killWhileListing(_ fixture: FaultFixture, _ store: S3Server) async throws {
        let processes = fixture.processes
        for _ in 0..<2 { try await processes.add() }
        let writer = BatchWriter("b", fixture.producer, topics: fixture.topics, reader: JobDecoder())
        try await writer.open(created: 0)
        try await writer.list(.prefix("s3://pictures/"))
        let batches = BatchStore(fixture.client, BatchOptions())
        for submitted in [30, 90] {
            try await until("more objects are listed", within: .seconds(180)) {
                try await batches.batch("b")?.submitted ?? 0 >= submitted
            }
            // Either of them may be the one that lists.
            for member in processes.members { await processes.kill(member) }
            #expect(try await batches.batch("b")?.state == .listing)
            for _ in 0..<2 { try await processes.add() }
        }
        try await until("the batch is completed", within: .seconds(180)) {
            !Self.completions(fixture.events).isEmpty
        }
    }

    /// The keys of all committed jobs.
    private static func jobs(_ fixture: FaultFixture) async throws -> [String] {
        let reader = try await TopicReader.open(
            fixture.topics.jobs(.normal), from: .beginning,
            properties: [
                "bootstrap.servers": fixture.kafka.bootstrapServers, "isolation.level": "read_committed",
            ], tellsEnds: true, within: .patience)
        var (keys, positions): ([String], [Int32: Int64]) = ([], reader.startOffsets)
        while reader.endOffsets.contains(where: { positions[$0.key, default: 0] < $0.value }) {
            guard let batch = try await reader.nextBatch() else { break }
            for record in batch.records {
                keys.append(String(decoding: record.key ?? [], as: UTF8.self))
                positions[record.partition] = record.offset + 1
            }
            for (partition, end) in batch.ends { positions[partition] = max(end, positions[partition, default: 0]) }
        }
        await reader.close()
        return keys
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
