import HalcyonSources
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// The spans of jobs, as a collector decodes them with OpenTelemetry's own definitions.
@Suite(.limitedParallelism) struct JobTraceTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let producer = "\(trace)-b7ad6b7169203331"
    private static let path = "/a?sig=hidden1&x"

    private static func job(_ id: String, _ origin: RawOrigin, _ path: String = path, _ more: String = "") -> String {
        CoalescingTests.job(id, origin, path, width: 40, more)
    }

    @Test func tracesAJobFromItsMessageToItsEvent() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(50))
        var events: [String: String] = [:]
        let spans = try await TracingFixture.with { fixture in
            try await fixture.cluster.submit(Self.job("with", origin), traceparent: "00-\(Self.producer)-01")
            events["with"] = try await fixture.cluster.events.terminal(of: "with").json["traceparent"] as? String
            try await fixture.cluster.submit(Self.job("hit", origin))
            events["hit"] = try await fixture.cluster.events.terminal(of: "hit").json["traceparent"] as? String
            // A job whose producer does not sample it is not recorded, and its event inherits the traceparent.
            try await fixture.cluster.submit(Self.job("not", origin), traceparent: "00-\(Self.producer)-00")
            events["not"] = try await fixture.cluster.events.terminal(of: "not").json["traceparent"] as? String
            let started = fixture.cluster.events.all.filter { $0.kind == "started" && $0.jobID == "with" }
            #expect(started.map { $0.json["traceparent"] as? String } == [events["with"]])
        }
        spans.check(knowing: [Self.producer])
        #expect(spans.jobs.count == 2)
        let job = try spans.job("with")
        #expect("\(job.trace)-\(job.parent)" == Self.producer && job.status == 0)
        #expect(events["with"] == job.traceparent)
        #expect(events["not"] == "00-\(Self.producer)-00")
        #expect(
            try spans.stages(of: "with")
                == ["queue", "lease", "fetch", "decode", "process", "encode", "store", "publish"])
        for (name, value) in [
            ("messaging.destination.name", "halcyon.jobs"), ("messaging.operation.type", "process"),
            ("messaging.consumer.group.name", "halcyon-workers"), ("halcyon.outcome", "ready"),
            ("halcyon.origin", "network"), ("halcyon.lane", "normal"),
        ] as [(String, TraceCollector.Attribute)] {
            #expect(job.attributes[name] == value, "\(name)")
        }
        #expect(job.attributes["messaging.kafka.offset"] != nil && job.attributes["halcyon.key"] != nil)
        let fetch = try #require(spans.named("fetch").first)
        #expect(spans.named("fetch").count == 1 && fetch.kind == 3)
        let body = try SampleImages.bytes().count
        #expect(
            fetch.attributes == [
                "halcyon.source": "http", "http.request.method": "GET", "server.address": "127.0.0.1",
                "server.port": .integer(Int64(origin.port)),
                "url.full": .string(origin.url("/a?sig=REDACTED&REDACTED")),
                "http.response.status_code": 200, "http.response.body.size": .integer(Int64(body)),
                "halcyon.origin": "network",
            ])
        #expect(fetch.end - fetch.start >= 50_000_000)
        let publish = spans.named("publish")
        #expect(publish.allSatisfy { $0.kind == 4 && $0.attributes["messaging.destination.name"] == "halcyon.events" })
        // Without a traceparent a job starts its own trace.
        let hit = try spans.job("hit")
        #expect(hit.parent.isEmpty && hit.trace != job.trace && events["hit"] == hit.traceparent)
        #expect(try spans.stages(of: "hit") == ["queue", "publish"] && hit.attributes["halcyon.origin"] == "memory")
        try await origin.stop()
    }

    @Test func spanDurationsMatchTheTimingsOfTheEvent() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(50))
        var timings: [String: Double] = [:]
        let spans = try await TracingFixture.with { fixture in
            try await fixture.cluster.submit(Self.job("a", origin))
            timings = try await fixture.cluster.events.terminal(of: "a").data["timings"] as? [String: Double] ?? [:]
        }
        for (span, timing) in [
            ("lease", "waited"), ("fetch", "fetch"), ("decode", "decode"), ("process", "process"), ("encode", "encode"),
        ] {
            let found = try #require(spans.named(span).first)
            let milliseconds = Double(found.end - found.start) / 1e6
            // The times of spans are whole nanoseconds, and timings are not.
            #expect(abs(milliseconds - timings[timing, default: -1]) < 0.001, "\(span)")
        }
        try await origin.stop()
    }

    /// Jobs for the same result are served by one of them, and jobs for other sizes by its fetch.
    @Test(arguments: [true, false], [1, 3])
    func coalescedJobsLinkToTheJobThatServedThem(isSame: Bool, workers: Int) async throws {
        let latch = Latch()
        defer { latch.open() }
        let origin = try CoalescingTests.origin(behind: latch)
        let count = workers == 1 ? 3 : 24
        let spans = try await TracingFixture.with(workers: workers) { fixture in
            let jobs = (0..<count).map { CoalescingTests.job("\($0)", origin, "/a", width: isSame ? 40 : 40 + $0) }
            try await CoalescingTests.submit(jobs, fixture.cluster)
            try await CoalescingTests.waitUntilJobsShare(
                isSame ? "result" : "source", jobs: count, fixture.workerMetrics)
            latch.open()
            _ = try await CoalescingTests.terminalEvents(count, of: fixture.cluster)
        }
        spans.check()
        #expect(origin.requests.count == 1 && spans.jobs.count == count)
        #expect(spans.named("fetch").count == 1 && spans.named("encode").count == (isSame ? 1 : count))
        let fetch = try #require(spans.named("fetch").first)
        let leader = try #require(spans.jobs.first { $0.id == fetch.parent })
        #expect(leader.links.isEmpty)
        // On a busy machine a job in flight may come too late to wait. It finds the source or the result in a cache.
        let waiting = spans.jobs.filter { !$0.links.isEmpty }
        #expect(waiting.count >= (count - 1) / 2)
        for job in waiting {
            #expect(job.links == [leader.place] && job.trace != leader.trace)
            #expect(spans.children(of: job).contains { $0.name == "lease" })
        }
        try await origin.stop()
    }

    @Test func failedSpansCarryTheErrorCode() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("404 Not Found") }
        let broken = RawOrigin { _ in RawOrigin.Step.response(Array("GIF89a and no more".utf8)) }
        let spans = try await TracingFixture.with { fixture in
            try await fixture.cluster.submit(Self.job("gone", origin, "/a"))
            try await fixture.cluster.submit(Self.job("broken", broken, "/b"))
            try await fixture.cluster.submit(#"{"id":"none","width":-1,"source":"http://example.org/"}"#)
            _ = try await CoalescingTests.terminalEvents(3, of: fixture.cluster)
        }
        spans.check()
        let gone = try spans.job("gone")
        #expect(gone.status == 2 && gone.message == "not_found" && gone.attributes["error.type"] == "not_found")
        #expect(gone.attributes["halcyon.outcome"] == "failed" && gone.attributes["halcyon.attempts"] == 1)
        #expect(try spans.stages(of: "gone") == ["queue", "lease", "fetch", "publish"])
        let fetch = try #require(spans.children(of: gone).first { $0.name == "fetch" })
        #expect(fetch.status == 2 && fetch.message == "not_found" && fetch.attributes["error.type"] == "not_found")
        #expect(try spans.job("broken").status == 2)
        let render = try #require(spans.named("render").first)
        #expect(spans.named("render").count == 1 && render.status == 2)
        // An invalid job has no id.
        let refused = try #require(spans.jobs.first { $0.attributes["halcyon.outcome"] == "refused" })
        #expect(refused.status == 2 && refused.message == "invalid_job")
        try await origin.stop()
        try await broken.stop()
    }

    /// Attempts separated by a retry topic have their own spans in one trace: below the span of the producer or,
    /// without one, below the first attempt.
    @Test(arguments: [true, false]) func delayedAttemptsShareOneTrace(hasTraceparent: Bool) async throws {
        let origin = try FlakyOrigin(failing: 2)
        let spans = try await TracingFixture.with(topics: RetryTopicTests.shortDelays, RetryTopicTests.useRetryTopics) {
            fixture in
            try await fixture.cluster.submit(
                origin.job("x"), traceparent: hasTraceparent ? "00-\(Self.producer)-01" : nil)
            #expect(try await fixture.cluster.events.terminal(of: "x").kind == "ready")
        }
        spans.check(knowing: [Self.producer])
        let attempts = spans.jobs.sorted { $0.start < $1.start }
        #expect(attempts.map { $0.attributes["halcyon.outcome"] } == ["postponed", "postponed", "ready"])
        #expect(Set(attempts.map(\.trace)).count == 1 && attempts.map(\.status) == [2, 2, 0])
        if hasTraceparent {
            #expect(attempts.allSatisfy { "\($0.trace)-\($0.parent)" == Self.producer })
        } else {
            #expect(attempts.map(\.parent) == ["", attempts[0].id, attempts[0].id])
        }
        #expect(spans.named("fetch").map(\.status).sorted() == [0, 2, 2])
        try await origin.stop()
    }

    @Test func attemptsWithinAWorkerShareOneSpan() async throws {
        let origin = try FlakyOrigin(failing: 2)
        let spans = try await TracingFixture.with(RetryTests.useShortBackoff) { fixture in
            try await fixture.cluster.submit(origin.job("x"))
            #expect(try await fixture.cluster.events.terminal(of: "x").kind == "ready")
        }
        spans.check()
        #expect(spans.jobs.count == 1 && spans.jobs[0].attributes["halcyon.attempts"] == 3)
        #expect(spans.named("fetch").map(\.status).sorted() == [0, 2, 2])
        try await origin.stop()
    }

    @Test func zeroRatioRecordsOnlySampledParents() async throws {
        let origin = try CoalescingTests.origin(after: .zero)
        let spans = try await TracingFixture.with(ratio: 0) { fixture in
            try await fixture.cluster.submit(Self.job("a", origin))
            #expect(try await fixture.cluster.events.terminal(of: "a").json["traceparent"] == nil)
            try await fixture.cluster.submit(Self.job("b", origin), traceparent: "00-\(Self.producer)-01")
            _ = try await fixture.cluster.events.terminal(of: "b")
        }
        #expect(spans.jobs.map(\.trace) == [Self.trace])
        try await origin.stop()
    }
}
