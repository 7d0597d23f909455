import Concurrency
import Formats
import HalcyonCluster
import TestSupport
import Testing

@testable import HalcyonWorker

@Suite struct ActiveJobsTests {
    let jobs = ActiveJobs(cancelled: CancelledJobs(capacity: 10, lifetime: 3_600_000))
    let now = Timestamp.now.milliseconds

    private func identity(_ id: String, ago: Int64 = 1000, slot: SupersedeToken? = nil) -> JobIdentity {
        JobIdentity(id: id, submitted: now - ago, slot: slot)
    }

    private func exhaustedSemaphore() async throws -> PrioritySemaphore {
        let semaphore = PrioritySemaphore(1)
        try await semaphore.acquire()
        return semaphore
    }

    /// Starts a job that waits until it is cancelled or gets a permit.
    private func start(
        _ identity: JobIdentity, _ semaphore: PrioritySemaphore
    ) -> Task<JobCancellationReason?, any Error> {
        Task {
            do {
                try await jobs.run(identity, until: nil) { _ in try await semaphore.acquire() }
                return nil
            } catch let reason as JobCancellationReason {
                return reason
            }
        }
    }

    private func start(_ identities: [JobIdentity], _ semaphore: PrioritySemaphore) async throws -> [Task<
        JobCancellationReason?, any Error
    >] {
        let tasks = identities.map { start($0, semaphore) }
        try await until("all jobs are in flight") { jobs.count == identities.count }
        return tasks
    }

    /// Lets the remaining jobs end and returns the cancellation reason of each job.
    private func cancellationReasons(
        _ tasks: [Task<JobCancellationReason?, any Error>], _ semaphore: PrioritySemaphore
    ) async throws -> [JobCancellationReason?] {
        for _ in tasks { semaphore.release() }
        var reasons: [JobCancellationReason?] = []
        for task in tasks { reasons.append(try await task.value) }
        #expect(jobs.count == 0)
        return reasons
    }

    @Test func cancelsEveryJobWithTheID() async throws {
        let semaphore = try await exhaustedSemaphore()
        let tasks = try await start([identity("a"), identity("a"), identity("b")], semaphore)
        jobs.cancel(.job("a"), at: now)
        #expect(try await cancellationReasons(tasks, semaphore) == [.cancelled, .cancelled, nil])
    }

    @Test func cancellationByAKeySparesJobsOfOthersWithTheSameID() async throws {
        func job(_ owner: String?) -> JobIdentity {
            var job = identity("a")
            job.owner = owner
            return job
        }
        let semaphore = try await exhaustedSemaphore()
        let tasks = try await start([job("shop"), job("other"), job(nil)], semaphore)
        jobs.cancel(.job("a", ownedBy: "shop"), at: now)
        #expect(try await cancellationReasons(tasks, semaphore) == [.cancelled, nil, nil])
    }

    @Test func jobCancelledBeforeDeliveryNeverStarts() async throws {
        jobs.cancel(.job("a"), at: now)
        #expect(jobs.isCancelled(identity("a", ago: 5000)))
        #expect(try await start(identity("a", ago: 5000), try await exhaustedSemaphore()).value == .cancelled)
        // The id can be reused.
        #expect(!jobs.isCancelled(identity("a", ago: -5000)))
        let semaphore = try await exhaustedSemaphore()
        let tasks = try await start([identity("a", ago: -5000)], semaphore)
        // Clocks differ: a current cancellation applies to jobs in flight even if they appear to be newer.
        jobs.cancel(.job("a"), at: now + 1)
        #expect(try await cancellationReasons(tasks, semaphore) == [.cancelled])
    }

    @Test func oldCancellationAppliesOnlyToOlderJobs() async throws {
        let semaphore = try await exhaustedSemaphore()
        let tasks = try await start([identity("a", ago: 60_000), identity("a", ago: 10_000)], semaphore)
        jobs.cancel(.job("a"), at: now - 30_000, isOld: true)
        #expect(try await cancellationReasons(tasks, semaphore) == [.cancelled, nil])
    }

    /// The id of a job is not used again before it has ended. A tenant continues to submit jobs.
    @Test func cancellationByTenantSparesLaterJobs() async throws {
        func job(_ id: String, ago: Int64, _ tenant: String?) -> JobIdentity {
            var job = identity(id, ago: ago)
            job.tenant = tenant
            return job
        }
        let semaphore = try await exhaustedSemaphore()
        let tasks = try await start(
            [job("a", ago: 1000, "t"), job("b", ago: -1000, "t"), job("c", ago: 1000, "u"), job("d", ago: 1000, nil)],
            semaphore)
        jobs.cancel(.tenant("t"), at: now)
        #expect(try await cancellationReasons(tasks, semaphore) == [.cancelled, nil, nil, nil])
        #expect(jobs.isCancelled(job("e", ago: 1, "t")) && !jobs.isCancelled(job("e", ago: -1, "t")))
    }

    /// The id of a batch can be used again when the log has forgotten the first one.
    @Test func cancelsEnteringJobsOfABatchForAsLongAsTheLogKnowsItsCancellation() async throws {
        let isBatchCancelled = Lock(true)
        let jobs = ActiveJobs(cancelled: CancelledJobs(capacity: 10, lifetime: 3_600_000)) { batch in
            batch == "b" && isBatchCancelled.withLock { $0 }
        }
        jobs.cancel(batch: "b")
        func run() async throws {
            var job = identity("a")
            job.batch = "b"
            try await jobs.run(job, until: nil) { (_) async throws -> Void in }
        }
        await #expect(throws: JobCancellationReason.cancelled) { try await run() }
        isBatchCancelled.withLock { $0 = false }
        try await run()
        #expect(jobs.count == 0)
    }

    @Test func supersedesLowerGenerationsOfTheSlot() async throws {
        func claim(_ name: String, _ generation: Int64, _ tenant: String? = nil) -> SupersedeToken {
            SupersedeToken(name, generation: generation, of: tenant)
        }
        let semaphore = try await exhaustedSemaphore()
        let claims = [
            claim("\u{e9}", 1), claim("\u{e9}", 2), claim("\u{e9}", 3), claim("\u{e9}", 1, "a"), claim("e\u{301}", 1),
            nil,
        ]
        let tasks = try await start(claims.enumerated().map { identity("\($0)", slot: $1) }, semaphore)
        jobs.supersede(claim("\u{e9}", 2).key, by: 2)
        // The first reason counts.
        jobs.cancel(.job("0"), at: now)
        #expect(try await cancellationReasons(tasks, semaphore) == [.superseded(by: 2), nil, nil, nil, nil, nil])
    }
}
