import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing
import Threads

/// Redis in trouble while many jobs want the same.
@Suite(.takesTurns) struct CoalescingFaultTests {
    @Test func redisIsFlushedAndPausedInTheMiddle() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(100))
        try await Stage.with(partitions: 6) { stage in
            // On a busy machine a pause of 5 s lasts longer than the standard patience, and then workers share nothing.
            try await stage.withWorkers(3, { $0.leases.patience = .seconds(60) }) { _ in
                for fault in 0..<3 {
                    // Each time new sources: what was there is lost, and nobody expects it back.
                    let jobs = (0..<300).map {
                        CoalescingTests.job("\(fault)-\($0)", origin, "/\(fault)/\($0 % 10)", width: 20 + $0 / 10 % 5)
                    }
                    async let submitted: Void = CoalescingTests.submit(jobs, stage)
                    try await until("some have been asked for") { origin.requests.count > fault * 10 }
                    switch fault {
                    case 0: _ = try await stage.redis.tell("FLUSHALL")
                    case 1: _ = try await stage.redis.tell("CLIENT", "PAUSE", "5000", "ALL")
                    default: _ = try await stage.redis.tell("DEBUG", "SLEEP", "3")
                    }
                    try await submitted
                }
                let ends = try await CoalescingTests.ends(900, of: stage)
                #expect(ends.allSatisfy { $0.kind == "ready" })
                #expect(Set(ends.map(\.jobID)).count == 900)
                // The first fault takes leases and what was stored: each of ten sources may be fetched once more. The others take nothing.
                #expect((30...50).contains(origin.requests.count), "\(origin.requests.count) requests")
            }
        }
        try await origin.stop()
    }

    @Test func redisIsRestartedInTheMiddle() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(300))
        try await Stage.with(partitions: 6) { stage in
            try await stage.withWorkers(3) { _ in
                let jobs = (0..<300).map {
                    CoalescingTests.job("\($0)", origin, "/\($0 % 10)", width: 20 + $0 / 10 % 5)
                }
                async let submitted: Void = CoalescingTests.submit(jobs, stage)
                try await until("some have been asked for") { origin.requests.count >= 3 }
                await stage.redis.stop()
                try await Task.sleep(for: .seconds(1))
                let again = try await RedisServer.start(port: stage.redis.port)
                try await submitted
                let ends = try await CoalescingTests.ends(300, of: stage)
                await again.stop()
                #expect(ends.allSatisfy { $0.kind == "ready" })
                // Leases and all that was kept are lost: whoever was at a source may be joined by one more, and whoever comes later fetches it anew.
                #expect((10...30).contains(origin.requests.count), "\(origin.requests.count) requests")
            }
        }
        try await origin.stop()
    }

    @Test func withRedisAwayEachWorkerSharesByItselfAndSaysSoOnce() async throws {
        let origin = try CoalescingTests.origin()
        let notes = Notes()
        try await Stage.with { stage in
            try await stage.withWorker(log: Log(level: .info, sink: notes), { $0.leases.patience = .seconds(1) }) {
                await stage.redis.stop()
                try await CoalescingTests.submit(
                    (0..<40).map { CoalescingTests.job("\($0)", origin, "/\($0 % 2)") }, stage)
                let ends = try await CoalescingTests.ends(40, of: stage)
                #expect(ends.allSatisfy { $0.kind == "ready" && $0.variant["data"] != nil })
                // Jobs that were taken later may start afresh; those that wait at the same time never.
                #expect(origin.requests.count < 20, "\(origin.requests.count) requests")
                #expect(notes.count("work is not shared with other workers until Redis is back") == 1)
                let again = try await RedisServer.start(port: stage.redis.port)
                try await until("work is shared again") {
                    notes.count("work is shared with other workers again") == 1
                }
                try await stage.submit(CoalescingTests.job("after", origin, "/after"))
                #expect(try await stage.events.terminal(of: "after").variant["data"] == nil)
                await again.stop()
            }
        }
        try await origin.stop()
    }
}
