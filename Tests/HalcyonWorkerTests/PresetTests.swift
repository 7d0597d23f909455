import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// Jobs with presets, with complete workers.
@Suite(.limitedParallelism) struct PresetTests {
    private static func preset(_ width: Int, _ more: String = "") throws -> Preset {
        try Preset("card", json: Array(#"{"job":{"width":\#(width),"format":"png"}\#(more)}"#.utf8))
    }

    /// Registers presets as the command and the gateway do.
    private static func service(_ cluster: WorkerFixture) -> PresetService {
        PresetService(
            PresetStore(cluster.client, topics: cluster.topics),
            ControlPublisher(cluster.producer, topics: cluster.topics)
        ) { _ in false }
    }

    private static func job(_ id: String, _ preset: String = #""card""#, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"initials:A","preset":\#(preset)\#(members)}"#
    }

    private static func preset(of event: EventLog.Entry) -> [String: Any]? {
        (event.data["job"] as? [String: Any])?["preset"] as? [String: Any]
    }

    @Test func followsPutUpdateAndDelete() async throws {
        try await WorkerFixture.with { try await Self.followChanges(in: $0) }
    }

    @Test(.sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable), arguments: [false, true])
    func followsChangesOnApacheKafka(exactlyOnce: Bool) async throws {
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        try await WorkerFixture.with(broker: .apache, topics: topics) { cluster in
            try await Self.followChanges(in: cluster, exactlyOnce: exactlyOnce)
        }
    }

    private static func followChanges(in cluster: WorkerFixture, exactlyOnce: Bool = false) async throws {
        let service = Self.service(cluster)
        try await cluster.withWorker {
            $0.transactions = exactlyOnce ? TransactionOptions() : nil
        } _: {
            try await cluster.submit(Self.job("before"))
            let before = try await cluster.events.terminal(of: "before")
            #expect(before.code == "invalid_job" && before.message == "preset: there is no preset card")

            // A job that follows the registration finds the preset, even if the worker has not been notified.
            #expect(
                try await service.put(Self.preset(40), checkedBy: JobDecoder()) == .stored(version: 1))
            try await cluster.submit(Self.job("first"))
            let first = try await cluster.events.terminal(of: "first")
            #expect(first.kind == "ready" && first.variant["width"] as? Int == 40)
            #expect(Self.preset(of: first)?["name"] as? String == "card")
            #expect(Self.preset(of: first)?["version"] as? Int == 1)
            let plain = #"{"id":"plain","source":"initials:A","width":40,"format":"png"}"#
            try await cluster.submit(plain)
            let same = try await cluster.events.terminal(of: "plain")
            #expect(same.key == first.key && same.origin == "memory" && Self.preset(of: same) == nil)

            #expect(
                try await service.put(Self.preset(50), checkedBy: JobDecoder()) == .stored(version: 2))
            // As `halcyon submit` and the gateway write it.
            try await cluster.submit(Self.job("second", #"{"name":"card","version":2}"#))
            let second = try await cluster.events.terminal(of: "second")
            #expect(second.variant["width"] as? Int == 50 && second.key != first.key)
            #expect(Self.preset(of: second)?["version"] as? Int == 2)

            try await cluster.submit(Self.job("wide", #""card""#, #","width":60"#))
            let wide = try await cluster.events.terminal(of: "wide")
            #expect(wide.code == "invalid_job" && wide.message.hasPrefix("width: cannot be set"))

            #expect(try await service.delete("card"))
            try await until("the worker has received the control message") {
                let id = "after-\(UInt64.random(in: 0 ... .max))"
                try await cluster.submit(Self.job(id))
                return try await cluster.events.terminal(of: id).code == "invalid_job"
            }
        }
    }

    @Test func presetsOfTheSettingsTakePrecedence() async throws {
        try await WorkerFixture.with { cluster in
            _ = try await Self.service(cluster).put(Self.preset(40), checkedBy: JobDecoder())
            let fixed = try Self.preset(30, #","version":9"#)
            try await cluster.withWorker {
                $0.presets = [fixed]
                $0.reader.requiresPreset = true
            } _: {
                try await cluster.submit(Self.job("a"))
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.variant["width"] as? Int == 30 && Self.preset(of: event)?["version"] as? Int == 9)
                try await cluster.submit(#"{"id":"b","source":"initials:A","width":8}"#)
                let refused = try await cluster.events.terminal(of: "b")
                #expect(refused.code == "invalid_job" && refused.message.hasPrefix("preset: is missing"))
            }
        }
    }

    /// Changes that were announced before the worker started are found in Redis.
    @Test func aNewWorkerKnowsRegisteredPresets() async throws {
        try await WorkerFixture.with { cluster in
            _ = try await Self.service(cluster).put(Self.preset(40), checkedBy: JobDecoder())
            try await cluster.submit(Self.job("a"))
            try await cluster.withWorker {
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready")
            }
        }
    }

    /// A worker that starts after Redis has lost the presets, and before another process stores them again.
    @Test func retriesJobsWithUnknownPresetsThatMayHaveBeenLost() async throws {
        try await WorkerFixture.with { cluster in
            let metrics = Metrics()
            try await cluster.withWorker(
                metrics: metrics,
                {
                    $0.retries = RetryPolicy()
                    $0.retries.attempts = 100
                    $0.retries.inProcess = 60
                    $0.presetRestoration = .seconds(3600)
                }
            ) {
                try await cluster.submit(Self.job("a"))
                try await until("the job waits for its retry") {
                    metrics.value(of: #"halcyon_retries_total{code="internal",way="process"}"#) > 0
                }
                _ = try await PresetStore(cluster.client, topics: cluster.topics).put(Self.preset(40))
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["width"] as? Int == 40)
            }
        }
    }

    /// The preset may exist.
    @Test(arguments: [true, false])
    func retriesJobsWithUnknownPresetsWhileRedisIsUnavailable(inProcess: Bool) async throws {
        try await WorkerFixture.with(topics: Topics(retryDelays: [.milliseconds(300)])) { cluster in
            try await cluster.withWorker {
                $0.retries = RetryPolicy()
                $0.retries.attempts = 100
                $0.retries.inProcess = inProcess ? 60 : 0
                $0.redis.timeout = nil
            } _: {
                // The worker has loaded the presets before this one is stored without a notification.
                try await cluster.submit(Self.job("before"))
                #expect(try await cluster.events.terminal(of: "before").code == "invalid_job")
                _ = try await PresetStore(cluster.client, topics: cluster.topics).put(Self.preset(40))
                cluster.redis.process.send(SIGSTOP)
                try await cluster.submit(Self.job("a"))
                try await cluster.submit(Self.job("late", #""card""#, #","deadline":1"#))
                // It ends at its deadline, or before it if there is no time for another attempt.
                let late = try await cluster.events.terminal(of: "late")
                #expect(["expired", "internal"].contains(late.code))
                #expect(!cluster.events.terminal.contains { $0.jobID == "a" })
                cluster.redis.process.send(SIGCONT)
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["width"] as? Int == 40)
            }
        }
    }

    @Test func jobsWithUnknownPresetsFailAsInternalAfterTheLastAttempt() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                await cluster.redis.stop()
                try await cluster.submit(Self.job("a", #""card""#, #","metadata":7"#))
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.code == "internal" && event.data["retryable"] as? Bool == true)
                #expect(event.message.hasPrefix("preset: card is not known to this worker"))
                #expect((event.data["job"] as? [String: Any])?["metadata"] as? Int == 7)
                #expect(try await cluster.deadLetters(atLeast: 1).count == 1)
            }
        }
    }

    @Test func cancelsJobsThatWaitForAPreset() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.retries = RetryPolicy()
                ($0.retries.attempts, $0.retries.base, $0.retries.inProcess) = (100, 60, 60)
            } _: {
                await cluster.redis.stop()
                try await cluster.submit(Self.job("a"))
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
            }
        }
    }

    /// A newer version exists somewhere, such as in the settings of other workers.
    @Test func retriesJobsThatRequireANewerVersion() async throws {
        try await WorkerFixture.with { cluster in
            let service = Self.service(cluster)
            _ = try await service.put(Self.preset(40), checkedBy: JobDecoder())
            try await cluster.withWorker {
                $0.retries = RetryPolicy()
                $0.retries.attempts = 100
                $0.retries.inProcess = 60
            } _: {
                try await cluster.submit(Self.job("a", #"{"name":"card","version":2}"#))
                try await cluster.submit(Self.job("b"))
                #expect(try await cluster.events.terminal(of: "b").kind == "ready")
                #expect(!cluster.events.terminal.contains { $0.jobID == "a" })
                _ = try await service.put(Self.preset(50), checkedBy: JobDecoder())
                #expect(try await cluster.events.terminal(of: "a").variant["width"] as? Int == 50)
            }
        }
    }

    /// Has a worker make results again, and returns the completed batch.
    private static func rerendered(
        _ contents: BatchListing.Contents, as batch: String, _ cluster: WorkerFixture
    ) async throws -> Batch {
        // A worker that has not been notified of the change loads the preset, because it has only an older version.
        let template = Array(#"{"preset":{"name":"card","version":2},"priority":"low"}"#.utf8)
        let message = BatchMessage(batch, .list(BatchListing(contents, template: template)))
        try await cluster.producer.send(cluster.topics.record(of: message))
        let store = BatchStore(cluster.client, BatchOptions())
        try await until("the batch is completed") { try await store.batch(batch)?.state == .completed }
        return try #require(try await store.batch(batch))
    }

    /// Waits for the terminal events of a batch, which are read later than its state.
    private static func events(
        _ count: Int, of batch: String, _ cluster: WorkerFixture
    ) async throws -> [EventLog.Entry] {
        try await until("all events of the batch are read") {
            cluster.events.terminal.count { $0.jobID.hasPrefix("\(batch)-") } == count
        }
        return cluster.events.terminal.filter { $0.jobID.hasPrefix("\(batch)-") }
    }

    @Test func makesTheResultsOfAPresetAgain() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.batches.jobsPerPage = 2 }) {
                let service = Self.service(cluster)
                let more = #","overridable":["height"]"#
                _ = try await service.put(Self.preset(40, more), checkedBy: JobDecoder())
                let letters = ["A", "B", "C", "D", "E"]
                for (number, letter) in letters.enumerated() {
                    let members = number < 2 ? #","tenant":"shop-7","tags":["x"]"# : ""
                    try await cluster.submit(
                        #"{"source":"initials:\#(letter)","preset":"card","maxAge":600,"height":\#(20 + number)\#(members)}"#
                    )
                }
                // They have no preset, no results, or a password.
                try await cluster.submit(#"{"source":"initials:P","width":40,"maxAge":600}"#)
                try await cluster.submit(#"{"source":"file:///nowhere.png","preset":"card"}"#)
                try await cluster.submit(
                    #"{"source":"http://u:p@127.0.0.1:1/","alternatives":["initials:S"],"preset":"card","maxAge":600}"#)
                try await until("the jobs have ended") { cluster.events.terminal.count == 8 }
                _ = try await service.put(Self.preset(50, more), checkedBy: JobDecoder())

                let tenant = try await Self.rerendered(.preset("card", tenant: "shop-7"), as: "t", cluster)
                #expect(tenant.total == 2 && tenant.counts.ready == 2 && tenant.preset == "card")
                let batch = try await Self.rerendered(.preset("card"), as: "r", cluster)
                #expect(batch.total == 5 && batch.counts.ready == 5 && batch.error == nil)
                let events = try await Self.events(5, of: "r", cluster)
                #expect(events.allSatisfy { Self.preset(of: $0)?["version"] as? Int == 2 })
                #expect(events.allSatisfy { $0.variant["width"] as? Int == 50 })
                // Those of the tenant exist already.
                #expect(events.filter { $0.origin == "memory" }.count == 2, "\(events.map(\.json))")
                let heights = Set(events.compactMap { $0.variant["height"] as? Int })
                #expect(heights == Set(20..<25))

                let reloaded = try await Self.rerendered(.preset("card", reload: true), as: "l", cluster)
                #expect(reloaded.total == 5 && reloaded.counts.ready == 5)
                let again = try await Self.events(5, of: "l", cluster)
                #expect(again.allSatisfy { $0.origin != "memory" })
                let none = try await Self.rerendered(.preset("card", tenant: "other"), as: "o", cluster)
                #expect(none.total == 0 && none.error == nil)
                let unknown = try await Self.rerendered(.preset("plate"), as: "u", cluster)
                #expect(unknown.total == 0)
            }
        }
    }
}
