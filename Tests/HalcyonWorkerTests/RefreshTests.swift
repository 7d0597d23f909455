import Foundation
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import Redis
import Synchronization
import Telemetry
import TestSupport
import Testing

/// Results that are rendered again before they expire. Tests set the time of a refresh themselves instead of waiting.
@Suite(.limitedParallelism) struct RefreshTests {
    private static let due: RedisArgument = "halcyon:refresh:{halcyon.}:due"
    private static let asked: RedisArgument = "halcyon:refresh:{halcyon.}:asked"

    private static func lookOften(_ options: inout WorkerOptions) { options.refresh.interval = .milliseconds(50) }

    private static func job(_ id: String, _ source: String, _ rule: String = "60", _ fields: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(source)","width":60,"height":60,"maxAge":600,"refresh":\#(rule)\#(fields)}"#
    }

    private static func submit(_ cluster: WorkerFixture, _ job: String, _ id: String) async throws -> EventLog.Entry {
        try await cluster.submit(job)
        return try await cluster.events.terminal(of: id)
    }

    private static func refreshes(_ cluster: WorkerFixture) -> [EventLog.Entry] {
        cluster.events.terminal.filter { $0.jobID.hasPrefix("refresh-") }
    }

    /// The ids of the jobs that wait for their refresh, with its time in milliseconds since 1970.
    private static func waiting(_ cluster: WorkerFixture) async throws -> [String: Double] {
        let reply = try await cluster.client.send("ZRANGE", due, "0", "-1", "WITHSCORES").array ?? []
        let texts = reply.compactMap(\.string)
        return Dictionary(
            uniqueKeysWithValues: stride(from: 0, to: texts.count - 1, by: 2).map { (index: Int) -> (String, Double) in
                (texts[index], Double(texts[index + 1]) ?? -1)
            })
    }

    /// Waits until a single job waits for its refresh, and returns its id.
    private static func waitingID(_ cluster: WorkerFixture) async throws -> String {
        try await until("a job waits for its refresh") { try await Self.waiting(cluster).count == 1 }
        return try #require(try await waiting(cluster).keys.first)
    }

    /// Submits a job for the result of the only job that waits, and waits until the result counts as asked for.
    private static func ask(_ cluster: WorkerFixture, _ job: String, _ id: String) async throws -> EventLog.Entry {
        let waiting = try await waitingID(cluster)
        let event = try await submit(cluster, job, id)
        try await until("the result is asked for") {
            try await cluster.client.send("SISMEMBER", Self.asked, .string(waiting)).integer == 1
        }
        return event
    }

    /// Makes the only job that waits due now.
    private static func makeDue(_ cluster: WorkerFixture) async throws {
        _ = try await cluster.client.send("ZADD", due, "1", .string(waitingID(cluster)))
    }

    @Test func resultsThatAreAskedForAreRenderedAgain() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.lookOften) {
                let source = origin.url("/a")
                let fields = #","batch":"b","metadata":1,"delivery":"inline","tags":["t"]"#
                let first = try await Self.submit(cluster, Self.job("a", source, "60", fields), "a")
                #expect(first.data["origin"] as? String == "network")
                for round in 1...2 {
                    let asked = try await Self.ask(cluster, Self.job("ask\(round)", source), "ask\(round)")
                    #expect(asked.data["origin"] as? String == "memory")
                    try await Self.makeDue(cluster)
                    try await until("the result is refreshed") { Self.refreshes(cluster).count == round }
                    // A refresh in progress is due again after ten minutes.
                    try await until("the next refresh is planned") {
                        let now = Date.now.timeIntervalSince1970
                        let times = now * 1000..<(now + 300) * 1000
                        return try await Self.waiting(cluster).values.allSatisfy { times.contains($0) }
                    }
                }
                #expect(origin.requests.count == 3)
                for event in Self.refreshes(cluster) {
                    #expect(event.kind == "ready" && event.data["origin"] as? String == "network")
                    #expect(event.key == first.key)
                    let job = event.data["job"] as? [String: Any] ?? [:]
                    #expect(job["batch"] == nil && job["metadata"] == nil)
                    #expect(((event.data["variants"] as? [[String: Any]])?.first?["data"]) == nil)
                }
                // Nobody has asked since the last refresh.
                try await Self.makeDue(cluster)
                try await until("the job is forgotten") { try await Self.waiting(cluster).isEmpty }
                #expect(origin.requests.count == 3 && Self.refreshes(cluster).count == 2)
                // The result is still there, and is refreshed again from now on.
                #expect(
                    try await Self.submit(cluster, Self.job("z", source), "z").data["origin"] as? String == "memory")
                try await until("the job waits again") { try await Self.waiting(cluster).count == 1 }
            }
        }
        try await origin.stop()
    }

    /// A reader of the event finds that the job has asked for its results.
    @Test func resultsAreAskedForBeforeTheEventIsPublished() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            var options = cluster.options
            // No event fits, so that all jobs wait for their publication.
            options.kafka = KafkaProperties(
                brokers: cluster.broker.bootstrapServers,
                properties: ["message.max.bytes": "1000"] + MockCluster.fetchProperties)
            let source = origin.url("/" + String(repeating: "a", count: 700))
            let ids = ["first", "second"].map { $0 + String(repeating: "-", count: 120) }
            let worker = try await Worker.start(options, log: .silent, metrics: Metrics())
            await worker.ready()
            let result: Result<Void, any Error>
            do {
                try await cluster.submit(Self.job(ids[0], source))
                let waiting = try await Self.waitingID(cluster)
                try await cluster.submit(Self.job(ids[1], source))
                try await until("the result is asked for") {
                    try await cluster.client.send("SISMEMBER", Self.asked, .string(waiting)).integer == 1
                }
                result = .success(())
            } catch { result = .failure(error) }
            _ = await worker.shutdown(gracePeriod: .zero)
            #expect(cluster.events.terminal.isEmpty)
            try result.get()
        }
        try await origin.stop()
    }

    @Test func refreshesShortlyBeforeTheExpiry() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                Self.lookOften(&$0)
                $0.results.jitter = 0
            } _: {
                let begun = Date.now.timeIntervalSince1970
                let rule = #""beforeExpiry""#
                let first = try await Self.submit(cluster, Self.job("a", origin.url("/a"), rule), "a")
                let second = try await Self.ask(cluster, Self.job("b", origin.url("/a"), rule), "b")
                #expect(first.kind == "ready" && second.kind == "ready")
                let asked = Date.now.timeIntervalSince1970
                @Sendable func seconds() async throws -> Double {
                    (try await Self.waiting(cluster).values.first ?? 0) / 1000
                }
                let planned = try await seconds()
                #expect(planned >= begun + 569 && planned <= Date.now.timeIntervalSince1970 + 571)
                // A job that is due although its result lives much longer waits again, for example after another job
                // has rendered the result.
                try await Self.makeDue(cluster)
                // While it is being refreshed, it is due again after ten minutes.
                try await until("the job waits again") {
                    let next = try await seconds()
                    return next > begun + 500 && next < asked + 585
                }
                #expect(origin.requests.count == 1 && Self.refreshes(cluster).isEmpty)
            }
        }
        try await origin.stop()
    }

    @Test func failedRefreshesEnd() async throws {
        let image = try SampleImages.bytes()
        let isBroken = Atomic(false)
        let origin = RawOrigin { _ in
            isBroken.load(ordering: .relaxed)
                ? RawOrigin.answer("500 Oops") : RawOrigin.Step.response(image, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.lookOften) {
                let first = try await Self.submit(
                    cluster, Self.job("a", origin.url("/a"), "60", #","fallback":"initials:F""#), "a")
                isBroken.store(true, ordering: .relaxed)
                _ = try await Self.ask(cluster, Self.job("b", origin.url("/a")), "b")
                try await Self.makeDue(cluster)
                try await until("the refresh has failed") { !Self.refreshes(cluster).isEmpty }
                #expect(Self.refreshes(cluster).map(\.kind) == ["failed"])
                try await until("the job is forgotten") { try await Self.waiting(cluster).isEmpty }
                // The result stays.
                let last = try await Self.submit(cluster, Self.job("c", origin.url("/a")), "c")
                #expect(last.data["origin"] as? String == "memory" && last.key == first.key)
            }
        }
        try await origin.stop()
    }

    @Test func purgedResultsAreNotRefreshed() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.lookOften) {
                _ = try await Self.submit(cluster, Self.job("a", origin.url("/a")), "a")
                _ = try await Self.ask(cluster, Self.job("b", origin.url("/a")), "b")
                let source = try Source.web(WebURL(origin.url("/a")))
                _ = try await Purger(cluster.client).run(Purge(.source(source)))
                try await Self.makeDue(cluster)
                try await until("the job is forgotten") { try await Self.waiting(cluster).isEmpty }
                #expect(Self.refreshes(cluster).isEmpty && origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }
}
