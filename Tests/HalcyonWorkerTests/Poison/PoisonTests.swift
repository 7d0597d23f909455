import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import TestSupport
import Testing

/// Jobs that crash or hang their worker (docs/poison.md), with real processes.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct PoisonTests {
    /// A time limit for jobs that outlive up to four workers.
    private static let timeLimit = Duration.seconds(240)

    /// Returns the crash counts of all items in Redis.
    private func recordedCrashes(_ cluster: WorkerFixture) async throws -> [String] {
        var found: [String] = []
        for key in try await cluster.client.send("KEYS", "halcyon:*:fences").array?.compactMap(\.string) ?? [] {
            let fields = try await cluster.client.send("HGETALL", .string(key)).array?.compactMap(\.string) ?? []
            found += fields.filter { $0.hasPrefix("deaths:") }
        }
        return found
    }

    @Test(arguments: ["abort", "segv"])
    func jobCrashingAWorkerAndTwoChildrenIsPoison(how: String) async throws {
        try await SupervisorFixture.with { cluster, supervisor in
            let job = try supervisor.job("killer", supervisor.crashing(how), #","metadata":{"a":1}"#)
            try await cluster.submit(job)
            let event = try await cluster.events.terminal(of: "killer", within: Self.timeLimit)
            #expect(event.kind == "failed" && event.code == "poison", "\(event.message)")
            #expect(event.data["retryable"] as? Bool == false)
            #expect(supervisor.calls == ["worker", "child", "child"])
            #expect(supervisor.exits == [.signal(how == "abort" ? SIGABRT : SIGSEGV)])
            let letters = try await cluster.deadLetters(atLeast: 1)
            #expect(letters.map(\.value) == [Array(job.utf8)])
            #expect(letters[0].headers.first { $0.name == "halcyon-code" }?.value == Array("poison".utf8))

            // Another job for the same result fails at once, without a crash.
            try await cluster.submit(try supervisor.job("second", supervisor.crashing(how)))
            #expect(try await cluster.events.terminal(of: "second", within: Self.timeLimit).code == "poison")
            #expect(supervisor.calls.count == 3)
            // A reload is another attempt, in render processes.
            try await cluster.submit(try supervisor.job("anew", supervisor.crashing(how), #","cache":{"reload":true}"#))
            #expect(try await cluster.events.terminal(of: "anew", within: Self.timeLimit).code == "poison")
            #expect(supervisor.calls.count == 5 && supervisor.exits.count == 1)
            // A purge resets the count, so the next attempt crashes a worker again.
            let plain = try supervisor.job("plain", #"{"blur":{"radius":1}}"#)
            let source = try JobDecoder().read(Array(plain.utf8), defaultID: "").job.source
            _ = try await Purger(cluster.client).run(Purge(.source(source)))
            try await cluster.submit(try supervisor.job("after", supervisor.crashing(how)))
            #expect(try await cluster.events.terminal(of: "after", within: Self.timeLimit).code == "poison")
            #expect(supervisor.calls.suffix(3) == ["worker", "child", "child"] && supervisor.exits.count == 2)
            // "after" may crash the worker before the end of "anew" is committed; then that event is published again.
            #expect(Set(cluster.events.terminal.map(\.jobID)) == ["killer", "second", "anew", "after"])
        }
    }

    /// Shared results, results that cannot be shared, and jobs with `cache.onlyIfCached`.
    @Test(arguments: ["", #","maxAge":-1"#, #","cache":{"memory":false}"#, #","cache":{"onlyIfCached":true}"#])
    func jobCrashingOnlyWorkersIsRenderedByAChild(fields: String) async throws {
        try await SupervisorFixture.with { cluster, supervisor in
            try await cluster.submit(
                try supervisor.job("a", supervisor.crashing("abort", #","onlyInWorkers":true"#), fields))
            let event = try await cluster.events.terminal(of: "a", within: Self.timeLimit)
            #expect(event.kind == "ready", "\(event.message)")
            #expect(supervisor.calls == ["worker", "child"] && supervisor.exits == [.signal(SIGABRT)])
            // The job succeeded, so the count has been reset.
            #expect(try await recordedCrashes(cluster) == [])
        }
    }

    @Test func identifiesTheCrashingVariant() async throws {
        try await SupervisorFixture.with { cluster, supervisor in
            let killer = supervisor.crashing("abort")
            let variants = #","variants":[{"format":"png"},{"processors":[\#(killer)]}]"#
            try await cluster.submit(
                try supervisor.job("both", #"{"blur":{"radius":1}}"#, variants))
            let event = try await cluster.events.terminal(of: "both", within: Self.timeLimit)
            #expect(event.code == "poison" && event.message.contains("variants[1]"), "\(event.message)")
            #expect(supervisor.calls == ["worker", "child", "child"])
            // The other variant has been stored.
            try await cluster.submit(try supervisor.job("one", #"{"blur":{"radius":1}}"#, #","format":"png""#))
            #expect(try await cluster.events.terminal(of: "one", within: Self.timeLimit).origin == "memory")
        }
    }

    @Test(arguments: ["spin", "hang"])
    func jobHangingItsWorkerIsPoison(how: String) async throws {
        let settings = ["IMAGES_RENDER_TIMEOUT": "2s", "HEALTH_STUCK_AFTER": "1s", "HEALTH_EXIT_AFTER": "1s"]
        try await SupervisorFixture.with(settings) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("hangs", supervisor.crashing(how)))
            let event = try await cluster.events.terminal(of: "hangs", within: Self.timeLimit)
            #expect(event.code == "poison" && event.message.contains("took longer"), "\(event.message)")
            // On a slow machine a worker may be stuck for other reasons, too.
            #expect(!supervisor.exits.isEmpty && supervisor.exits.allSatisfy { $0 == .code(70) })
            // On a slow machine the time of a render process may pass before it calls the processor.
            let calls = supervisor.calls
            #expect(calls.first == "worker" && calls.dropFirst().allSatisfy { $0 == "child" } && calls.count <= 3)
            #expect(supervisor.log.contains("worker is stuck"))
            #expect(supervisor.log.contains("exiting with code 70") && supervisor.log.contains("has not stopped"))
        }
    }

    @Test(arguments: [2, 3])
    func providerIsPoisonAfterTheConfiguredCrashes(deaths: Int) async throws {
        try await SupervisorFixture.with(["POISON_CRASHES": "\(deaths)"]) { cluster, supervisor in
            let job = #"{"id":"a","source":\#(supervisor.crashing("abort")),"width":9,"height":9}"#
            try await cluster.submit(job)
            let event = try await cluster.events.terminal(of: "a", within: Self.timeLimit)
            #expect(event.code == "poison", "\(event.message)")
            #expect(supervisor.exits == Array(repeating: .signal(SIGABRT), count: deaths))
            #expect(supervisor.calls == Array(repeating: "worker", count: deaths))
            #expect(try await cluster.deadLetters(atLeast: 1).map(\.value) == [Array(job.utf8)])
        }
    }

    @Test func providersBlockingAllTasksTriggerTheWatchdog() async throws {
        let settings = ["HEALTH_STUCK_AFTER": "1s", "HEALTH_EXIT_AFTER": "1s"]
        try await SupervisorFixture.with(settings) { cluster, supervisor in
            // The cooperative pool has as many threads as there are processors.
            for number in 0..<sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
                let source = supervisor.crashing("spin", #","onlyInWorkers":\#(number % 2 == 0)"#)
                try await cluster.submit(#"{"id":"\#(number)","source":\#(source),"width":\#(9 + number)}"#)
            }
            try await until("the worker exits", within: Self.timeLimit) { !supervisor.exits.isEmpty }
            #expect(supervisor.exits[0] == .code(70))
            #expect(supervisor.log.contains("no task has run"))
        }
    }

    /// A worker is killed repeatedly for other reasons during a rendering, whose render process does not crash.
    @Test func crashesOfOtherCausesDoNotMakePoison() async throws {
        try await SupervisorFixture.with { cluster, supervisor in
            try await cluster.submit(try supervisor.job("innocent", supervisor.crashing("slow")))
            for number in 1...4 {
                try await until("a rendering starts", within: Self.timeLimit) { supervisor.calls.count == number }
                supervisor.send(SIGKILL)
            }
            let event = try await cluster.events.terminal(of: "innocent", within: Self.timeLimit)
            #expect(event.kind == "ready", "\(event.message)")
            #expect(supervisor.exits == Array(repeating: .signal(SIGKILL), count: 4))
            #expect(supervisor.calls == ["worker"] + Array(repeating: "child", count: 4))
        }
    }

    @Test func crashThresholdMakesPoisonWithoutOtherEvidence() async throws {
        try await SupervisorFixture.with(["POISON_CRASH_THRESHOLD": "3"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("unlucky", supervisor.crashing("slow")))
            for number in 1...3 {
                try await until("a rendering starts", within: Self.timeLimit) { supervisor.calls.count == number }
                supervisor.send(SIGKILL)
            }
            #expect(try await cluster.events.terminal(of: "unlucky", within: Self.timeLimit).code == "poison")
        }
    }

    @Test func deploymentDoesNotCountAsACrash() async throws {
        try await SupervisorFixture.with(["WORKER_GRACE": "500ms"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("cut", supervisor.crashing("hang")))
            try await until("the rendering has started", within: Self.timeLimit) { supervisor.calls.count == 1 }
            #expect(try await recordedCrashes(cluster).count == 1)
            supervisor.stopRestarting()
            supervisor.send(SIGTERM)
            try await until("the worker has exited", within: Self.timeLimit) { supervisor.exits.count == 1 }
            // It logged that a job was interrupted and released the lease, so no crash is counted.
            #expect(supervisor.exits == [.code(1)])
            #expect(
                supervisor.log.contains(#""message":"drained""#) && supervisor.log.contains(#""cutShort":1"#),
                "\(supervisor.log)")
            #expect(try await recordedCrashes(cluster) == [])
            #expect(try await cluster.client.send("KEYS", "halcyon:*:lease:*").array?.count == 0)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func secondSignalEndsTheWorkerImmediately(signal: Int32) async throws {
        try await SupervisorFixture.with(["WORKER_GRACE": "600s"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("cut", supervisor.crashing("hang")))
            try await until("the rendering has started", within: Self.timeLimit) { supervisor.calls.count == 1 }
            supervisor.stopRestarting()
            supervisor.send(signal)
            try await until("the worker drains", within: Self.timeLimit) { supervisor.log.contains("draining") }
            supervisor.send(signal)
            try await until("the worker has exited", within: Self.timeLimit) { supervisor.exits.count == 1 }
            #expect(supervisor.exits == [.code(128 + signal)])
            #expect(!supervisor.log.contains(#""message":"drained""#))
        }
    }
}
