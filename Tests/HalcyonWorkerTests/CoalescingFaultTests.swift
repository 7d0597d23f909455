import Concurrency
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Redis faults while many jobs need the same sources.
@Suite(.limitedParallelism, .extended) struct CoalescingFaultTests {
    @Test func allJobsSucceedWhileRedisIsFlushedAndPaused() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(100))
        try await WorkerFixture.with(partitions: 6) { cluster in
            // On a busy machine a pause of 5 s can exceed the default timeout, after which workers share nothing.
            try await cluster.withWorkers(3, { $0.leases.fallbackTimeout = .seconds(60) }) { _ in
                for fault in 0..<3 {
                    // New sources for each fault, because a flush loses the cached ones.
                    let jobs = (0..<300).map {
                        CoalescingTests.job("\(fault)-\($0)", origin, "/\(fault)/\($0 % 10)", width: 20 + $0 / 10 % 5)
                    }
                    async let submitted: Void = CoalescingTests.submit(jobs, cluster)
                    try await until("some sources have been requested") { origin.requests.count > fault * 10 }
                    switch fault {
                    case 0: _ = try await cluster.redis.run("FLUSHALL")
                    case 1: _ = try await cluster.redis.run("CLIENT", "PAUSE", "5000", "ALL")
                    default: _ = try await cluster.redis.run("DEBUG", "SLEEP", "3")
                    }
                    try await submitted
                }
                let events = try await CoalescingTests.terminalEvents(900, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" })
                #expect(Set(events.map(\.jobID)).count == 900)
                // A fault that removes leases and stored entries can cost each of three workers a fetch of each of its
                // ten sources.
                #expect((30...120).contains(origin.requests.count), "\(origin.requests.count) requests")
            }
        }
        try await origin.stop()
    }

    @Test func allJobsSucceedWhileRedisRestarts() async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(300))
        try await WorkerFixture.with(partitions: 6) { cluster in
            try await cluster.withWorkers(3, { $0.leases.fallbackTimeout = .seconds(60) }) { _ in
                let jobs = (0..<300).map {
                    CoalescingTests.job("\($0)", origin, "/\($0 % 10)", width: 20 + $0 / 10 % 5)
                }
                async let submitted: Void = CoalescingTests.submit(jobs, cluster)
                try await until("some sources have been requested") { origin.requests.count >= 3 }
                await cluster.redis.stop()
                try await Task.sleep(for: .seconds(1))
                let again = try await RedisServer.start(port: cluster.redis.port)
                try await submitted
                let events = try await CoalescingTests.terminalEvents(300, of: cluster)
                await again.stop()
                #expect(events.allSatisfy { $0.kind == "ready" })
                // Leases and caches are lost: each of three workers may fetch each source once more.
                #expect((10...40).contains(origin.requests.count), "\(origin.requests.count) requests")
            }
        }
        try await origin.stop()
    }

    @Test func coalescesLocallyWithoutRedisAndLogsItOnce() async throws {
        let origin = try CoalescingTests.origin()
        let sink = RecordingLogSink()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(
                log: Log(level: .info, sink: sink), { $0.leases.fallbackTimeout = .seconds(1) }
            ) {
                await cluster.redis.stop()
                try await CoalescingTests.submit(
                    (0..<40).map { CoalescingTests.job("\($0)", origin, "/\($0 % 2)") }, cluster)
                let events = try await CoalescingTests.terminalEvents(40, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" && $0.variant["data"] != nil })
                // Jobs received later may fetch again; jobs that wait at the same time never do.
                #expect(origin.requests.count < 40, "\(origin.requests.count) requests")
                #expect(sink.count("Redis is unavailable; work is not shared with other workers") == 1)
                let again = try await RedisServer.start(port: cluster.redis.port)
                try await until("work is shared again") {
                    sink.count("work is shared with other workers again") == 1
                }
                try await cluster.submit(CoalescingTests.job("after", origin, "/after"))
                #expect(try await cluster.events.terminal(of: "after").variant["data"] == nil)
                await again.stop()
            }
        }
        try await origin.stop()
    }
}
