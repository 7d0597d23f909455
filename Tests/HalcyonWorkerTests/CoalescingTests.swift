import Concurrency
import Foundation
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Many jobs for the same sources and results, on several workers at the same time.
@Suite(.limitedParallelism) struct CoalescingTests {
    /// Returns a slow origin that serves a photograph.
    static func origin(
        _ headers: [String] = ["Cache-Control: max-age=600"], after pause: Duration = .milliseconds(300)
    ) throws -> RawOrigin {
        try SampleImages.origin(headers, after: pause)
    }

    /// Returns an origin that serves a photograph as soon as the latch is open.
    static func origin(
        _ headers: [String] = ["Cache-Control: max-age=600"], behind latch: Latch
    ) throws -> RawOrigin {
        let steps = RawOrigin.Step.response(try SampleImages.bytes(), headers)
        return RawOrigin { _ in
            latch.wait()
            return steps
        }
    }

    static func job(_ id: String, _ origin: RawOrigin, _ path: String, width: Int = 40, _ more: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url(path))","width":\#(width),"height":40,"metadata":{"n":"\#(id)"}\#(more)}"#
    }

    /// Submits all jobs concurrently.
    static func submit(_ jobs: [String], _ cluster: WorkerFixture) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for job in jobs { group.addTask { try await cluster.submit(job) } }
            try await group.waitForAll()
        }
    }

    static let resultMisses = #"halcyon_result_lookups_total{result="miss"}"#
    static let sourceMisses = #"halcyon_source_lookups_total{result="miss",store="redis"}"#

    /// Waits until jobs share one operation: each job has missed the cache, after which it joins the operation of its
    /// worker, and each worker with jobs has asked for the lease.
    /// - Parameters:
    ///   - kind: The kind of the lease: `source` or `result`.
    ///   - metrics: The metrics of each worker.
    static func waitUntilJobsShare(_ kind: String, jobs: Int, _ metrics: [Metrics]) async throws {
        let misses = kind == "source" ? sourceMisses : resultMisses
        try await until("\(jobs) jobs share a \(kind)") {
            func sum(_ series: String) -> Double { metrics.reduce(0) { $0 + $1.value(of: series) } }
            let asked = ["taken", "waited"].map { sum(#"halcyon_coalescing_total{event="\#($0)",kind="\#(kind)"}"#) }
            let workers = metrics.count { $0.value(of: "halcyon_jobs_in_flight") > 0 }
            return sum(misses) >= Double(jobs) && asked[0] + asked[1] >= Double(workers)
        }
    }

    /// Waits until this many jobs have ended and returns their terminal events.
    static func terminalEvents(_ count: Int, of cluster: WorkerFixture) async throws -> [EventLog.Entry] {
        try await until("\(count) jobs have ended") { cluster.events.terminal.count >= count }
        // Time for duplicates to arrive.
        try await Task.sleep(for: .milliseconds(500))
        #expect(cluster.events.terminal.count == count)
        return cluster.events.terminal
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func fetchesEachSourceOnceAndRendersEachResultOnce(on kind: RedisDeployment.Kind) async throws {
        let origin = try Self.origin()
        try await WorkerFixture.with(redis: kind, partitions: 6) { cluster in
            try await cluster.withWorkers(3) { _ in
                try await Self.submit(
                    (0..<400).map { Self.job("\($0)", origin, "/\($0 % 4)", width: 20 + $0 / 4 % 5) }, cluster)
                let events = try await Self.terminalEvents(400, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" })
                #expect(Set(events.map(\.jobID)).count == 400)
                for event in events {
                    #expect(
                        ((event.data["job"] as? [String: Any])?["metadata"] as? [String: Any])?["n"] as? String
                            == event.jobID)
                }
                #expect(Set(events.map(\.key)).count == 20)
                #expect(events.count { $0.origin == "network" || $0.origin == "source-cache" } == 20)
                #expect(origin.requests.count == 4)
            }
        }
        try await origin.stop()
    }

    /// Sources without cache headers, sources that are too large for the cache, and sources that are stale at once.
    @Test(arguments: [
        ([], 1 << 20), (["Cache-Control: max-age=600"], 1000), (["Cache-Control: max-age=0", "ETag: \"a\""], 1 << 20),
    ])
    func sharesUncachedSourcesWithWaiters(headers: [String], kept: Int) async throws {
        let latch = Latch()
        defer { latch.open() }
        let origin = try Self.origin(headers, behind: latch)
        let metrics = (0..<3).map { _ in Metrics() }
        try await WorkerFixture.with(partitions: 6) { cluster in
            try await cluster.withWorkers(3, metrics: metrics, { $0.sourceTier.redisBytes = kept }) { _ in
                // A size for each job, so that each worker needs the source.
                try await Self.submit(
                    (0..<30).map { Self.job("\($0)", origin, "/a", width: 20 + $0, #","maxAge":60"#) }, cluster)
                try await Self.waitUntilJobsShare("source", jobs: 30, metrics)
                try await until("the source is requested") { !origin.requests.isEmpty }
                #expect(origin.requests.count == 1)
                latch.open()
                let events = try await Self.terminalEvents(30, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" })
                // On a busy machine a job in flight may come too late to wait for the source. Workers that share none
                // would send three requests.
                #expect((1...2).contains(origin.requests.count))
            }
        }
        try await origin.stop()
    }

    @Test func sharesNoStoreSourcesOnlyWithinAWorker() async throws {
        let latch = Latch()
        defer { latch.open() }
        let origin = try Self.origin(["Cache-Control: no-store"], behind: latch)
        let metrics = (0..<2).map { _ in Metrics() }
        try await WorkerFixture.with(partitions: 6) { cluster in
            try await cluster.withWorkers(2, metrics: metrics) { _ in
                try await Self.submit((0..<40).map { Self.job("\($0)", origin, "/a") }, cluster)
                try await Self.waitUntilJobsShare("result", jobs: 40, metrics)
                // One for each worker.
                #expect(origin.requests.count <= 2)
                latch.open()
                let events = try await Self.terminalEvents(40, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" && $0.variant["data"] != nil })
                // On a busy machine a job in flight may come too late to wait for the result.
                #expect((1...6).contains(origin.requests.count))
                #expect(try await cluster.storedKeys().isEmpty)
            }
        }
        try await origin.stop()
    }

    @Test func unstoredResultsShareOneFetchButNotTheirKeys() async throws {
        let origin = try Self.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = 100 }) {
                try await Self.submit((0..<10).map { Self.job("\($0)", origin, "/a", #","maxAge":-1"#) }, cluster)
                let events = try await Self.terminalEvents(10, of: cluster)
                #expect(Set(events.map(\.key)).count == 10 && events.allSatisfy { $0.key.contains(":handoff:") })
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test func sourceFailureReachesAllWaiters() async throws {
        let areInFlight = Lock(false)
        let origin = RawOrigin { request in
            // A job that begins after the failure fetches again, because the response may not be cached.
            [.wait { areInFlight.withLock { $0 } }, .pause(.milliseconds(500))]
                + (request.path == "/gone"
                    ? RawOrigin.answer("404 Not Found") : RawOrigin.Step.response(Array("\u{89}PNG\r\n".utf8)))
        }
        try await WorkerFixture.with(partitions: 6) { cluster in
            try await cluster.withWorkers(3) { workers in
                try await Self.submit(
                    (0..<60).map { Self.job("\($0)", origin, $0 % 2 == 0 ? "/gone" : "/broken") }, cluster)
                try await until("all jobs are in flight") {
                    workers.reduce(0) { $0 + $1.liveness.progress.jobs } == 60
                }
                areInFlight.withLock { $0 = true }
                let events = try await Self.terminalEvents(60, of: cluster)
                #expect(Set(events.map { $0.code ?? "" }) == ["not_found", "unsupported_format"])
                // On a busy machine a job in flight may come too late to wait for the failure.
                #expect((2...5).contains(origin.requests.count))
            }
        }
        try await origin.stop()
    }

    @Test func jobsWithOverlappingVariantsShareOneFetch() async throws {
        let origin = try Self.origin()
        try await WorkerFixture.with(partitions: 6) { cluster in
            try await cluster.withWorkers(2) { _ in
                let jobs = (0..<12).map { number in
                    let widths = [number % 4, (number + 1) % 4, (number + 2) % 4].map { #"{"width":\#(20 + $0)}"# }
                    return
                        #"{"id":"\#(number)","source":"\#(origin.url("/a"))","variants":[\#(widths.joined(separator: ","))]}"#
                }
                try await Self.submit(jobs, cluster)
                let events = try await Self.terminalEvents(12, of: cluster)
                #expect(events.allSatisfy { $0.kind == "ready" && $0.variants.count == 3 })
                let keys = Set(events.flatMap(\.variants).compactMap { $0["key"] as? String })
                #expect(keys.count == 4)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    /// One of two variants that are rendered together fails. A job for the other one alone succeeds.
    @Test func failingVariantDoesNotFailJobsForOtherVariants() async throws {
        let origin = try Self.origin(after: .seconds(1))
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.images.outputPixels = 100_000 }) {
                try await cluster.submit(
                    #"{"id":"both","source":"\#(origin.url("/a"))","variants":[{"width":40},{"width":3000,"height":3000}]}"#
                )
                try await until("the source is requested") { origin.requests.count == 1 }
                try await cluster.submit(#"{"id":"one","source":"\#(origin.url("/a"))","width":40}"#)
                let both = try await cluster.events.terminal(of: "both")
                #expect(both.code == "too_many_pixels" && both.message.contains("variants[1]"))
                #expect(try await cluster.events.terminal(of: "one").kind == "ready")
            }
        }
        try await origin.stop()
    }

    @Test func expiredJobLeavesSharedWorkAndLastOneAbortsIt() async throws {
        let (photograph, latch) = (try SampleImages.bytes(), Latch())
        let origin = RawOrigin { request in
            guard request.path == "/slow" else {
                return [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .awaitEnd]
            }
            latch.wait()
            return RawOrigin.Step.response(photograph)
        }
        defer { latch.open() }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(Self.job("long", origin, "/slow"))
                var (never, deadline) = ("", 4)
                repeat {
                    deadline *= 2
                    let id = "never\(deadline)"
                    try await cluster.submit(Self.job(id, origin, "/hangs", #","deadline":\#(deadline)"#))
                    // On a busy machine, the job may expire before.
                    try await until("its fetch has started") {
                        origin.requests.contains { $0.path == "/hangs" }
                            || cluster.events.terminal.contains { $0.jobID == id }
                    }
                    if let end = cluster.events.terminal.first(where: { $0.jobID == id }) {
                        try #require(end.code == "expired")
                    }
                    never = id
                } while deadline < 256 && !origin.requests.contains(where: { $0.path == "/hangs" })
                try await until("both fetches have started") { origin.requests.count == 2 }
                try await cluster.submit(Self.job("short", origin, "/slow", #","deadline":1"#))
                #expect(try await cluster.events.terminal(of: "short").code == "expired")
                #expect(try await cluster.events.terminal(of: never).code == "expired")
                try await until("the transfer without waiters is aborted") { origin.cuts == 1 }
                latch.open()
                #expect(try await cluster.events.terminal(of: "long").kind == "ready")
                #expect(origin.requests.count == 2)
            }
        }
        try await origin.stop()
    }

    @Test func higherLaneRaisesThePriorityOfJoinedWork() async throws {
        let (latch, metrics) = (Latch(), Metrics())
        defer { latch.open() }
        let origin = try Self.origin(behind: latch)
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                $0.fetches = 1
                $0.shares = [.high: 1000, .normal: 4, .low: 1]
            } _: {
                for number in 0..<20 { try await cluster.submit(Self.job("low\(number)", origin, "/\(number)"), .low) }
                try await until("the first fetch has started") { !origin.requests.isEmpty }
                try await cluster.submit(Self.job("high", origin, "/19"), .high)
                try await until("all jobs wait") { metrics.value(of: Self.resultMisses) == 21 }
                latch.open()
                _ = try await cluster.events.terminal(of: "high")
                // Its source was among the first to be fetched, and not the last of twenty.
                let turn = try #require(origin.requests.firstIndex { $0.path == "/19" })
                #expect(turn < 15)
                _ = try await cluster.events.terminal(of: "low0")
            }
        }
        try await origin.stop()
    }
}
