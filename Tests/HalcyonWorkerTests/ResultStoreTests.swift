import Concurrency
import Formats
import Foundation
import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults
@testable import HalcyonWorker

/// Results that outlive Redis, with complete workers and a folder.
@Suite(.limitedParallelism) struct ResultStoreTests {
    private struct Fixture {
        let cluster: WorkerFixture
        let origin: RawOrigin
        let options: ResultStoreOptions
        let metrics: Metrics

        /// Submits a job for a result of the origin and waits for its end.
        func end(
            _ id: String, _ members: String = "", path: String = "/a", output: String = #""width":64"#
        ) async throws -> EventLog.Entry {
            try await cluster.submit(
                #"{"id":"\#(id)","source":"\#(origin.url(path))",\#(output),"cache":{"source":false}\#(members)}"#)
            return try await cluster.events.terminal(of: id)
        }

        /// Waits until the store has written this many results.
        func written(_ count: Int) async throws {
            try await until("results are written") {
                metrics.value(of: "halcyon_result_store_written_total") >= Double(count)
            }
        }

        /// Makes Redis forget everything.
        func forget() async throws { _ = try await cluster.client.send("FLUSHALL") }

        var isInRedis: Bool {
            get async throws { try await !cluster.storedKeys().filter { $0.split(separator: ":").count == 3 }.isEmpty }
        }
    }

    private static func with(
        headers: [String] = ["Cache-Control: max-age=600"],
        _ change: (inout ResultStoreOptions) -> Void = { _ in }, _ body: (Fixture) async throws -> Void
    ) async throws {
        let (photograph, folder, metrics) = (try SampleImages.bytes(), TemporaryFolder("results"), Metrics())
        let origin = RawOrigin { request in
            request.path == "/none" ? RawOrigin.answer("404 Not Found") : RawOrigin.Step.response(photograph, headers)
        }
        var store = ResultStoreOptions(.folder("\(folder.path)/store"))
        (store.readTimeout, store.writeTimeout) = (.seconds(600), .seconds(600))
        change(&store)
        try await WorkerFixture.with { [store] cluster in
            try await cluster.withWorker(metrics: metrics, { $0.resultStore = store }) {
                try await body(Fixture(cluster: cluster, origin: origin, options: store, metrics: metrics))
            }
        }
        try await origin.stop()
        await folder.remove()
    }

    @Test func evictedResultsAreRestoredForTheRestOfTheirLife() async throws {
        try await Self.with { fixture in
            let first = try await fixture.end("a")
            #expect(first.origin == "network")
            try await fixture.written(1)
            try await fixture.forget()
            let second = try await fixture.end("b")
            #expect(second.origin == "store" && second.key == first.key && fixture.origin.requests.count == 1)
            #expect(second.data["expiresAt"] as? String == first.data["expiresAt"] as? String)
            #expect(try await fixture.isInRedis)
            #expect(try await fixture.end("c").origin == "memory")
        }
    }

    @Test func manyJobsForOneEvictedResultReadItOnce() async throws {
        try await Self.with { fixture in
            _ = try await fixture.end("a")
            try await fixture.written(1)
            try await fixture.forget()
            for number in 0..<1000 {
                try await fixture.cluster.submit(
                    #"{"id":"\#(number)","source":"\#(fixture.origin.url("/a"))","width":64,"cache":{"source":false}}"#)
            }
            try await until("all jobs have ended") { fixture.cluster.events.terminal.count == 1001 }
            let origins = Dictionary(grouping: fixture.cluster.events.terminal, by: \.origin).mapValues(\.count)
            #expect(origins["network"] == 1 && origins["store", default: 0] >= 1, "\(origins)")
            #expect(origins.keys.allSatisfy { ["network", "store", "memory", "coalesced"].contains($0) }, "\(origins)")
            #expect(fixture.metrics.value(of: "halcyon_result_store_reads_total{result=\"hit\"}") == 1)
        }
    }

    @Test func severalVariantsAreRestoredSeparately() async throws {
        try await Self.with { fixture in
            let variants = #""variants":[{"width":64},{"width":32}]"#
            _ = try await fixture.end("a")
            try await fixture.written(1)
            try await fixture.forget()
            // One of the two is in the store.
            let ready = try await fixture.end("b", output: variants)
            #expect(ready.kind == "ready" && ready.variants.count == 2)
            #expect(fixture.origin.requests.count == 2)
            try await fixture.written(2)
            try await fixture.forget()
            let again = try await fixture.end("c", output: variants)
            #expect(again.origin == "store" && again.variants.count == 2 && fixture.origin.requests.count == 2)
        }
    }

    /// What must not be stored in Redis never reaches the store.
    @Test(arguments: [
        ("Cache-Control: no-store", ""), ("Cache-Control: max-age=600", #","maxAge":-1"#),
        ("Cache-Control: max-age=0", ""),
    ]) func doesNotStoreWhatMayNotBeStored(header: String, members: String) async throws {
        try await Self.with(headers: [header]) { fixture in
            for id in ["a", "b"] {
                let ready = try await fixture.end(id, members)
                #expect(ready.origin == "network")
            }
        }
    }

    /// A job whose response must not be stored removes no result of another rule, as in Redis.
    @Test func uncacheableResponseRemovesNoResultOfAnotherRule() async throws {
        try await Self.with(headers: ["Cache-Control: no-store"]) { fixture in
            func submit(_ id: String, _ members: String) async throws -> EventLog.Entry {
                try await fixture.cluster.submit(
                    #"{"id":"\#(id)","source":"\#(fixture.origin.url("/a"))","width":64,\#(members)}"#)
                return try await fixture.cluster.events.terminal(of: id)
            }
            _ = try await submit("a", #""maxAge":600"#)
            try await fixture.written(1)
            #expect(try await submit("b", #""cache":{"reload":true}"#).origin == "network")
            // Waits for what is queued for the result, and writes it again if it is gone.
            #expect(try await submit("c", #""maxAge":600,"cache":{"store":"required"}"#).origin == "memory")
            let written = fixture.metrics.value(of: "halcyon_result_store_written_total")
            #expect(written == 1)
        }
    }

    @Test func jobsCanExcludeTheStore() async throws {
        try await Self.with { fixture in
            let members = #","maxAge":600,"cache":{"source":false,"store":false}"#
            func submit(_ id: String) async throws -> EventLog.Entry {
                try await fixture.cluster.submit(
                    #"{"id":"\#(id)","source":"\#(fixture.origin.url("/a"))","width":64\#(members)}"#)
                return try await fixture.cluster.events.terminal(of: id)
            }
            _ = try await submit("a")
            try await fixture.forget()
            #expect(try await submit("b").origin == "network")
            _ = try await fixture.end("c", path: "/other")
            try await fixture.written(1)
            try await fixture.forget()
            #expect(try await fixture.end("d", path: "/other").origin == "store")
            #expect(try await submit("e").origin == "network")
        }
    }

    @Test func requiredResultsAreDurableBeforeTheirEvent() async throws {
        try await Self.with { fixture in
            func submit(_ id: String, _ members: String = "") async throws -> EventLog.Entry {
                try await fixture.cluster.submit(
                    #"{"id":"\#(id)","source":"\#(fixture.origin.url("/" + id))","width":64\#(members),"#
                        + #""cache":{"store":"required"}}"#)
                return try await fixture.cluster.events.terminal(of: id)
            }
            for number in 0..<20 {
                let ready = try await submit("\(number)")
                #expect(ready.kind == "ready")
                let store = try ResultStore.open(fixture.options, log: .silent, metrics: Metrics())
                store.start()
                let key = try #require(ResultKey(ready.key))
                #expect(await store.find(key) != nil)
                await store.close(within: .seconds(5))
            }
            // A result that may not be stored cannot be durable.
            let failed = try await submit("20", #","maxAge":-1"#)
            #expect(failed.kind == "failed" && failed.code == "invalid_job", "\(failed.json)")
            #expect(failed.message.contains("maxAge"))
        }
    }

    /// A store that fails disturbs no job, except those that require it.
    @Test func unavailableStoreFailsOnlyJobsThatRequireIt() async throws {
        let (photograph, metrics) = (try SampleImages.bytes(), Metrics())
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        let bucket = RawOrigin { _ in RawOrigin.answer("503 Slow Down") }
        try await WorkerFixture.with { cluster in
            var store = ResultStoreOptions(.s3(bucket: "results", prefix: ""))
            store.s3.endpoint = try WebURL("http://127.0.0.1:\(bucket.port)")
            store.readTimeout = .seconds(1)
            try await cluster.withWorker(metrics: metrics, { ($0.resultStore, $0.retries.budget) = (store, 3) }) {
                for number in 0..<10 {
                    try await cluster.submit(#"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":64}"#)
                    #expect(try await cluster.events.terminal(of: "\(number)").kind == "ready")
                }
                try await cluster.submit(
                    #"{"id":"must","source":"\#(origin.url("/0"))","width":64,"cache":{"store":"required"}}"#)
                let failed = try await cluster.events.terminal(of: "must")
                #expect(failed.kind == "failed" && failed.code == "internal")
                #expect(failed.message.contains("result store"), "\(failed.message)")
            }
        }
        #expect(metrics.value(of: "halcyon_result_store_up{operation=\"write\"}") == 0)
        try await origin.stop()
        try await bucket.stop()
    }

    /// A job makes no attempt while the store is skipped.
    @Test func requiredResultsWaitForAStoreThatIsSkipped() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        let isWorking = Lock(false)
        let bucket = RawOrigin { request in
            guard isWorking.withLock({ $0 }) else { return RawOrigin.answer("403 Forbidden") }
            if request.path.contains("?") { return RawOrigin.answer("200 OK", [], "<Empty/>") }
            return request.head.hasPrefix("PUT") ? RawOrigin.answer() : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with(topics: Topics(retryDelays: [.milliseconds(200)])) { cluster in
            var store = ResultStoreOptions(.s3(bucket: "results", prefix: ""))
            store.s3.endpoint = try WebURL("http://127.0.0.1:\(bucket.port)")
            store.readTimeout = .seconds(60)
            let options: (inout WorkerOptions) -> Void = { [store] in
                ($0.retries.attempts, $0.retries.inProcess) = (1, 0.01)
                $0.resultStore = store
            }
            try await cluster.withWorker(options) {
                func submit(_ id: String, _ members: String = "") async throws -> EventLog.Entry {
                    try await cluster.submit(
                        #"{"id":"\#(id)","source":"\#(origin.url("/" + id))","width":64\#(members)}"#)
                    return try await cluster.events.terminal(of: id)
                }
                // Five failures open the circuit breaker, and two probes that fail keep it open for about four seconds.
                var number = 0
                while bucket.requests.count(where: { $0.head.hasPrefix("PUT") }) < 7 {
                    #expect(try await submit("\(number)").kind == "ready")
                    number += 1
                }
                isWorking.withLock { $0 = true }
                let ready = try await submit("must", #","cache":{"store":"required"}"#)
                #expect(ready.kind == "ready", "\(ready.json)")
            }
        }
        try await origin.stop()
        try await bucket.stop()
    }

    /// A result whose record exceeds the metadata of S3 fails only jobs that require the store, and without retries.
    @Test func resultsThatDoNotFitFailJobsThatRequireTheStore() async throws {
        let photograph = try SampleImages.bytes()
        let headers = ["Cache-Control: max-age=600", "ETag: \"\(String(repeating: "e", count: 2000))\""]
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, headers) }
        let bucket = RawOrigin { request in
            if request.path.contains("?") { return RawOrigin.answer("200 OK", [], "<Empty/>") }
            return request.head.hasPrefix("PUT") ? RawOrigin.answer() : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with { cluster in
            var store = ResultStoreOptions(.s3(bucket: "results", prefix: ""))
            store.s3.endpoint = try WebURL("http://127.0.0.1:\(bucket.port)")
            store.readTimeout = .seconds(600)
            let options: (inout WorkerOptions) -> Void = { [store] in
                RetryTests.useShortBackoff(&$0)
                $0.resultStore = store
            }
            try await cluster.withWorker(options) {
                func submit(_ id: String, _ members: String = "") async throws -> EventLog.Entry {
                    try await cluster.submit(
                        #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":64\#(members)}"#)
                    return try await cluster.events.terminal(of: id)
                }
                let ready = try await submit("may")
                let failed = try await submit("must", #","cache":{"store":"required"}"#)
                #expect(ready.kind == "ready", "\(ready.json)")
                #expect(failed.kind == "failed" && failed.code == "invalid_job", "\(failed.json)")
                #expect(failed.message.contains("does not fit"))
            }
        }
        try await origin.stop()
        try await bucket.stop()
    }

    /// A job whose result Redis loses before the store has it makes the result again.
    @Test func requiredResultsSurviveTheLossOfRedis() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        let isOpen = Lock(false)
        let bucket = RawOrigin { request in
            // Lists and deletions.
            if request.path.contains("?") { return RawOrigin.answer("200 OK", [], "<Empty/>") }
            guard request.head.hasPrefix("PUT") else { return RawOrigin.answer("404 Not Found") }
            return [.wait { isOpen.withLock { $0 } }] + RawOrigin.answer()
        }
        try await WorkerFixture.with { cluster in
            var store = ResultStoreOptions(.s3(bucket: "results", prefix: ""))
            store.s3.endpoint = try WebURL("http://127.0.0.1:\(bucket.port)")
            (store.readTimeout, store.writeTimeout) = (.seconds(600), .seconds(600))
            // The first result fills the queue, so that the second waits before it is written.
            store.queueBytes = 1024
            let options: (inout WorkerOptions) -> Void = { [store] in
                RetryTests.useShortBackoff(&$0)
                $0.resultStore = store
            }
            try await cluster.withWorker(options) {
                let fields = #""width":64,"cache":{"store":"required","source":false}"#
                for id in ["a", "b"] {
                    try await cluster.submit(#"{"id":"\#(id)","source":"\#(origin.url("/" + id))",\#(fields)}"#)
                    try await until("the result is in Redis") {
                        try await cluster.storedKeys().count { $0.split(separator: ":").count == 3 }
                            == (id == "a" ? 1 : 2)
                    }
                }
                _ = try await cluster.client.send("FLUSHALL")
                isOpen.withLock { $0 = true }
                for id in ["a", "b"] {
                    let ready = try await cluster.events.terminal(of: id)
                    #expect(ready.kind == "ready", "\(ready.json)")
                }
            }
        }
        try await origin.stop()
        try await bucket.stop()
    }

    @Test func requirementWithoutAStoreIsInvalid() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(
                    #"{"id":"a","source":"\#(origin.url("/a"))","width":64,"cache":{"store":"required"}}"#)
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "invalid_job" && failed.message.contains("results.store"))
            }
        }
        try await origin.stop()
    }

    /// A job that asks for a longer life extends it in both places.
    @Test func extendedLivesAreKept() async throws {
        try await Self.with { fixture in
            let first = try await fixture.end("a")
            try await fixture.written(1)
            let longer = try await fixture.end("b", #","maxAge":5000"#)
            #expect(longer.origin == "memory" && longer.key == first.key)
            try await fixture.written(2)
            try await fixture.forget()
            let restored = try await fixture.end("c")
            #expect(restored.origin == "store")
            #expect(restored.data["expiresAt"] as? String == longer.data["expiresAt"] as? String)
        }
    }

    /// A purge by tag finds a result as long as it lives, whoever extends its life.
    @Test func extensionKeepsTheTagsOfEarlierJobs() async throws {
        try await Self.with { fixture in
            let first = try await fixture.end("made", #","tags":["made"]"#)
            #expect(try await fixture.end("hit", #","tags":["hit"]"#).origin == "memory")
            #expect(try await fixture.end("longer", #","maxAge":5000"#).origin == "memory")
            let (key, earliest) = (try #require(ResultKey(first.key)), Timestamp.now.seconds + 1000)
            let store = try ResultStore.open(fixture.options, log: .silent, metrics: Metrics())
            for tag in ["made", "hit"] {
                let index = "halcyon:tag:{/\(tag)}"
                let end = try await fixture.cluster.client.send("ZSCORE", .string(index), .string(first.key)).string
                let seconds = (end.flatMap { Double($0) } ?? 0) / 1000
                #expect(seconds > earliest)
                let entry = ObjectName.entry(key, in: .tag(tag, of: nil))
                try await until("the entry in the store lasts as long") {
                    let expiry = try await store.storage.list(entry, after: nil).first?.expiresAt
                    return expiry ?? 0 > earliest
                }
            }
            await store.close(within: .seconds(5))
        }
    }

    @Test func onlyIfCachedFindsEvictedResults() async throws {
        try await Self.with { fixture in
            func submit(_ id: String) async throws -> EventLog.Entry {
                try await fixture.cluster.submit(
                    #"""
                    {"id":"\#(id)","source":"\#(fixture.origin.url("/a"))","width":64,
                    "cache":{"source":false,"onlyIfCached":true}}
                    """#)
                return try await fixture.cluster.events.terminal(of: id)
            }
            #expect(try await submit("a").code == "not_found")
            _ = try await fixture.end("b")
            try await fixture.written(1)
            try await fixture.forget()
            #expect(try await submit("c").origin == "store")
            #expect(try await submit("d").origin == "memory")
            #expect(fixture.origin.requests.count == 1)
        }
    }

    /// Workers hear of a purge later than it happens. What was made in between stays.
    @Test func resultsMadeAfterAPurgeStay() async throws {
        try await Self.with { fixture in
            let first = try await fixture.end("a", #","tags":["x"]"#)
            try await fixture.written(1)
            let key = try #require(ResultKey(first.key))
            let time = try #require(
                try await fixture.cluster.client.send("HGET", .string(first.key), "fence").string.flatMap { Int64($0) })
            func publish(at time: Int64) async throws {
                let before = fixture.metrics.value(of: #"halcyon_control_messages_total{kind="purge"}"#)
                // Messages are handled one after the other: with the second one, the first has been handled.
                for _ in 1...2 { try await fixture.cluster.publish(.purge(Purge(.key(key)), at: time)) }
                try await until("the messages arrive") {
                    fixture.metrics.value(of: #"halcyon_control_messages_total{kind="purge"}"#) == before + 2
                }
                try await fixture.forget()
            }
            try await publish(at: time - 1)
            #expect(try await fixture.end("b").origin == "store")
            try await publish(at: time)
            #expect(try await fixture.end("c").origin == "network")
        }
    }

    /// The public URL leads to the file.
    @Test(arguments: [nil, "{source.path}/{width}.{format}"]) func eventsNamePublicURLs(names: String?) async throws {
        try await Self.with({
            $0.publicURL = "https://images.test"
            $0.names = names.flatMap(FileNameTemplate.init)
        }) { fixture in
            guard case .folder(let store) = fixture.options.location else { return }
            let folder = names == nil ? store : store + "/files"
            func url(_ event: EventLog.Entry) -> String? {
                (event.data["variants"] as? [[String: Any]])?.first?["url"] as? String
            }
            let first = try await fixture.end("a")
            try await fixture.written(1)
            let path = try #require(url(first)).replacing("https://images.test", with: folder)
            let file = try [UInt8](Data(contentsOf: URL(filePath: path)))
            let stored = try await fixture.cluster.client.send("HGET", .string(first.key), "body").bytes
            #expect(stored == file)
            #expect(names == nil || path.hasPrefix("\(folder)/a/64-"))
            #expect(try await url(fixture.end("b")) == url(first))
            // Redis has lost it, and the store gives it back.
            try await fixture.forget()
            let restored = try await fixture.end("again")
            #expect(restored.origin == "store" && url(restored) == url(first))
            // The file of an alternative has the name of the alternative.
            let alternative = try await fixture.end(
                "alternative", #","alternatives":["\#(fixture.origin.url("/a"))"]"#, path: "/none")
            #expect(url(alternative) == url(first))
            // Results that are not in the store have no URL.
            #expect(try await url(fixture.end("c", #","maxAge":-1"#, path: "/c")) == nil)
            let excluded = #","cache":{"source":false,"store":false}"#
            try await fixture.cluster.submit(
                #"{"id":"d","source":"\#(fixture.origin.url("/d"))","width":64\#(excluded)}"#)
            #expect(try await url(fixture.cluster.events.terminal(of: "d")) == nil)
        }
    }

    enum PurgeKind: CaseIterable { case source, tag, key, tenant }

    /// A purge reaches results whose Redis entries are gone, and what it purged does not come back.
    @Test(arguments: PurgeKind.allCases) func purgeReachesEvictedResults(_ kind: PurgeKind) async throws {
        try await Self.with { fixture in
            let tenant = kind == .tenant ? #","tenant":"shop""# : ""
            let first = try await fixture.end("a", #","tags":["x"]"# + tenant)
            try await fixture.written(1)
            try await fixture.forget()
            let target: Purge.Target =
                switch kind {
                case .source: .source(try Source(fixture.origin.url("/a")))
                case .tag: .tag("x")
                case .key: .key(try #require(ResultKey(first.key)))
                case .tenant: .tenant("shop")
                }
            let store = try ResultStore.open(fixture.options, log: .silent, metrics: Metrics())
            let service = PurgeService(
                fixture.cluster.client, store, fixture.cluster.producer, topics: fixture.cluster.topics)
            #expect(try await service.run(Purge(target)).count == 1)
            #expect(try await fixture.end("b", tenant).origin == "network")
            try await fixture.written(2)
            try await fixture.forget()
            #expect(try await fixture.end("c", tenant).origin == "store")
            await store.close(within: .seconds(5))
        }
    }

    /// A purge removes results from Redis, too, if Redis has lost its own indexes.
    @Test(arguments: [PurgeKind.source, .tag]) func purgeReachesResultsThatWerePutBack(_ kind: PurgeKind) async throws {
        try await Self.with { fixture in
            let first = try await fixture.end("a", #","tags":["x"]"#)
            try await fixture.written(1)
            try await fixture.forget()
            #expect(try await fixture.end("b").origin == "store")
            let key = try #require(ResultKey(first.key))
            _ = try await fixture.cluster.client.send("UNLINK", "halcyon:{\(key.sourceHash)}:results")
            let target = kind == .tag ? Purge.Target.tag("x") : .source(try Source(fixture.origin.url("/a")))
            let store = try ResultStore.open(fixture.options, log: .silent, metrics: Metrics())
            let service = PurgeService(
                fixture.cluster.client, store, fixture.cluster.producer, topics: fixture.cluster.topics)
            #expect(try await service.run(Purge(target)).count == 1)
            #expect(try await fixture.end("c").origin == "network")
            await store.close(within: .seconds(5))
        }
    }
}
