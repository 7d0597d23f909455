import Glibc
import HalcyonCluster
import Kafka
import Redis
import TestSupport
import Testing

/// Workers that are killed or paused during work that others wait for.
///
/// `HALCYON_FAULTS=50` injects 50 faults and prints statistics. `HALCYON_FAULTS_SEED` selects other faults.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct LeaseOwnerFaultTests {
    private static func number(_ name: String, else standard: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? standard
    }

    private struct Outcome {
        var reports: [FaultInjector.Report] = []
        var versions: [String: [LeaseSnapshot.Version]] = [:]
        /// The SHA-1 of each stored body at the end, by key.
        var digests: [String: String] = [:]
        var requests: [String: Int] = [:]
        var stream: JobStream

        /// True if waiters took over in time after a kill and after a pause, and were late after at most a third of the
        /// faults.
        var isMostlyInTime: Bool {
            let inTime = reports.filter(\.isInTime)
            let late = reports.filter { !$0.takeovers.isEmpty && !$0.isInTime }
            return Set(inTime.map { $0.kind == .kill }).count == 2 && late.count <= inTime.count / 2
        }
    }

    private func run(faults: Int, seed: UInt64) async throws -> Outcome {
        let kafka = try #require(SharedApacheKafka.current)
        let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        try await kafka.create(topics.all, partitions: JobStream.partitions)
        let redis = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(redis.url), settings: .patient())
        let (producer, events) = (try Producer(properties: properties), try await EventLog(topics, properties))
        let origin = try JobStream.origin()
        let stream = JobStream(producer, topics, events, origin)
        let monitor = LeaseMonitor(client)
        let processes = WorkerProcesses(
            brokers: kafka.bootstrapServers, prefix: topics.prefix, redis, client,
            environment: [
                "HALCYON_LEASES_DURATION": "\(Int(FaultInjector.lease / .milliseconds(1)))ms",
                "HALCYON_WORKER_CONCURRENCY": "1",
            ])
        let result: Result<Outcome, any Error>
        do {
            result = .success(
                try await outcome(
                    faults, seed, FaultInjector(processes: processes, monitor: monitor), stream, origin, client))
        } catch {
            result = .failure(error)
        }
        await processes.close()
        try await monitor.close()
        await events.close()
        await producer.close()
        await client.close()
        await redis.stop()
        try await origin.stop()
        return try result.get()
    }

    private func outcome(
        _ faults: Int, _ seed: UInt64, _ injector: FaultInjector, _ stream: JobStream, _ origin: RawOrigin,
        _ client: RedisClient
    ) async throws -> Outcome {
        for _ in 0..<3 { try await injector.processes.add() }
        let submitting = Task { try await stream.run() }
        defer { submitting.cancel() }
        var outcome = Outcome(stream: stream)
        var numbers = SeededNumbers(seed: seed)
        // On a busy machine waiters may be late. More faults show whether they usually are.
        for number in 0..<faults + 12 where number < faults || !outcome.isMostlyInTime {
            let kind: FaultInjector.Kind =
                number % 2 == 0 ? .kill : Int.random(in: 0..<3, using: &numbers) == 0 ? .longStop : .stop
            let phase: FaultInjector.Phase = number / 2 % 2 == 0 ? .fetch : .render
            try await Task.sleep(for: .milliseconds(Int.random(in: 0..<300, using: &numbers)))
            outcome.reports.append(try await injector.inject(kind, in: phase, &numbers))
        }
        submitting.cancel()
        try await submitting.value
        try await stream.waitUntilSettled()
        try await injector.monitor.poll()
        outcome.versions = injector.monitor.versions
        for key in outcome.versions.keys {
            let digest = try await client.send(
                "EVAL", "return redis.sha1hex(redis.call('HGET', KEYS[1], 'body') or '')", "1", .string(key))
            outcome.digests[key] = digest.string
        }
        for request in origin.requests { outcome.requests[request.path, default: 0] += 1 }
        return outcome
    }

    @Test func failedOwnersAreReplacedAndOverwriteNothingNewer() async throws {
        let faults = Self.number("HALCYON_FAULTS", else: 6)
        let outcome = try await run(faults: faults, seed: UInt64(Self.number("HALCYON_FAULTS_SEED", else: 1)))
        let stream = outcome.stream

        // No job is lost, and the terminal events of a job that ends twice have the same id.
        #expect(stream.terminalEventIDs.count == stream.submitted)
        #expect(stream.failed.isEmpty)
        let twice = stream.terminalEventIDs.filter { $0.value.count > 1 }
        for (job, events) in twice { #expect(Set(events).count == 1, "job \(job)") }

        // Waiters took over, and usually in time.
        let takenOver = outcome.reports.filter { !$0.takeovers.isEmpty }
        #expect(takenOver.count > outcome.reports.count / 2 && outcome.isMostlyInTime, "\(outcome.reports)")

        // No older version was stored after a newer one, and the newest is stored. An owner that was paused before it
        // learned that its result is stored stores the same result once more.
        for (key, versions) in outcome.versions {
            for (older, newer) in zip(versions, versions.dropFirst()) {
                #expect(
                    older.fence < newer.fence || (older.fence == newer.fence && older.digest == newer.digest),
                    "\(key): \(versions)")
            }
            #expect(outcome.digests[key] == versions.last?.digest, "\(key): \(versions)")
        }

        // Each fault costs only the fetches that it interrupted.
        let extra = outcome.requests.values.reduce(0) { $0 + $1 - 1 }
        #expect(outcome.requests.count == stream.sources)
        #expect(extra <= outcome.reports.reduce(0) { $0 + $1.fetches })
        if getenv("HALCYON_FAULTS") != nil { print(statistics(outcome, twice: twice.count, extra: extra)) }
    }

    private func statistics(_ outcome: Outcome, twice: Int, extra: Int) -> String {
        let reports = outcome.reports
        let times = reports.flatMap(\.takeovers).sorted()
        let kinds = [FaultInjector.Kind.kill, .stop, .longStop].map { kind in reports.count { $0.kind == kind } }
        let overwritten = outcome.versions.values.reduce(0) { $0 + $1.count - 1 }
        return """
            faults \(reports.count): killed \(kinds[0]), paused \(kinds[1]), \
            paused for longer than the session \(kinds[2]); \
            in a fetch \(reports.count { $0.phase == .fetch }), in a rendering \(reports.count { $0.phase == .render })
            jobs \(outcome.stream.submitted), ended \(outcome.stream.terminalEventIDs.count), ended twice \(twice)
            sources \(outcome.requests.count), fetched again \(extra), \
            fetches interrupted \(reports.reduce(0) { $0 + $1.fetches })
            leases taken over \(times.count), abandoned by all waiters \(reports.reduce(0) { $0 + $1.abandoned }), \
            median \(times.isEmpty ? .zero : times[times.count / 2]), slowest \(times.last ?? .zero), \
            largest lag of the monitor \(reports.map(\.lag).max() ?? .zero)
            keys \(outcome.versions.count), stored again by newer owners \(overwritten)
            """
    }
}
