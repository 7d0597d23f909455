import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import TestSupport
import Testing

/// Jobs that end or hang their worker (docs/poison.md), with real processes that really end.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct PoisonTests {
    /// Jobs here outlive up to four workers.
    private static let long = Duration.seconds(240)

    /// Deaths that are remembered in Redis, of whatever item.
    private func deaths(_ cluster: WorkerTestCluster) async throws -> [String] {
        var found: [String] = []
        for key in try await cluster.client.send("KEYS", "halcyon:*:fences").array?.compactMap(\.string) ?? [] {
            let fields = try await cluster.client.send("HGETALL", .string(key)).array?.compactMap(\.string) ?? []
            found += fields.filter { $0.hasPrefix("deaths:") }
        }
        return found
    }

    @Test(arguments: ["abort", "segv"])
    func aJobThatKillsOneWorkerAndTwoChildrenIsPoison(how: String) async throws {
        try await Supervisor.with { cluster, supervisor in
            let job = try supervisor.job("killer", supervisor.deadly(how), #","metadata":{"a":1}"#)
            try await cluster.submit(job)
            let event = try await cluster.events.terminal(of: "killer", within: Self.long)
            #expect(event.kind == "failed" && event.code == "poison", "\(event.message)")
            #expect(event.data["retryable"] as? Bool == false)
            #expect(supervisor.notes == ["worker", "child", "child"])
            #expect(supervisor.exits == [.signal(how == "abort" ? SIGABRT : SIGSEGV)])
            let letters = try await cluster.deadLetters(atLeast: 1)
            #expect(letters.map(\.value) == [Array(job.utf8)])
            #expect(letters[0].headers.first { $0.name == "halcyon-code" }?.value == Array("poison".utf8))

            // Whoever asks for the same now is told at once, and nothing dies for it.
            try await cluster.submit(try supervisor.job("second", supervisor.deadly(how)))
            #expect(try await cluster.events.terminal(of: "second", within: Self.long).code == "poison")
            #expect(supervisor.notes.count == 3)
            // To have it made anew is to have it tried again, in children.
            try await cluster.submit(try supervisor.job("anew", supervisor.deadly(how), #","cache":{"reload":true}"#))
            #expect(try await cluster.events.terminal(of: "anew", within: Self.long).code == "poison")
            #expect(supervisor.notes.count == 5 && supervisor.exits.count == 1)
            // A purge forgets it: then it costs a worker again.
            let plain = try supervisor.job("plain", #"{"blur":{"radius":1}}"#)
            let source = try JobDecoder().read(Array(plain.utf8), defaultID: "").job.source
            _ = try await Purger(cluster.client).run(Purge(.source(source)))
            try await cluster.submit(try supervisor.job("after", supervisor.deadly(how)))
            #expect(try await cluster.events.terminal(of: "after", within: Self.long).code == "poison")
            #expect(supervisor.notes.suffix(3) == ["worker", "child", "child"] && supervisor.exits.count == 2)
            // "after" may kill the worker before the end of "anew" is committed; then that is told again.
            #expect(Set(cluster.events.terminal.map(\.jobID)) == ["killer", "second", "anew", "after"])
        }
    }

    /// Shared results, those that nobody else may have, and those that are content with what is there.
    @Test(arguments: ["", #","maxAge":-1"#, #","cache":{"memory":false}"#, #","cache":{"onlyIfCached":true}"#])
    func whatOnlyAWorkerDiesOfIsMadeByAChild(fields: String) async throws {
        try await Supervisor.with { cluster, supervisor in
            try await cluster.submit(
                try supervisor.job("a", supervisor.deadly("abort", #","onlyInWorkers":true"#), fields))
            let event = try await cluster.events.terminal(of: "a", within: Self.long)
            #expect(event.kind == "ready", "\(event.message)")
            #expect(supervisor.notes == ["worker", "child"] && supervisor.exits == [.signal(SIGABRT)])
            // It ended well: nothing speaks against it any more.
            #expect(try await deaths(cluster) == [])
        }
    }

    @Test func ofSeveralVariantsTheOneThatKillsIsFound() async throws {
        try await Supervisor.with { cluster, supervisor in
            let killer = supervisor.deadly("abort")
            let variants = #","variants":[{"format":"png"},{"processors":[\#(killer)]}]"#
            try await cluster.submit(
                try supervisor.job("both", #"{"blur":{"radius":1}}"#, variants))
            let event = try await cluster.events.terminal(of: "both", within: Self.long)
            #expect(event.code == "poison" && event.message.contains("variants[1]"), "\(event.message)")
            #expect(supervisor.notes == ["worker", "child", "child"])
            // The other one is there for whoever wants it.
            try await cluster.submit(try supervisor.job("one", #"{"blur":{"radius":1}}"#, #","format":"png""#))
            #expect(try await cluster.events.terminal(of: "one", within: Self.long).origin == "memory")
        }
    }

    @Test(arguments: ["spin", "hang"])
    func aJobThatHangsItsWorkerIsPoison(how: String) async throws {
        let settings = ["IMAGES_RENDER_TIMEOUT": "2s", "HEALTH_STUCK_AFTER": "1s", "HEALTH_EXIT_AFTER": "1s"]
        try await Supervisor.with(settings) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("hangs", supervisor.deadly(how)))
            let event = try await cluster.events.terminal(of: "hangs", within: Self.long)
            #expect(event.code == "poison" && event.message.contains("took longer"), "\(event.message)")
            #expect(supervisor.exits == [.code(70)])
            #expect(supervisor.notes == ["worker", "child", "child"])
            #expect(supervisor.log.contains("worker is stuck"))
            #expect(supervisor.log.contains("exiting with code 70") && supervisor.log.contains("has not stopped"))
        }
    }

    @Test(arguments: [2, 3])
    func aProviderThatKillsSoManyWorkersIsPoison(deaths: Int) async throws {
        try await Supervisor.with(["POISON_CRASHES": "\(deaths)"]) { cluster, supervisor in
            let job = #"{"id":"a","source":\#(supervisor.deadly("abort")),"width":9,"height":9}"#
            try await cluster.submit(job)
            let event = try await cluster.events.terminal(of: "a", within: Self.long)
            #expect(event.code == "poison", "\(event.message)")
            #expect(supervisor.exits == Array(repeating: .signal(SIGABRT), count: deaths))
            #expect(supervisor.notes == Array(repeating: "worker", count: deaths))
            #expect(try await cluster.deadLetters(atLeast: 1).map(\.value) == [Array(job.utf8)])
        }
    }

    @Test func providersThatBlockAllTasksAreNoticed() async throws {
        let settings = ["HEALTH_STUCK_AFTER": "1s", "HEALTH_EXIT_AFTER": "1s"]
        try await Supervisor.with(settings) { cluster, supervisor in
            // The cooperative pool has as many threads as there are processors.
            for number in 0..<sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
                let source = supervisor.deadly("spin", #","onlyInWorkers":\#(number % 2 == 0)"#)
                try await cluster.submit(#"{"id":"\#(number)","source":\#(source),"width":\#(9 + number)}"#)
            }
            try await until("the worker ends itself", within: Self.long) { !supervisor.exits.isEmpty }
            #expect(supervisor.exits[0] == .code(70))
            #expect(supervisor.log.contains("no task has run"))
        }
    }

    /// However often a worker is killed for other reasons while it makes something: that something was tried in a child, which lived.
    @Test func deathsOfOtherCausesMakeNothingPoison() async throws {
        try await Supervisor.with { cluster, supervisor in
            try await cluster.submit(try supervisor.job("innocent", supervisor.deadly("slow")))
            for number in 1...4 {
                try await until("it is rendered again", within: Self.long) { supervisor.notes.count == number }
                supervisor.send(SIGKILL)
            }
            let event = try await cluster.events.terminal(of: "innocent", within: Self.long)
            #expect(event.kind == "ready", "\(event.message)")
            #expect(supervisor.exits == Array(repeating: .signal(SIGKILL), count: 4))
            #expect(supervisor.notes == ["worker"] + Array(repeating: "child", count: 4))
        }
    }

    @Test func deathsWithoutAnythingElseMakePoisonInTheEnd() async throws {
        try await Supervisor.with(["POISON_CRASH_THRESHOLD": "3"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("unlucky", supervisor.deadly("slow")))
            for number in 1...3 {
                try await until("it is rendered again", within: Self.long) { supervisor.notes.count == number }
                supervisor.send(SIGKILL)
            }
            #expect(try await cluster.events.terminal(of: "unlucky", within: Self.long).code == "poison")
        }
    }

    @Test func aDeployIsNoDeath() async throws {
        try await Supervisor.with(["WORKER_GRACE": "500ms"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("cut", supervisor.deadly("hang")))
            try await until("it is rendered", within: Self.long) { supervisor.notes.count == 1 }
            #expect(try await deaths(cluster).count == 1)
            supervisor.startNoMore()
            supervisor.send(SIGTERM)
            try await until("the worker has left", within: Self.long) { supervisor.exits.count == 1 }
            // It left, with a word that a job was cut short; its lease went with it, and nothing speaks against the job.
            #expect(supervisor.exits == [.code(1)])
            #expect(
                supervisor.log.contains(#""message":"drained""#) && supervisor.log.contains(#""cutShort":1"#),
                "\(supervisor.log)")
            #expect(try await deaths(cluster) == [])
            #expect(try await cluster.client.send("KEYS", "halcyon:*:lease:*").array?.count == 0)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func aSecondSignalEndsTheWorkerAtOnce(signal: Int32) async throws {
        try await Supervisor.with(["WORKER_GRACE": "600s"]) { cluster, supervisor in
            try await cluster.submit(try supervisor.job("cut", supervisor.deadly("hang")))
            try await until("it is rendered", within: Self.long) { supervisor.notes.count == 1 }
            supervisor.startNoMore()
            supervisor.send(signal)
            try await until("it drains", within: Self.long) { supervisor.log.contains("draining") }
            supervisor.send(signal)
            try await until("the worker has ended", within: Self.long) { supervisor.exits.count == 1 }
            #expect(supervisor.exits == [.code(128 + signal)])
            #expect(!supervisor.log.contains(#""message":"drained""#))
        }
    }
}
