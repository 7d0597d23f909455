import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Cancelling by attributes, pausing and listing, with complete workers.
@Suite(.limitedParallelism) struct ControlTests {
    private static func drawn(_ id: String, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"initials:\#(id.prefix(3))","width":8,"height":8\#(members)}"#
    }

    private static func service(_ cluster: WorkerFixture) -> PauseService {
        PauseService(
            PauseStore(cluster.client, topics: cluster.topics),
            ControlPublisher(cluster.producer, topics: cluster.topics))
    }

    /// Waits until the worker handles the next control message. It handles one after the other, so all effects of the
    /// previous ones are there.
    private static func waitForNextMessage(_ cluster: WorkerFixture, _ metrics: Metrics) async throws {
        let name = #"halcyon_control_messages_total{kind="cancel"}"#
        let before = metrics.value(of: name)
        try await cluster.publish(.cancel(.job("nobody")))
        try await until("the next message is handled") { metrics.value(of: name) > before }
    }

    // MARK: Cancel

    /// Each job is cancelled by the target only if it has the attribute and the tenant.
    @Test(arguments: ["tenant", "tag", "source"])
    func cancelsJobsInFlightAndThoseThatWait(_ attribute: String) async throws {
        let origin = CancelTests.stallingOrigin()
        let url = origin.url("/a")
        let target: CancelTarget =
            switch attribute {
            case "tenant": .tenant("t")
            case "tag": .tag("x", of: "t")
            default: .source(try Source(url), of: "t")
            }
        // A job that the target selects, and others.
        func jobs(_ prefix: String) -> [String] {
            [
                CancelTests.job("\(prefix) selected", origin, #","tenant":"t","tags":["w","x"]"#),
                CancelTests.job("\(prefix) other tenant", origin, #","tenant":"u","tags":["x"]"#),
                CancelTests.job("\(prefix) no tenant", origin, #","tags":["x"]"#),
            ]
        }
        try await WorkerFixture.with { cluster in
            for job in jobs("waits") { try await cluster.submit(job) }
            try await cluster.publish(.cancel(target))
            try await cluster.withWorker {
                #expect(try await cluster.events.terminal(of: "waits selected").kind == "cancelled")
                try await until("the others are in flight") { origin.requests.count == 2 }
                // Jobs that are submitted later are not affected by the first cancellation.
                try await Task.sleep(for: .milliseconds(5))
                for job in jobs("flies") { try await cluster.submit(job) }
                try await until("all jobs are in flight") { origin.requests.count == 3 }
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.publish(.cancel(target))
                #expect(try await cluster.events.terminal(of: "flies selected").kind == "cancelled")
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.submit(Self.drawn("L", #","tenant":"t","tags":["x"]"#))
                #expect(try await cluster.events.terminal(of: "L").kind == "ready")
                try await CancelTests.expectOneTerminalEvent(cluster, of: "waits selected", "flies selected")
                for id in ["waits other tenant", "waits no tenant", "flies other tenant", "flies no tenant"] {
                    #expect(!cluster.events.terminal.contains { $0.jobID == id })
                }
                for id in ["other tenant", "no tenant"] {
                    for prefix in ["waits", "flies"] { try await cluster.publish(.cancel(.job("\(prefix) \(id)"))) }
                }
                try await until("all jobs have ended") {
                    Set(cluster.events.terminal.map(\.jobID)).count == 8
                }
            }
        }
        try await origin.stop()
    }

    /// A cached result does not save a job from its cancellation, and jobs that wait for a retry are cancelled too.
    @Test func cancelsJobsWithCachedResultsAndRetries() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("503 Service Unavailable") }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(Self.drawn("A", #","tenant":"t""#))
                #expect(try await cluster.events.terminal(of: "A").kind == "ready")
            }
            try await cluster.submit(
                #"{"id":"again","source":"initials:A","width":8,"height":8,"tenant":"t"}"#)
            try await cluster.publish(.cancel(.tenant("t")))
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics) {
                $0.retries = RetryPolicy()
                $0.retries.base = 600
                $0.retries.inProcess = 3600
                $0.retries.budget = 7200
            } _: {
                #expect(try await cluster.events.terminal(of: "again").kind == "cancelled")
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.submit(CancelTests.job("retry", origin, #","tenant":"t""#))
                try await until("the job waits for its retry") { RetryTests.retries(metrics, "process") == 1 }
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.publish(.cancel(.tenant("t")))
                #expect(try await cluster.events.terminal(of: "retry").kind == "cancelled")
            }
        }
        try await origin.stop()
    }

    // MARK: Pause

    @Test func aPausedLaneWaitsAcrossRestarts() async throws {
        let gate = Latch()
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with { cluster in
            let service = Self.service(cluster)
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics) {
                try await cluster.submit(CancelTests.job("in flight", origin), .low)
                try await until("the job is in flight") { origin.requests.count == 1 }
                #expect(try await service.pause(.lane(.low)).isNew)
                try await until("the worker knows it") { metrics.value(of: #"halcyon_lane_paused{lane="low"}"#) == 1 }
                try await Self.waitForNextMessage(cluster, metrics)
                for number in 0..<20 { try await cluster.submit(Self.drawn("low\(number)"), .low) }
                try await cluster.submit(Self.drawn("late", #","deadline":0.2"#), .low)
                try await until("the jobs are held") { metrics.value(of: "halcyon_paused_records") == 21 }
                // Other lanes continue, and so do jobs in flight.
                try await cluster.submit(Self.drawn("N"))
                #expect(try await cluster.events.terminal(of: "N").kind == "ready")
                gate.open()
                #expect(try await cluster.events.terminal(of: "in flight").kind == "ready")
                #expect(cluster.events.terminal.count == 2)
                // Held records do not count as stuck.
                try await until("no offset is held") { metrics.value(of: "halcyon_committed_offset_held_seconds") == 0 }
            }
            // A drain returns them at once.
            #expect(metrics.value(of: #"halcyon_drained_jobs_total{fate="handed_back"}"#) == 21)
            let next = Metrics()
            try await cluster.withWorker(metrics: next) {
                try await until("the jobs are held again") { next.value(of: "halcyon_paused_records") == 21 }
                try await cluster.submit(Self.drawn("M"))
                #expect(try await cluster.events.terminal(of: "M").kind == "ready")
                #expect(cluster.events.terminal.count == 3)
                #expect(try await service.resume(.lane(.low)))
                try await until("all jobs have ended") { cluster.events.terminal.count == 24 }
                let late = try await cluster.events.terminal(of: "late")
                #expect(late.code == "expired", "\(late.json)")
                #expect(next.value(of: "halcyon_paused_records") == 0)
                #expect(try await !service.resume(.lane(.low)))
            }
            #expect(Set(cluster.events.terminal.map(\.jobID)).count == 24)
            #expect(cluster.events.terminal.count { $0.kind == "ready" } == 23)
        }
        try await origin.stop()
    }

    /// The tenant of a job may also come from its preset.
    @Test func aPausedTenantWaitsWhileOthersContinue() async throws {
        let preset = try Preset("card", json: Array(#"{"job":{"width":8,"height":8,"tenant":"slow"}}"#.utf8))
        try await WorkerFixture.with(partitions: 1) { cluster in
            let service = Self.service(cluster)
            _ = try await service.pause(.tenant("slow"))
            for number in 0..<100 {
                try await cluster.submit(Self.drawn("s\(number)", #","tenant":"slow""#))
            }
            try await cluster.submit(#"{"id":"preset","source":"initials:P","preset":"card"}"#)
            for number in 0..<100 {
                try await cluster.submit(Self.drawn("q\(number)", #","tenant":"quick""#))
            }
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, { $0.presets = [preset] }) {
                try await until("the jobs of the other tenant have ended") { cluster.events.terminal.count == 100 }
                #expect(cluster.events.terminal.allSatisfy { $0.jobID.hasPrefix("q") })
                #expect(metrics.value(of: "halcyon_paused_records") == 101)
                #expect(metrics.value(of: "halcyon_tenants_paused") == 1)
                try await until("no offset is held") { metrics.value(of: "halcyon_committed_offset_held_seconds") == 0 }
            }
            let next = Metrics()
            try await cluster.withWorker(metrics: next, { $0.presets = [preset] }) {
                try await until("the jobs are held again") { next.value(of: "halcyon_paused_records") == 101 }
                #expect(try await service.resume(.tenant("slow")))
                try await until("all jobs have ended") { cluster.events.terminal.count == 201 }
            }
            #expect(Set(cluster.events.terminal.map(\.jobID)).count == 201)
            #expect(cluster.events.terminal.allSatisfy { $0.kind == "ready" })
        }
    }

    @Test func retriesOfAPausedLaneWait() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1), Metrics())
        try await WorkerFixture.with(topics: Topics(retryDelays: [.milliseconds(200)])) { cluster in
            try await cluster.withWorker(metrics: metrics, RetryTopicTests.useRetryTopics) {
                _ = try await Self.service(cluster).pause(.lane(.low))
                try await until("the worker knows it") { metrics.value(of: #"halcyon_lane_paused{lane="low"}"#) == 1 }
                try await Self.waitForNextMessage(cluster, metrics)
                let record = ConsumedRecord(
                    topic: cluster.topics.jobs(.low), partition: 0, offset: 9_000_000,
                    timestamp: Timestamp.now.milliseconds, value: Array(Self.drawn("low").utf8))
                let history = AttemptHistory(began: record.timestamp)
                let message = RetryMessage(
                    provenance: OriginalRecord(record), history: history, due: Timestamp.now.milliseconds,
                    hasStarted: false)
                try await cluster.producer.send(message.record(of: record, to: cluster.topics.retries[0]))
                try await until("the retry is held") { metrics.value(of: "halcyon_paused_records") == 1 }
                // Retries of other lanes continue in the same topic.
                try await cluster.submit(origin.job("other"))
                #expect(try await cluster.events.terminal(of: "other").kind == "ready")
                #expect(cluster.events.terminal.count == 1)
                try await cluster.publish(.resume(.lane(.low)))
                #expect(try await cluster.events.terminal(of: "low").kind == "ready")
            }
        }
        try await origin.stop()
    }

    /// Programs other than Halcyon write to the topic alone, and workers store the change in Redis.
    @Test func controlMessagesAloneSurviveRestartsAndAnEmptyRedis() async throws {
        try await WorkerFixture.with { cluster in
            let store = PauseStore(cluster.client, topics: cluster.topics)
            try await cluster.publish(.pause(.lane(.low)))
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics) {
                try await until("the pause is stored") { try await store.pauses().lanes == [.low] }
                _ = try await cluster.client.send("FLUSHALL")
                try await cluster.publish(.pause(.tenant("t")))
                try await until("both pauses are stored") { try await store.pauses().paused.count == 2 }
                try await cluster.submit(Self.drawn("T", #","tenant":"t""#), .high)
                try await cluster.submit(Self.drawn("low"), .low)
                try await until("the jobs are held") { metrics.value(of: "halcyon_paused_records") == 2 }
                try await Task.sleep(for: .milliseconds(5))
                try await cluster.publish(.resume(.lane(.low)))
                #expect(try await cluster.events.terminal(of: "low").kind == "ready")
            }
            let next = Metrics()
            try await cluster.withWorker(metrics: next) {
                try await until("the tenant is still paused") { next.value(of: "halcyon_paused_records") == 1 }
                #expect(next.value(of: #"halcyon_lane_paused{lane="low"}"#) == 0)
                _ = try await Self.service(cluster).resume(.tenant("t"))
                #expect(try await cluster.events.terminal(of: "T").kind == "ready")
            }
        }
    }

    // MARK: List

    @Test func listsTheJobsInFlightOnAllWorkers() async throws {
        let origin = CancelTests.stallingOrigin()
        try await WorkerFixture.with { cluster in
            let lister = JobLister(
                cluster.client, ControlPublisher(cluster.producer, topics: cluster.topics))
            #expect(try await lister.list().workers.isEmpty)
            try await cluster.withWorkers(2) { _ in
                let ids = (0..<12).map { "job \($0)" }
                for id in ids {
                    try await cluster.submit(CancelTests.job(id, origin, #","tenant":"t""#))
                }
                try await cluster.submit(CancelTests.job("high", origin, #","tenant":"u""#), .high)
                // A list ends as soon as all workers have replied.
                let patience = Duration.seconds(60)
                try await until("all jobs are listed") { try await lister.list(within: patience).total == 13 }
                let list = try await lister.list(within: patience)
                #expect(Set(list.jobs.map(\.id)) == Set(ids + ["high"]))
                #expect(list.workers.count == 2 && list.missing.isEmpty)
                #expect(Set(list.jobs.map(\.worker)) == Set(list.workers))
                #expect(list.jobs.map(\.submitted) == list.jobs.map(\.submitted).sorted())
                #expect(list.jobs.allSatisfy { $0.attempt == 1 && $0.age >= 0 && $0.source == origin.url("/a") })
                try await until("a worker loads the source") {
                    try await lister.list(within: patience).jobs.contains { $0.stage == .loading }
                }
                try await until("the heartbeats count the jobs of each tenant") {
                    let workers = try await WorkerRegistry(cluster.client).entries().compactMap { WorkerInfo(json: $0) }
                    let tenants = workers.reduce(into: [:]) { $0.merge($1.tenants, uniquingKeysWith: +) }
                    return tenants["t"] == 12
                }
                let oldest = try await lister.list(limit: 3, tenant: "t", within: patience)
                #expect(oldest.jobs.count == 3 && oldest.total == 12 && oldest.jobs.allSatisfy { $0.tenant == "t" })
                #expect(oldest.jobs.map(\.id) == list.jobs.filter { $0.tenant == "t" }.prefix(3).map(\.id))
                #expect(try await lister.list(lane: .high, within: patience).jobs.map(\.id) == ["high"])
                // A worker that is registered and does not reply is reported.
                let gone = WorkerInfo(id: "gone", host: "h", pid: 1, version: "1", since: 0, threads: 1)
                try await WorkerRegistry(cluster.client).register(gone, for: .seconds(600))
                try await until("only that worker is missing") {
                    let partial = try await lister.list(within: .milliseconds(500))
                    return partial.missing == ["gone"] && partial.total == 13
                }
                try await cluster.publish(.cancel(.tenant("t")))
                try await cluster.publish(.cancel(.tenant("u")))
                try await until("all jobs have ended") { cluster.events.terminal.count == 13 }
                // Jobs are in flight until shortly after their events.
                try await until("no jobs are listed") {
                    try await lister.list(within: .milliseconds(500)).total == 0
                }
                try await until("the heartbeats count the finished jobs and tell the memory") {
                    let workers = try await WorkerRegistry(cluster.client).entries().compactMap { WorkerInfo(json: $0) }
                    let running = workers.filter { $0.id != "gone" }
                    return running.reduce(0) { $0 + $1.finished } == 13 && running.contains { $0.rate > 0 }
                        && running.allSatisfy { $0.memory > 1 << 20 }
                }
                // Replies expire. Some may have expired since.
                let keys = try await cluster.client.send("KEYS", "halcyon:jobs:*").array?.compactMap(\.string) ?? []
                for key in keys {
                    #expect(try await cluster.client.send("PTTL", .string(key)).integer != -1)
                }
            }
        }
        try await origin.stop()
    }
}
