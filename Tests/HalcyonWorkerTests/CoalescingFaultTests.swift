import Concurrency
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Redis in trouble while many jobs want the same.
@Suite(.limitedParallelism) struct CoalescingFaultTests {
    @Test func redisIsFlushedAndPausedInTheMiddle() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(100))
        try await WorkerTestCluster.with(partitions: 6) { cluster in
            // On a busy machine a pause of 5 s lasts longer than the standard patience, and then workers share nothing.
            try await cluster.withWorkers(3, { $0.leases.fallbackTimeout = .seconds(60) }) { _ in
                for fault in 0..<3 {
                    // Each time new sources: what was there is lost, and nobody expects it back.
                    let jobs = (0..<300).map {
                        CoalescingTests.job("\(fault)-\($0)", origin, "/\(fault)/\($0 % 10)", width: 20 + $0 / 10 % 5)
                    }
                    async let submitted: Void = CoalescingTests.submit(jobs, cluster)
                    try await until("some have been asked for") { origin.requests.count > fault * 10 }
                    switch fault {
                    case 0: _ = try await cluster.redis.tell("FLUSHALL")
                    case 1: _ = try await cluster.redis.tell("CLIENT", "PAUSE", "5000", "ALL")
                    default: _ = try await cluster.redis.tell("DEBUG", "SLEEP", "3")
                    }
                    try await submitted
                }
                let ends = try await CoalescingTests.ends(900, of: cluster)
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
        try await WorkerTestCluster.with(partitions: 6) { cluster in
            try await cluster.withWorkers(3) { _ in
                let jobs = (0..<300).map {
                    CoalescingTests.job("\($0)", origin, "/\($0 % 10)", width: 20 + $0 / 10 % 5)
                }
                async let submitted: Void = CoalescingTests.submit(jobs, cluster)
                try await until("some have been asked for") { origin.requests.count >= 3 }
                await cluster.redis.stop()
                try await Task.sleep(for: .seconds(1))
                let again = try await RedisServer.start(port: cluster.redis.port)
                try await submitted
                let ends = try await CoalescingTests.ends(300, of: cluster)
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
        let notes = RecordingLogSink()
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(
                log: Log(level: .info, sink: notes), { $0.leases.fallbackTimeout = .seconds(1) }
            ) {
                await cluster.redis.stop()
                try await CoalescingTests.submit(
                    (0..<40).map { CoalescingTests.job("\($0)", origin, "/\($0 % 2)") }, cluster)
                let ends = try await CoalescingTests.ends(40, of: cluster)
                #expect(ends.allSatisfy { $0.kind == "ready" && $0.variant["data"] != nil })
                // Jobs that were taken later may start afresh; those that wait at the same time never.
                #expect(origin.requests.count < 20, "\(origin.requests.count) requests")
                #expect(notes.count("Redis is unavailable; work is not shared with other workers") == 1)
                let again = try await RedisServer.start(port: cluster.redis.port)
                try await until("work is shared again") {
                    notes.count("work is shared with other workers again") == 1
                }
                try await cluster.submit(CoalescingTests.job("after", origin, "/after"))
                #expect(try await cluster.events.terminal(of: "after").variant["data"] == nil)
                await again.stop()
            }
        }
        try await origin.stop()
    }
}
