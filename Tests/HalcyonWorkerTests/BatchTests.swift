import Foundation
import HalcyonCluster
import HalcyonModel
import Kafka
import TestSupport
import Testing

/// Batches, with complete workers.
@Suite(.limitedParallelism) struct BatchTests {
    private static func job(_ batch: String, _ index: Int?, source: String = "initials:A") -> String {
        let membership = index.map { #"{"id":"\#(batch)","index":\#($0)}"# } ?? #""\#(batch)""#
        let name = index.map { "\(batch)-\($0)" } ?? "\(batch)-\(source)"
        return
            #"{"id":"\#(name)","source":"\#(source)","width":\#(8 + (index ?? 0) % 50),"height":8,"batch":\#(membership)}"#
    }

    private static let missing = "file:///nowhere.png"

    private static func completions(_ cluster: WorkerFixture, _ batch: String) -> [[String: Any]] {
        cluster.events.all.filter { $0.json["type"] as? String == "halcyon.batch.completed" }
            .compactMap { $0.data["batch"] as? [String: Any] }.filter { $0["id"] as? String == batch }
    }

    /// Waits for the completion of a batch, and expects it to stay the only one.
    private static func completion(_ cluster: WorkerFixture, _ batch: String) async throws -> [String: Any] {
        try await until("the batch is completed") { !completions(cluster, batch).isEmpty }
        // What follows a message that led to the completion has been handled when a later batch is completed.
        let later = "\(batch)-later"
        try await writer(cluster, later).close(total: 0)
        try await until("the later batch is completed") { !completions(cluster, later).isEmpty }
        let found = completions(cluster, batch)
        #expect(found.count == 1)
        return found[0]
    }

    private static func writer(_ cluster: WorkerFixture, _ batch: String) -> BatchWriter {
        BatchWriter(batch, cluster.producer, topics: cluster.topics, reader: .init())
    }

    private static func counts(_ batch: [String: Any]) -> [String: Int] { batch["counts"] as? [String: Int] ?? [:] }

    @Test func countsOutcomesAndCompletesOnce() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorkers(2) { _ in
                for index in 0..<40 {
                    try await cluster.submit(Self.job("b", index, source: index % 8 == 0 ? Self.missing : "initials:A"))
                }
                // Jobs that are submitted twice count once.
                for index in 0..<10 { try await cluster.submit(Self.job("b", index)) }
                // A producer in another language may choose another partition.
                let close = #"{"batch":"b","close":{"total":40}}"#
                try await cluster.producer.send(
                    ProducerRecord(topic: cluster.topics.batches, partition: 1, value: Array(close.utf8)))
                let batch = try await Self.completion(cluster, "b")
                #expect(batch["total"] as? Int == 40 && batch["ended"] as? Int == 40)
                #expect(Self.counts(batch)["ready"] == 35 && Self.counts(batch)["failed"] == 5)
                #expect(batch["failures"] as? String == "/v1/batches/b/failures")
                let store = BatchStore(cluster.client, BatchOptions())
                let failures = try await store.failures(of: "b", from: 0, count: 100)
                #expect(Set(failures.compactMap(\.index)) == [0, 8, 16, 24, 32])
                #expect(failures.allSatisfy { !$0.code.isEmpty && !$0.message.isEmpty && $0.job.hasPrefix("b-") })
                #expect(try await store.batch("b")?.state == .completed)
                let jobs = try await FailedJobReader(
                    cluster.topics, properties: ["bootstrap.servers": cluster.broker.bootstrapServers]
                ).jobs(of: failures)
                #expect(jobs.count == 5 && jobs.allSatisfy { $0.job["batch"] == nil && $0.job["id"] != nil })
            }
        }
    }

    @Test func jobsWithoutAnIndexAreIdentifiedByTheirIDs() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for name in ["A", "B", "C", "B"] {
                    try await cluster.submit(Self.job("n", nil, source: "initials:\(name)"))
                }
                try await until("the jobs have ended") { cluster.events.terminal.count == 4 }
                try await Self.writer(cluster, "n").close(total: 3)
                #expect(Self.counts(try await Self.completion(cluster, "n"))["ready"] == 3)
            }
        }
    }

    @Test func countsAgainAfterRedisHasLostEverything() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let writer = Self.writer(cluster, "f")
                try await writer.open(created: 0 + Int64(Date().timeIntervalSince1970 * 1000))
                for index in 0..<20 { try await cluster.submit(Self.job("f", index)) }
                try await until("the first jobs have ended") { cluster.events.terminal.count == 20 }
                _ = try await cluster.client.send("FLUSHALL")
                for index in 20..<30 { try await cluster.submit(Self.job("f", index)) }
                try await writer.close(total: 30)
                #expect(Self.counts(try await Self.completion(cluster, "f"))["ready"] == 30)
            }
        }
    }

    /// Redis loses the counts after all jobs have ended, before the batch is closed.
    @Test func countsAgainWhenNoJobEndsAnyMore() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for index in 0..<20 { try await cluster.submit(Self.job("g", index)) }
                let store = BatchStore(cluster.client, BatchOptions())
                try await until("all jobs are counted") { try await store.batch("g")?.counts.ended == 20 }
                _ = try await cluster.client.send("FLUSHALL")
                try await Self.writer(cluster, "g").close(total: 20)
                #expect(Self.counts(try await Self.completion(cluster, "g"))["ready"] == 20)
            }
        }
    }

    /// As after a failover: some counts are gone, and the rest is there.
    @Test func findsMissingCountsWithoutAnyMessage() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.batches.recountAfter = .milliseconds(400) }) {
                for index in 0..<20 { try await cluster.submit(Self.job("h", index)) }
                let store = BatchStore(cluster.client, BatchOptions())
                try await until("all jobs are counted") { try await store.batch("h")?.counts.ended == 20 }
                _ = try await cluster.client.pipeline([
                    ["SETBIT", "halcyon:batch:{h}:ended:0", 7, 0], ["HINCRBY", "halcyon:batch:{h}", "ready", -1],
                    ["HINCRBY", "halcyon:batch:{h}", "ended", -1],
                ])
                try await Self.writer(cluster, "h").close(total: 20)
                #expect(Self.counts(try await Self.completion(cluster, "h"))["ready"] == 20)
            }
        }
    }

    @Test func cancelsTheJobsThatHaveNotEnded() async throws {
        let origin = CancelTests.stallingOrigin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let writer = Self.writer(cluster, "c")
                for index in 0..<5 { try await cluster.submit(Self.job("c", index)) }
                try await until("the first jobs have ended") { cluster.events.terminal.count == 5 }
                for index in 5..<10 {
                    try await cluster.submit(Self.job("c", index, source: origin.url("/\(index)").description))
                }
                try await until("the transfers have started") { origin.requests.count == 5 }
                try await writer.cancel()
                try await until("the others are cancelled") { cluster.events.terminal.count == 10 }
                // Later jobs never start.
                for index in 10..<15 { try await cluster.submit(Self.job("c", index)) }
                try await writer.close(total: 15)
                let counts = Self.counts(try await Self.completion(cluster, "c"))
                #expect(counts["ready"] == 5 && counts["cancelled"] == 10)
            }
        }
        try await origin.stop()
    }

    @Test func reportsProgress() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.batches.progressInterval = .milliseconds(1) }) {
                for index in 0..<30 { try await cluster.submit(Self.job("p", index)) }
                try await Self.writer(cluster, "p").close(total: 30)
                _ = try await Self.completion(cluster, "p")
                let progress = cluster.events.all.filter { $0.json["type"] as? String == "halcyon.batch.progress" }
                #expect(!progress.isEmpty)
            }
        }
    }

    @Test func invalidMessagesAreIgnored() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for text in [
                    "", "{", #"{"batch":"x"}"#, #"{"batch":"x","close":{"total":-1}}"#, #"{"close":{"total":1}}"#,
                ] {
                    try await cluster.producer.send(
                        ProducerRecord(topic: cluster.topics.batches, partition: 0, value: Array(text.utf8)))
                }
                try await cluster.submit(Self.job("i", 0))
                try await Self.writer(cluster, "i").close(total: 1)
                #expect(Self.counts(try await Self.completion(cluster, "i"))["ready"] == 1)
            }
        }
    }
}
