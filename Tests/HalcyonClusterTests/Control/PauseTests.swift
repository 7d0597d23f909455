import Formats
import HalcyonCoding
import HalcyonModel
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// The order of changes, which arrive by the control topic and by Redis.
@Suite struct PauseTests {
    private static let targets: [PauseTarget] = [.lane(.low), .lane(.high), .tenant("a"), .tenant("b")]

    /// A random history: each change of a target has a later version.
    private func changes(_ count: Int) -> [(target: PauseTarget, change: Pauses.Change)] {
        (1...count).map {
            (Self.targets.randomElement()!, Pauses.Change(isPaused: .random(), version: Int64($0)))
        }
    }

    @Test func copiesAgreeWhateverTheOrderOfChanges() {
        for _ in 0..<200 {
            let changes = changes(20)
            var (one, other) = (Pauses(), Pauses())
            for change in changes { one.record(change.change, of: change.target) }
            for change in changes.shuffled() { other.record(change.change, of: change.target) }
            #expect(one == other)
            var expected: [PauseTarget: Bool] = [:]
            for change in changes { expected[change.target] = change.change.isPaused }
            #expect(Set(one.paused.map(\.target)) == Set(expected.filter(\.value).keys))

            var (first, second) = (Pauses(), Pauses())
            for (index, change) in changes.enumerated() {
                if index % 2 == 0 {
                    first.record(change.change, of: change.target)
                } else {
                    second.record(change.change, of: change.target)
                }
            }
            first.merge(second)
            #expect(first == one)
        }
    }

    @Test func aResumptionAtTheSameTimeCounts() {
        for order in [[true, false], [false, true]] {
            var pauses = Pauses()
            for isPaused in order { pauses.record(.init(isPaused: isPaused, version: 7), of: .lane(.low)) }
            #expect(pauses.paused.isEmpty)
        }
    }

    @Test func forgetsOldResumptionsOnly() {
        var pauses = Pauses()
        pauses.record(.init(isPaused: true, version: 1), of: .lane(.low))
        pauses.record(.init(isPaused: false, version: 1), of: .lane(.high))
        pauses.forgetOld(now: Pauses.memory + 2)
        #expect(pauses.changes.count == 1 && pauses.lanes == [.low])
    }
}

/// Paused lanes and tenants in a real Redis.
@Suite(.limitedParallelism) struct PauseStoreTests {
    private func withStore(_ body: (PauseStore, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let redis = RedisClient(try RedisEndpoint(server.url), settings: .patient())
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(PauseStore(redis, topics: Topics()), redis))
        } catch {
            result = .failure(error)
        }
        await redis.close()
        await server.stop()
        try result.get()
    }

    @Test func pausesAndResumes() async throws {
        try await withStore { store, redis async throws in
            let before = Timestamp.now.milliseconds * 1000
            let (version, isNew) = try await store.set(.lane(.low), isPaused: true)
            #expect(isNew && abs(version - before) < 600_000_000)
            let again = try await store.set(.lane(.low), isPaused: true)
            #expect(again == (version, false))
            _ = try await store.set(.tenant("shop-7"), isPaused: true)
            let pauses = try await store.pauses()
            #expect(pauses.lanes == [.low] && pauses.tenants == ["shop-7"])
            #expect(
                pauses.paused.map(\.target) == [.lane(.low), .tenant("shop-7")] && pauses.paused[0].since == version)
            let resumed = try await store.set(.lane(.low), isPaused: false)
            #expect(resumed.isNew && resumed.version > version)
            #expect(try await store.pauses().lanes.isEmpty)
            // Workers that know a pause which Redis has lost must resume.
            let unknown = try await store.set(.lane(.high), isPaused: false)
            #expect(!unknown.isNew && unknown.version >= before)
            #expect(try await PauseStore(redis, topics: Topics(prefix: "other.")).pauses() == Pauses())
        }
    }

    @Test func aChangeSupersedesTheStoredOneWhateverTheClocks() async throws {
        try await withStore { store, _ async throws in
            // A message from a producer whose clock is an hour ahead.
            let ahead = (Timestamp.now.milliseconds + 3_600_000) * 1000
            try await store.store([.lane(.low): .init(isPaused: true, version: ahead)])
            let (version, isNew) = try await store.set(.lane(.low), isPaused: false)
            #expect(isNew && version == ahead + 1)
            try await store.store([.lane(.low): .init(isPaused: true, version: ahead)])
            #expect(try await store.pauses().lanes.isEmpty)
            try await store.store([.lane(.low): .init(isPaused: true, version: version + 1)])
            #expect(try await store.pauses().lanes == [.low])
        }
    }

    @Test func limitsTheNumberOfPausesAndForgetsOldResumptions() async throws {
        try await withStore { store, redis async throws in
            let key: RedisArgument = "halcyon:paused:{halcyon.}"
            for number in 0..<PauseStore.most {
                _ = try await redis.send("HSET", key, .string("tenant:\(number)"), "paused 7")
            }
            await #expect(throws: PauseError.tooMany) { try await store.set(.lane(.low), isPaused: true) }
            _ = try await redis.send("HSET", key, "tenant:old", "resumed 7", "odd", "x")
            #expect(try await store.set(.tenant("7"), isPaused: false).isNew)
            #expect(try await redis.send("HEXISTS", key, "tenant:old").integer == 0)
            #expect(try await store.set(.lane(.low), isPaused: true).isNew)
            for field in ["tenant:a b", "lane:slow", "odd:x"] {
                _ = try await redis.send("HSET", key, .string(field), "paused 1", "tenant:x", "off 1")
            }
            #expect(try await store.pauses().tenants.count == PauseStore.most - 1)
        }
    }

    @Test func replicasStoreChangesThatRedisDoesNotKnow() async throws {
        try await withStore { store, redis async throws in
            _ = try await store.set(.tenant("a"), isPaused: true)
            let metrics = Metrics()
            let replica = PauseReplica(store, metrics: metrics)
            await replica.start {}
            // The start does not wait long for Redis, and the load is repeated.
            try await until("the pauses are loaded") { replica.current.tenants == ["a"] }
            #expect(metrics.value(of: "halcyon_tenants_paused") == 1)
            let now = Timestamp.now.milliseconds * 1000
            replica.take(.init(isPaused: true, version: now), of: .lane(.low))
            #expect(metrics.value(of: #"halcyon_lane_paused{lane="low"}"#) == 1)
            try await until("Redis knows the change") { try await store.pauses().lanes == [.low] }
            _ = try await redis.send("FLUSHALL")
            // Any message compares the copies.
            replica.take(.init(isPaused: false, version: now), of: .lane(.high))
            try await until("the pauses are stored again") { try await store.pauses() == Pauses() ? false : true }
            try await until("both are there") { try await store.pauses().paused.count == 2 }
            // Old messages are ignored.
            replica.take(.init(isPaused: true, version: now - Pauses.memory - 1), of: .lane(.normal))
            #expect(replica.current.lanes == [.low])
            await replica.close()
        }
    }
}

/// Lists of jobs in flight, in a real Redis. Workers reply in HalcyonWorkerTests.
@Suite struct JobListingTests {
    private func job(_ id: String, _ submitted: Int64, _ worker: String) -> JobDescription {
        JobDescription(
            id: id, lane: .low, tenant: "t", source: "https://example.org/\(id)", stage: .loading, attempt: 2,
            submitted: submitted, age: 1.5, worker: worker)
    }

    @Test func mergesTheOldestJobsOfAllWorkers() throws {
        let lists = [
            JobListing(jobs: [job("c", 3, "w1"), job("e", 5, "w1")], total: 9, worker: "w1"),
            JobListing(jobs: [job("b", 2, "w2"), job("d", 4, "w2")], total: 2, worker: "w2"),
        ]
        let merged = JobListing(merging: lists, limit: 3, expected: ["w1", "w2", "w3"])
        #expect(merged.jobs.map(\.id) == ["b", "c", "d"] && merged.total == 11)
        #expect(merged.workers == ["w1", "w2"] && merged.missing == ["w3"])
    }

    @Test func repliesRoundTrip() throws {
        var one = job("a", 1_764_115_200_123, "w")
        one.batch = "b"
        let list = JobListing(jobs: [one, job("b", 1_764_115_200_124, "w")], total: 2, worker: "w")
        #expect(try JobListing(json: list.json) == list)
        let long = JobDescription(
            id: "a", lane: .high, source: String(repeating: "x", count: 5000), stage: .waiting, attempt: 1,
            submitted: 0, age: 0, worker: "w")
        #expect(long.source.count == 1000)
    }
}
