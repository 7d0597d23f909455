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

    private func closedGate() async throws -> PrioritySemaphore {
        let gate = PrioritySemaphore(1)
        try await gate.acquire()
        return gate
    }

    /// Begins a job that waits until it is detached, or let go.
    private func begin(_ identity: JobIdentity, _ gate: PrioritySemaphore) -> Task<JobCancellationReason?, any Error> {
        Task {
            do {
                try await jobs.run(identity, until: nil) { _ in try await gate.acquire() }
                return nil
            } catch let detachment as JobCancellationReason {
                return detachment
            }
        }
    }

    private func begin(_ identities: [JobIdentity], _ gate: PrioritySemaphore) async throws -> [Task<
        JobCancellationReason?, any Error
    >] {
        let tasks = identities.map { begin($0, gate) }
        try await until("all are under way") { jobs.count == identities.count }
        return tasks
    }

    /// What became of them when the rest was let go.
    private func ends(_ tasks: [Task<JobCancellationReason?, any Error>], _ gate: PrioritySemaphore) async throws
        -> [JobCancellationReason?]
    {
        for _ in tasks { gate.release() }
        var ends: [JobCancellationReason?] = []
        for task in tasks { ends.append(try await task.value) }
        #expect(jobs.count == 0)
        return ends
    }

    @Test func everyJobOfTheIDIsDetached() async throws {
        let gate = try await closedGate()
        let tasks = try await begin([identity("a"), identity("a"), identity("b")], gate)
        jobs.cancel("a", at: now)
        #expect(try await ends(tasks, gate) == [.cancelled, .cancelled, nil])
    }

    @Test func aJobThatWasCancelledBeforeItWasTakenIsNotBegun() async throws {
        jobs.cancel("a", at: now)
        #expect(jobs.isCancelled(identity("a", ago: 5000)))
        #expect(try await begin(identity("a", ago: 5000), try await closedGate()).value == .cancelled)
        // Its id may be used again.
        #expect(!jobs.isCancelled(identity("a", ago: -5000)))
        let gate = try await closedGate()
        let tasks = try await begin([identity("a", ago: -5000)], gate)
        // Somebody's clock is ahead: a word that comes now is about what is under way all the same.
        jobs.cancel("a", at: now + 1)
        #expect(try await ends(tasks, gate) == [.cancelled])
    }

    @Test func anOldWordIsAboutOldJobs() async throws {
        let gate = try await closedGate()
        let tasks = try await begin([identity("a", ago: 60_000), identity("a", ago: 10_000)], gate)
        jobs.cancel("a", at: now - 30_000, isOld: true)
        #expect(try await ends(tasks, gate) == [.cancelled, nil])
    }

    @Test func lowerGenerationsOfTheSlotAreDetached() async throws {
        func claim(_ name: String, _ generation: Int64, _ tenant: String? = nil) -> SupersedeToken {
            SupersedeToken(name, generation: generation, of: tenant)
        }
        let gate = try await closedGate()
        let claims = [
            claim("\u{e9}", 1), claim("\u{e9}", 2), claim("\u{e9}", 3), claim("\u{e9}", 1, "a"), claim("e\u{301}", 1),
            nil,
        ]
        let tasks = try await begin(claims.enumerated().map { identity("\($0)", slot: $1) }, gate)
        jobs.supersede(claim("\u{e9}", 2).key, by: 2)
        // The first reason counts.
        jobs.cancel("0", at: now)
        #expect(try await ends(tasks, gate) == [.superseded(by: 2), nil, nil, nil, nil, nil])
    }
}
