import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Jobs that start later, and jobs that only load their source.
@Suite(.limitedParallelism) struct ScheduleTests {
    private static let shortDelays = Topics(startDelays: [.milliseconds(300), .milliseconds(900)])
    private static let longDelay = Topics(startDelays: [.seconds(3600)])

    private static func useDelayTopics(_ options: inout WorkerOptions) { options.retries.inProcess = 0 }

    private static func scheduled(_ metrics: Metrics) -> Double { metrics.value(of: "halcyon_scheduled_total") }

    private static func queued(_ event: EventLog.Entry) -> Double {
        (event.data["timings"] as? [String: Double])?["queued"] ?? -1
    }

    @Test func jobsWaitInDelayTopicsForTheirStart() async throws {
        let (origin, metrics) = (try SampleImages.origin([]), Metrics())
        try await WorkerFixture.with(topics: Self.shortDelays) { cluster in
            try await cluster.withWorker(metrics: metrics, Self.useDelayTopics) {
                let submitted = Timestamp.now.seconds
                let job = { (id: String, start: String) in
                    #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":60,"height":60,"notBefore":\#(start)}"#
                }
                try await cluster.submit(job("later", "2.5"))
                try await cluster.submit(job("at", #""\#(Timestamp(seconds: submitted + 1.5).rfc3339)""#))
                try await cluster.submit(job("now", "0"))
                try await cluster.submit(job("past", #""2001-01-01T00:00:00Z""#))
                for id in ["now", "past"] { #expect(try await cluster.events.terminal(of: id).kind == "ready") }
                let at = try await cluster.events.terminal(of: "at")
                #expect(at.kind == "ready" && Timestamp.now.seconds >= submitted + 1.4)
                let later = try await cluster.events.terminal(of: "later")
                #expect(later.kind == "ready" && Timestamp.now.seconds >= submitted + 2.5)
                // The wait for the start is neither an attempt nor time in a queue.
                #expect(later.data["attempts"] == nil && Self.queued(later) >= 0)
                #expect(Self.queued(later) < 1000 * (Timestamp.now.seconds - submitted - 2.5) + 50)
                // That jobs are moved is shown with later starts below. On a slow machine, these may begin at once.
                #expect(cluster.events.terminal.count == 4)
            }
        }
        try await origin.stop()
    }

    /// The rate permits one job in a thousand seconds.
    @Test func movesThroughDelayTopicsDoNotCountTowardsTheRateOfTheTenant() async throws {
        try await WorkerFixture.with(topics: Self.shortDelays) { cluster in
            try await cluster.withWorker {
                Self.useDelayTopics(&$0)
                $0.tenants.limits.rates["shop"] = 0.001
            } _: {
                try await cluster.submit(
                    #"{"id":"a","source":"initials:A","width":60,"height":60,"tenant":"shop","notBefore":1}"#)
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
            }
        }
    }

    @Test func shortWaitsStayInTheWorker() async throws {
        let metrics = Metrics()
        try await WorkerFixture.with(topics: Self.longDelay) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                let submitted = Timestamp.now.seconds
                try await cluster.submit(#"{"id":"a","source":"initials:A","width":60,"height":60,"notBefore":1}"#)
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                #expect(Timestamp.now.seconds >= submitted + 1 && Self.scheduled(metrics) == 0)
            }
        }
    }

    /// A job that waits on purpose does not look like one that waits for workers.
    @Test func scheduledJobsCountAsDelayedAndNotAsLag() async throws {
        let metrics = Metrics()
        let names = [
            "halcyon_jobs_in_flight", "halcyon_jobs_delayed", "halcyon_delayed_offsets", "halcyon_lag_offsets",
            "halcyon_committed_offset_held_seconds",
        ]
        let delayed: [Double] = [1, 1, 1, 0, 0]
        try await WorkerFixture.with(topics: Self.longDelay) { cluster in
            try await cluster.withWorker(metrics: metrics, Self.useDelayTopics) {
                try await cluster.submit(
                    #"{"id":"a","source":"initials:A","width":60,"height":60,"notBefore":3000}"#)
                try await until("the job is delayed") { names.map { metrics.value(of: $0) } == delayed }
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
                try await until("no job is delayed") { metrics.value(of: "halcyon_jobs_delayed") == 0 }
            }
        }
    }

    @Test func scheduledJobsCanBeCancelledAndExpire() async throws {
        let metrics = Metrics()
        try await WorkerFixture.with(topics: Self.longDelay) { cluster in
            try await cluster.withWorker(metrics: metrics, Self.useDelayTopics) {
                let job = { (id: String, fields: String) in
                    #"{"id":"\#(id)","source":"initials:A","width":60,"height":60,\#(fields)}"#
                }
                try await cluster.submit(job("cancelled", #""notBefore":3000"#))
                try await until("the job waits") { Self.scheduled(metrics) == 1 }
                try await cluster.publish(.cancel(.job("cancelled")))
                #expect(try await cluster.events.terminal(of: "cancelled").kind == "cancelled")
                // The deadline is absolute, and before the start.
                let soon = Timestamp(seconds: Timestamp.now.seconds + 1).rfc3339
                try await cluster.submit(job("expired", #""notBefore":3000,"deadline":"\#(soon)""#))
                let expired = try await cluster.events.terminal(of: "expired")
                #expect(expired.code == "expired" && expired.data["attempts"] as? Int == 1)
                // A deadline in seconds counts from the start.
                try await cluster.submit(job("counted", #""notBefore":1,"deadline":60"#))
                try await cluster.submit(job("over", #""notBefore":1,"deadline":0"#))
                #expect(try await cluster.events.terminal(of: "counted").kind == "ready")
                #expect(try await cluster.events.terminal(of: "over").code == "expired")
            }
        }
    }

    @Test func shutdownLeavesScheduledJobsToTheNextWorker() async throws {
        let metrics = Metrics()
        try await WorkerFixture.with(topics: Topics(startDelays: [.seconds(4)])) { cluster in
            var options = cluster.options
            Self.useDelayTopics(&options)
            let worker = try await Worker.start(options, log: .silent, metrics: metrics)
            await worker.ready()
            try await cluster.submit(#"{"source":"initials:A","width":60,"height":60,"notBefore":4}"#)
            // On a slow machine, the job may begin before it was read.
            try await until("the job waits") { Self.scheduled(metrics) == 1 || !cluster.events.terminal.isEmpty }
            #expect(await worker.shutdown(gracePeriod: .seconds(3600)) == 0)
            try await cluster.withWorker(Self.useDelayTopics) {
                try await until("the job has ended") { !cluster.events.terminal.isEmpty }
                let ready = cluster.events.terminal[0]
                #expect(ready.kind == "ready" && ready.jobID.hasPrefix("halcyon.jobs-"))
                #expect(ready.data["attempts"] == nil)
            }
            #expect(cluster.events.terminal.count == 1)
        }
    }

    @Test func theBudgetOfRetriesBeginsWithTheStart() async throws {
        let origin = try FlakyOrigin(failing: 2)
        var topics = Self.shortDelays
        topics.retryDelays = [.milliseconds(200)]
        try await WorkerFixture.with(topics: topics) { cluster in
            try await cluster.withWorker(RetryTopicTests.useRetryTopics) {
                // The job was moved to the delay topic an hour ago, and the budget is half an hour.
                let now = Timestamp.now.milliseconds
                let record = ConsumedRecord(
                    topic: cluster.topics.jobs(.normal), partition: 0, offset: 9_000_000, timestamp: now - 3_600_000,
                    value: Array(origin.job("a", #","notBefore":3600"#).utf8))
                let message = RetryMessage(
                    provenance: OriginalRecord(record), history: AttemptHistory(began: record.timestamp), due: now,
                    hasStarted: false)
                try await cluster.producer.send(message.record(of: record, to: cluster.topics.delays[0]))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
            }
        }
        try await origin.stop()
    }

    @Test func prefetchLoadsOnlyTheSource() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let source = origin.url("/a")
                for (id, place) in [("first", "network"), ("again", "source-cache")] {
                    try await cluster.submit(#"{"id":"\#(id)","source":"\#(source)","width":60,"prefetch":true}"#)
                    let ready = try await cluster.events.terminal(of: id)
                    #expect(ready.kind == "ready" && ready.data["origin"] as? String == place)
                    #expect((ready.data["variants"] as? [Any])?.isEmpty == true && ready.data["key"] == nil)
                }
                #expect(try await cluster.storedKeys().allSatisfy { !$0.contains(":60x") })
                try await cluster.submit(#"{"id":"render","source":"\#(source)","width":60,"height":60}"#)
                let ready = try await cluster.events.terminal(of: "render")
                #expect(ready.data["origin"] as? String == "source-cache")
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test func prefetchCanBeCancelledBySource() async throws {
        let metrics = Metrics()
        try await WorkerFixture.with(topics: Self.longDelay) { cluster in
            try await cluster.withWorker(metrics: metrics, Self.useDelayTopics) {
                try await cluster.submit(#"{"id":"a","source":"initials:A","prefetch":true,"notBefore":3000}"#)
                try await until("the job waits") { Self.scheduled(metrics) == 1 }
                try await cluster.publish(.cancel(.source(.initials(try Initials("A")), of: nil)))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
            }
        }
    }

    @Test func prefetchTriesAlternativesAndFails() async throws {
        let image = try SampleImages.bytes()
        let origin = RawOrigin { request in
            request.path == "/a" ? RawOrigin.Step.response(image) : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let missing = origin.url("/missing")
                try await cluster.submit(
                    #"{"id":"a","source":"\#(missing)","alternatives":["\#(origin.url("/a"))"],"prefetch":true}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["alternative"] as? String == origin.url("/a"))
                try await cluster.submit(#"{"id":"b","source":"file:///none","prefetch":true}"#)
                #expect(try await cluster.events.terminal(of: "b").kind == "failed")
            }
        }
        try await origin.stop()
    }
}
