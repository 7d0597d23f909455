import Concurrency
import Formats
import Glibc
import HalcyonCluster
import Kafka
import Redis
import TestSupport
import Testing

/// Three workers, of which one has a clock that is an hour ahead and one a clock that is an hour behind.
@Suite(.limitedParallelism) struct ClockTests {
    private static let partitions = 3

    /// Runs `body` beside the workers, once each has a partition.
    private func withWorkers(_ body: (WorkerFixture, LeaseMonitor) async throws -> Void) async throws {
        let clock = try await ShiftedClock()
        try await WorkerFixture.with(partitions: Self.partitions) { cluster in
            let monitor = LeaseMonitor(cluster.client)
            let processes = WorkerProcesses(
                brokers: cluster.broker.bootstrapServers, cluster.redis, cluster.client,
                environment: MockCluster.fetchEnvironment.merging(["HALCYON_LEASES_DURATION": "60s"]) { $1 })
            let result: Result<Void, any Error>
            do {
                for shift in [0, 3600, -3600] { try await processes.add(clock.environment(ahead: shift)) }
                try await waitForAllWorkers(processes, cluster, monitor)
                result = .success(try await body(cluster, monitor))
            } catch {
                result = .failure(error)
            }
            await processes.close()
            try await monitor.close()
            try result.get()
        }
        await clock.remove()
    }

    /// Submits jobs until each worker has been seen to hold a lease.
    private func waitForAllWorkers(
        _ processes: WorkerProcesses, _ cluster: WorkerFixture, _ monitor: LeaseMonitor
    ) async throws {
        let origin = try CoalescingTests.origin(after: .milliseconds(500))
        let names = Set(processes.members.map(\.name))
        var round = 0
        var working: Set<String> = []
        while working != names {
            round += 1
            guard round < 100 else { throw ConditionTimeout(description: "some workers have no partition") }
            working = []
            for partition in 0..<Self.partitions {
                let id = "warm-\(round)-\(partition)"
                try await submit(CoalescingTests.job(id, origin, "/\(id)"), to: partition, cluster)
            }
            let ids = (0..<Self.partitions).map { "warm-\(round)-\($0)" }
            while !Set(cluster.events.terminal.map(\.jobID)).isSuperset(of: ids) {
                working.formUnion(monitor.snapshot.holders.values.map(\.process))
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        try await origin.stop()
    }

    private func submit(_ job: String, to partition: Int, _ cluster: WorkerFixture) async throws {
        try await cluster.producer.send(
            ProducerRecord(
                topic: cluster.topics.jobs(.normal), partition: Int32(partition), value: Array(job.utf8)))
    }

    /// Submits a job to each partition, each with its own size, and returns their terminal events.
    private func submitToEachPartition(
        _ name: String, _ origin: RawOrigin, _ path: String, width: Int, _ more: String, _ cluster: WorkerFixture
    ) async throws -> [EventLog.Entry] {
        for partition in 0..<Self.partitions {
            let job = CoalescingTests.job("\(name)-\(partition)", origin, path, width: width + partition, more)
            try await submit(job, to: partition, cluster)
        }
        var events: [EventLog.Entry] = []
        for partition in 0..<Self.partitions {
            events.append(try await cluster.events.terminal(of: "\(name)-\(partition)"))
        }
        return events
    }

    /// The headers by which an origin states a lifetime.
    enum Dates: CaseIterable {
        case age, expires
        var headers: [String] {
            let now = Timestamp.now.seconds
            return switch self {
            case .age: ["Cache-Control: max-age=600", "Date: \(Self.text(now))"]
            case .expires: ["Expires: \(Self.text(now + 600))"]
            }
        }

        private static func text(_ seconds: Double) -> String {
            var time = time_t(seconds)
            var parts = tm()
            gmtime_r(&time, &parts)
            var text = [CChar](repeating: 0, count: 64)
            let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    @Test(arguments: Dates.allCases) func lifetimesFollowTheOriginDespiteClockSkew(dates: Dates) async throws {
        let origin = try CoalescingTests.origin(dates.headers)
        try await withWorkers { cluster, _ in
            for round in 0..<4 {
                let events = try await submitToEachPartition(
                    "\(round)", origin, "/\(round % 2)", width: 40 + 10 * round, "", cluster)
                for event in events {
                    #expect(event.kind == "ready", "\(event.message)")
                    let left = try await cluster.client.send("PTTL", .string(event.key)).integer ?? -1
                    #expect((400_000...600_000).contains(left), "\(left) ms of \(event.jobID)")
                }
            }
            #expect(origin.requests.count == 2)
        }
        try await origin.stop()
    }

    @Test func staleSourceIsFetchedAgainByEachWorker() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in
            RawOrigin.Step.response(photograph, ["Cache-Control: max-age=2"])
        }
        try await withWorkers { cluster, _ in
            for partition in 0..<Self.partitions {
                let ids = [0, 1].map { "\(partition)-\($0)" }
                let job = { CoalescingTests.job(ids[$0], origin, "/\(partition)", width: 40 + $0) }
                try await submit(job(0), to: (partition + 1) % Self.partitions, cluster)
                _ = try await cluster.events.terminal(of: ids[0])
                try await Task.sleep(for: .milliseconds(2500))
                try await submit(job(1), to: partition, cluster)
                _ = try await cluster.events.terminal(of: ids[1])
                // On a busy machine the mock broker may redeliver a job, as at-least-once delivery allows. The source
                // is stale then as well, and the job has another terminal event.
                let fetches = origin.requests.count { $0.path == "/\(partition)" }
                #expect(fetches >= 2)
                try await until("each fetch is followed by its event") {
                    cluster.events.terminal.count { ids.contains($0.jobID) } >= fetches
                }
            }
        }
        try await origin.stop()
    }

    @Test func deadlinesAreIndependentOfClockSkew() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .awaitEnd] }
        let responsive = try CoalescingTests.origin()
        try await withWorkers { cluster, _ in
            let events = try await submitToEachPartition(
                "in-time", responsive, "/a", width: 40, #","deadline":300"#, cluster)
            #expect(events.allSatisfy { $0.kind == "ready" }, "\(events.map(\.message))")
            let late = try await submitToEachPartition("late", origin, "/b", width: 40, #","deadline":2"#, cluster)
            #expect(late.allSatisfy { $0.code == "expired" })
            // One fetch, and no second one after the first jobs have ended.
            #expect(responsive.requests.count == 1)
        }
        try await origin.stop()
        try await responsive.stop()
    }
}
