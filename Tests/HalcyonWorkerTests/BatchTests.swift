import Foundation
import HalcyonCoding
import HalcyonModel
import HalcyonWorker
import Hashing
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

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

    @Test func aRecountIsLeftToALaterOne() async throws {
        try await WorkerFixture.with { cluster in
            let store = BatchStore(cluster.client, BatchOptions())
            let batch = Batch(id: "r", created: 0)
            try await store.beginRecount(of: "r", token: "first")
            try await store.beginRecount(of: "r", token: "second")
            #expect(try await store.open(batch, after: "first") == .superseded)
            #expect(try await store.open(batch, after: "second") == .opened)
            #expect(try await store.open(batch, after: "second") == .lost)
        }
    }

    /// A gateway announces a batch that Redis has lost as if it were new.
    @Test func keysOwnOnlyBatchesThatTheyHaveBegun() async throws {
        try await WorkerFixture.with { cluster in
            let store = BatchStore(cluster.client, BatchOptions())
            for (id, created) in [("new", 20), ("old", 19)] as [(String, Int64)] {
                let announced = try await store.announce(Batch(id: id, owner: "shop", created: 20))
                #expect(announced.isNew && announced.batch?.owner == "shop")
                try await store.open(Batch(id: id, created: created))
            }
            let new = try #require(try await store.batch("new"))
            let old = try #require(try await store.batch("old"))
            #expect(new.owner == "shop" && old.owner == nil)
            // The log has forgotten the batch, and another key has written a message while Redis was down.
            try await store.open(Batch(id: "new", owner: "other", created: 30))
            #expect(try await store.batch("new")?.owner == "shop")
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
                try await until("progress is reported") {
                    cluster.events.all.contains { $0.json["type"] as? String == "halcyon.batch.progress" }
                }
                try await Self.writer(cluster, "p").close(total: 30)
                _ = try await Self.completion(cluster, "p")
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

    @Test func onlyTheCompletionIsForTheWebhookOfTheBatch() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ options in
                options.batches.progressInterval = .milliseconds(1)
                options.reader.checkWebhook = { webhook throws(JobError) in
                    if webhook.text != "shop" { throw JobError(.invalidJob, "not permitted") }
                }
            }) {
                for (batch, webhook) in [("k", "shop"), ("j", "other")] {
                    try await Self.writer(cluster, batch).open(created: 1, webhook: try Webhook(webhook))
                    // The first webhook applies.
                    try await Self.writer(cluster, batch).open(created: 1, webhook: try Webhook("later"))
                    for index in 0..<20 { try await cluster.submit(Self.job(batch, index)) }
                    try await Self.writer(cluster, batch).close(total: 20)
                    _ = try await Self.completion(cluster, batch)
                }
                let reader = try await TopicReader.open(
                    cluster.topics.events, from: .beginning, properties: cluster.broker.consumerProperties,
                    tellsEnds: true, within: .patience)
                var (webhooks, unread) = ([String: String](), Set(reader.endOffsets.keys))
                while !unread.isEmpty {
                    let batch = try #require(try await reader.nextBatch())
                    for record in batch.records {
                        guard let event = record.value.flatMap({ EventAttributes(json: $0) }) else { continue }
                        let header = record.headers.first { $0.name == EventPublisher.webhookHeader }?.value
                        let key = "\(event.type) \(event.batch ?? "")"
                        if let header { webhooks[key] = String(decoding: header, as: UTF8.self) }
                    }
                    unread.subtract(batch.ends.keys)
                }
                await reader.close()
                #expect(webhooks == ["halcyon.batch.completed k": "shop"])
            }
        }
    }

    /// The transactional producer of the tracker rejects the property. Those of the worker accept it.
    @Test func aTrackerWithoutTransactionsLeavesItsGroup() async throws {
        try await WorkerFixture.with { cluster in
            let properties = ["session.timeout.ms": "12000", "enable.idempotence": "false"]
            let kafka = KafkaProperties(
                brokers: cluster.broker.bootstrapServers, properties: properties + MockCluster.fetchProperties)
            let (sink, metrics) = (RecordingLogSink(), Metrics())
            try await cluster.withWorker(
                log: Log(level: .info, sink: sink), metrics: metrics, { $0.kafka = kafka }
            ) {
                try await until("the tracker has left") {
                    sink.count("batches drained") == 1 && metrics.value(of: "halcyon_batches_partitions") == 0
                }
                #expect(
                    sink.count("batches are no longer tracked by this worker; leaving them to other workers") == 1)
                try await cluster.submit(Self.job("t", 0))
                try await until("the job ends") { cluster.events.terminal.count == 1 }
            }
        }
    }

    // MARK: Lists of objects

    private static let dot = Base64.decode("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=") ?? []

    /// Runs `body` with a worker and a store that has eight objects, an empty one for a folder, and one that no job can
    /// have as its source.
    private static func withStore(
        _ change: (inout WorkerOptions) -> Void = { _ in }, _ body: (WorkerFixture, S3Server) async throws -> Void
    ) async throws {
        var objects = Dictionary(uniqueKeysWithValues: (0..<8).map { ("pictures/new/\($0) é.gif", dot) })
        objects["pictures/old/a.gif"] = dot
        objects["pictures/empty/x/"] = []
        let store = try await S3Server.start(objects)
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await WorkerFixture.with { cluster in
                    try await cluster.withWorker({ options in
                        options.sources.s3.endpoint = try? WebURL("http://127.0.0.1:\(store.port)")
                        options.sources.s3.region = S3Server.region
                        options.sources.s3.credentials = .init(
                            accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
                        options.batches.jobsPerPage = 3
                        change(&options)
                    }) { try await body(cluster, store) }
                })
        } catch {
            result = .failure(error)
        }
        await store.stop()
        try result.get()
    }

    /// Has the worker list a prefix, and returns the completed batch.
    private static func listed(
        _ prefix: String, as batch: String, template: String = #"{"width":8,"height":8}"#, _ cluster: WorkerFixture
    ) async throws -> [String: Any] {
        let message = BatchMessage(batch, .list(BatchListing(.prefix(prefix), template: Array(template.utf8))))
        try await cluster.producer.send(cluster.topics.record(of: message))
        return try await completion(cluster, batch)
    }

    @Test func submitsAJobForEachObjectOfAPrefix() async throws {
        try await Self.withStore { cluster, store in
            let batch = try await Self.listed("s3://pictures/new/", as: "l", cluster)
            #expect(batch["total"] as? Int == 8 && batch["error"] == nil)
            #expect(batch["prefix"] as? String == "s3://pictures/new/" && Self.counts(batch)["ready"] == 8)
            let subjects = cluster.events.terminal.compactMap { $0.json["subject"] as? String }
            #expect(subjects.sorted() == (0..<8).map { "s3://pictures/new/\($0)%20%C3%A9.gif" })
            #expect(Set(cluster.events.terminal.map(\.jobID)) == Set((0..<8).map { "l-\($0)" }))
            #expect(store.requests.filter { $0.contains("list-type=2") }.count == 3)
            // A message that is repeated has no effect.
            let again = BatchMessage("l", .list(BatchListing(.prefix("s3://pictures/"), template: Array("{}".utf8))))
            try await cluster.producer.send(cluster.topics.record(of: again))
            _ = try await Self.listed("s3://pictures/old/", as: "m", cluster)
            #expect(Self.completions(cluster, "l").count == 1 && cluster.events.terminal.count == 9)
        }
    }

    @Test func listsThatFailEndTheBatchWithTheReason() async throws {
        try await Self.withStore({ $0.batches.mostListed = 7 }) { cluster, _ in
            for (number, (prefix, template, code, reason)) in [
                ("s3://nowhere/", "{}", "not_found", "NoSuchBucket for s3://nowhere/"),
                ("s3://pictures/none/", "{}", "not_found", "no objects at s3://pictures/none/"),
                ("s3://pictures/old/", #"{"width":-1}"#, "invalid_job", "width"),
                ("s3://pictures/old/", #"{"preset":"none"}"#, "invalid_job", "none"),
                ("s3://pictures", "{}", "invalid_job", "s3://bucket/prefix/"),
            ].enumerated() {
                let batch = try await Self.listed(
                    prefix, as: "e\(number)", template: template, cluster)
                let error = batch["error"] as? [String: String]
                #expect(error?["code"] == code && error?["message"]?.contains(reason) == true, "\(batch)")
                #expect(batch["total"] as? Int == 0 && batch["state"] as? String == "completed")
            }
            #expect(cluster.events.terminal.isEmpty)
            // The jobs of the pages before the limit are part of the batch.
            let batch = try await Self.listed("s3://pictures/new/", as: "limit", cluster)
            #expect((batch["error"] as? [String: String])?["code"] == "too_large")
            #expect(batch["total"] as? Int == 6 && Self.counts(batch)["ready"] == 6)
            let stored = try await BatchStore(cluster.client, BatchOptions()).batch("limit")
            #expect(stored?.error?.message.contains("batches.maximumListed") == true && stored?.submitted == 6)
        }
    }

    /// A list waits for a store that does not respond. Other batches do not wait for the list.
    @Test func listsDelayNoOtherBatch() async throws {
        try await Self.withStore { cluster, store in
            store.fail(with: .slowDown)
            for batch in ["w", "v"] {
                let message = BatchMessage(
                    batch, .list(BatchListing(.prefix("s3://pictures/new/"), template: Array(#"{"width":8}"#.utf8))))
                try await cluster.producer.send(cluster.topics.record(of: message))
            }
            try await until("the store is asked") { store.requests.count >= 2 }
            try await cluster.submit(Self.job("o", 0))
            try await Self.writer(cluster, "o").close(total: 1)
            _ = try await Self.completion(cluster, "o")
            let batches = BatchStore(cluster.client, BatchOptions())
            #expect(try await batches.batch("w")?.state == .listing)
            // A list that waits can be cancelled.
            try await Self.writer(cluster, "v").cancel()
            let cancelled = try await Self.completion(cluster, "v")
            #expect(cancelled["total"] as? Int == 0 && cancelled["cancelledAt"] != nil && cancelled["error"] == nil)
            store.fail(with: nil)
            #expect(Self.counts(try await Self.completion(cluster, "w"))["ready"] == 8)
        }
    }

    @Test func listsEndWhenTheStoreDoesNotRespondForLong() async throws {
        try await Self.withStore({ $0.batches.listPatience = .milliseconds(700) }) { cluster, store in
            store.fail(with: .slowDown)
            let batch = try await Self.listed("s3://pictures/new/", as: "s", cluster)
            let error = batch["error"] as? [String: String]
            #expect(error?["code"] == "http_error" && error?["message"]?.contains("SlowDown") == true)
        }
    }
}
