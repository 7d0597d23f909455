import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// Callers in two processes that request the same key.
@Suite(.limitedParallelism) struct DistributedSingleFlightGroupTests {
    private typealias Group = DistributedSingleFlightGroup<String, String>

    /// Work that counts its executions, and stores a value under the fencing token of its lease.
    private final class Work: DistributedExecution {
        let product: String
        let redis: RedisClient
        let executions = Lock(0)
        let body: @Sendable (Work, [String], Execution) async throws -> [ExecutionResult<String>]
        let verdict: @Sendable (Int) throws -> String?

        init(
            _ fixture: LeaseFixture, verdict: @escaping @Sendable (Int) throws -> String? = { _ in nil },
            _ body: @escaping @Sendable (Work, [String], Execution) async throws -> [ExecutionResult<String>]
        ) {
            product = fixture.product
            redis = fixture.redis
            self.verdict = verdict
            self.body = body
        }

        var usesLeases: Bool { true }
        var leaseKind: LeaseKind { .result }
        func lease(for key: String) -> LeaseName { LeaseName(product: "\(product)\(key)") }
        func seen(_ key: String) -> KnownVersion { .nothing }

        func stored(_ key: String, hasWaited: Bool, _ context: WorkContext) async throws -> String? {
            try await redis.send(["HGET", .string("\(product)\(key)"), "value"]).string.map {
                hasWaited ? "\($0), awaited" : $0
            }
        }

        func reaction(to outcome: LeaseOutcome, of key: String) -> LeaseReaction<String> {
            switch outcome {
            case .failed(let reason): .complete(reason)
            case .unshared: .executeWithoutLease
            case .stored, .givenUp: .askAgain
            }
        }

        func verdict(on key: String, deaths: Int, _ limits: CrashThresholds) throws -> String? { try verdict(deaths) }

        func execute(_ keys: [String], _ execution: Execution) async throws -> [ExecutionResult<String>] {
            executions.withLock { $0 += 1 }
            try execution.context.markStarted()
            return try await body(self, keys, execution)
        }

        func store(_ key: String, _ value: String, _ fence: Int) async throws {
            _ = try await redis.send([
                "HSET", .string("\(product)\(key)"), "fence", .integer(fence), "value", .string(value),
            ])
        }
    }

    private struct TestFailure: Error {}

    private func value(
        _ singleFlight: Group, _ work: Work, _ start: @escaping @Sendable (Bool) -> Bool = { _ in true }
    ) async throws -> String? {
        try await singleFlight.run(["a"], WorkContext(start: start), work)["a"]?.value
    }

    @Test func otherProcessReadsTheStoredValue() async throws {
        try await LeaseFixture.with { fixture in
            let singleFlight = [Group(.result, try fixture.process()), Group(.result, try fixture.process())]
            let gate = PrioritySemaphore(1)
            try await gate.acquire()
            let work = Work(fixture) { work, keys, execution in
                try await gate.acquire()
                try await work.store(keys[0], "made", execution.leases?[0].fence ?? 0)
                return [.completed("made", .stored)]
            }
            let first = Task { try await value(singleFlight[0], work) }
            try await until("the work executes") { work.executions.withLock { $0 } == 1 }
            let joined = Task { try await value(singleFlight[0], work) }
            let other = Task { try await value(singleFlight[1], work) }
            try await until("the other process waits") {
                try await fixture.redis.send(["EXISTS", .string(work.lease(for: "a").waiters)]).integer == 1
            }
            gate.release()
            #expect(try await first.value == "made")
            #expect(try await joined.value == "made")
            #expect(try await other.value == "made, awaited")
            #expect(work.executions.withLock { $0 } == 1)
            // The stored value is not produced again.
            #expect(try await value(singleFlight[1], work) == "made")
            #expect(work.executions.withLock { $0 } == 1)
        }
    }

    @Test func otherProcessTakesOverAbandonedWork() async throws {
        try await LeaseFixture.with { fixture in
            let singleFlight = [Group(.result, try fixture.process()), Group(.result, try fixture.process())]
            let gate = PrioritySemaphore(1)
            try await gate.acquire()
            let failing = Work(fixture) { _, _, _ in
                try await gate.acquire()
                return [.failed(TestFailure(), .givenUp)]
            }
            let working = Work(fixture) { _, _, _ in [.completed("made", .unshared)] }
            let first = Task { try await value(singleFlight[0], failing) }
            try await until("the work executes") { failing.executions.withLock { $0 } == 1 }
            let other = Task { try await value(singleFlight[1], working) }
            try await until("the other process waits") {
                try await fixture.redis.send(["EXISTS", .string(working.lease(for: "a").waiters)]).integer == 1
            }
            gate.release()
            await #expect(throws: TestFailure.self) { try await first.value }
            #expect(try await other.value == "made")
        }
    }

    @Test func sharedFailureEndsTheWaitOfOtherProcesses() async throws {
        try await LeaseFixture.with { fixture in
            let singleFlight = [Group(.result, try fixture.process()), Group(.result, try fixture.process())]
            let gate = PrioritySemaphore(1)
            try await gate.acquire()
            let work = Work(fixture) { _, _, _ in
                try await gate.acquire()
                return [.completed("broken here", .failed("broken"))]
            }
            try await fixture.waitForSubscriptions(2)
            let first = Task { try await value(singleFlight[0], work) }
            try await until("the work executes") { work.executions.withLock { $0 } == 1 }
            let other = Task { try await value(singleFlight[1], work) }
            try await until("the other process waits") {
                try await fixture.redis.send(["EXISTS", .string(work.lease(for: "a").waiters)]).integer == 1
            }
            gate.release()
            #expect(try await first.value == "broken here")
            #expect(try await other.value == "broken")
            #expect(work.executions.withLock { $0 } == 1)
        }
    }

    @Test func executesFencedOutWorkAtMostThreeTimes() async throws {
        try await LeaseFixture.with { fixture in
            let work = Work(fixture) { _, _, _ in [.fenced("made")] }
            let singleFlight = Group(.result, try fixture.process())
            #expect(try await value(singleFlight, work) == "made")
            #expect(work.executions.withLock { $0 } == 3)
        }
    }

    @Test func executesWithoutLeases() async throws {
        try await LeaseFixture.with { fixture in
            let work = Work(fixture) { _, _, execution in
                #expect(execution.leases == nil)
                return [.completed("made", .stored)]
            }
            #expect(try await value(Group(.source, nil), work) == "made")
            var options = LeaseFixture.patient
            options.fallbackTimeout = .milliseconds(100)
            let leases = try fixture.process(options)
            await fixture.server.stop()
            #expect(try await value(Group(.result, leases, degraded: PrioritySemaphore(1)), work) == "made")
        }
    }

    @Test func refusedStartCancelsTheWork() async throws {
        try await LeaseFixture.with { fixture in
            let work = Work(fixture) { _, _, _ in [.completed("made", .stored)] }
            let singleFlight = Group(.result, try fixture.process())
            await #expect(throws: CancellationError.self) { try await value(singleFlight, work) { _ in false } }
        }
    }

    @Test func quarantinesThenRejectsCrashingKeys() async throws {
        try await LeaseFixture.with { fixture in
            let trusted = Work(fixture) { _, _, execution in
                #expect(execution.quarantine == nil)
                return [.completed("made", .givenUp)]
            }
            let name = trusted.lease(for: "a")
            // The leases of two crashed processes expire.
            for process in ["one", "other"] {
                let crashed = LeaseStore(redis: fixture.redis, process: process, duration: .milliseconds(50))
                _ = try await crashed.enter([(name, .nothing)], attempt: process, level: 1)
                try await Task.sleep(for: .milliseconds(100))
            }
            let singleFlight = Group(.result, try fixture.process())
            let suspect = Work(fixture) { _, _, execution in
                #expect(execution.quarantine == CrashThresholds())
                return [.completed("made in quarantine", .givenUp)]
            }
            #expect(try await value(singleFlight, suspect) == "made in quarantine")
            let refused = Work(fixture, verdict: { $0 >= 2 ? "refused" : nil }) { _, _, _ in [] }
            #expect(try await value(singleFlight, refused) == "refused")
            let throwing = Work(fixture, verdict: { _ in throw TestFailure() }) { _, _, _ in [] }
            await #expect(throws: TestFailure.self) { try await value(singleFlight, throwing) }
            let executions = refused.executions.withLock { $0 } + throwing.executions.withLock { $0 }
            #expect(executions == 0)
        }
    }
}
