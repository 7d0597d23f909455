import ChaosHarness
import HalcyonModel
import HalcyonResults
import Testing

/// The audit of synthetic ledgers. Each violation must be found.
@Suite struct AuditTests {
    private func job(_ number: Int, allowed: Set<String> = ["ready"], source: String? = nil, at: Double = 1) -> SentJob
    {
        SentJob(
            id: "job\(number)", place: "jobs-0-\(number)", kind: "ordinary", allowed: allowed, source: source, at: at)
    }

    private func event(_ number: Int, _ end: String = "ready", id: String = "ready", at: Double = 2) -> TerminalEvent {
        TerminalEvent(id: "jobs-0-\(number)-\(id)", end: end, at: at)
    }

    private func audit(
        mode: Audit.Mode = .exactlyOnce, _ sent: [SentJob], _ ends: [TerminalEvent],
        _ faults: [FaultRecord] = [], requests: [String: Int] = [:]
    ) -> Audit {
        Audit(mode: mode, sent: sent, ends: ends, faults: faults, requests: requests)
    }

    @Test func acceptsOneAllowedEndPerJob() {
        let sent = [job(1), job(2, allowed: ["failed/not_found"])]
        let audit = self.audit(sent, [event(1), event(2, "failed/not_found", id: "failed")])
        #expect(audit.broken.isEmpty)
        #expect(audit.toldAgain.isEmpty && audit.unknown.isEmpty)
    }

    @Test func findsBatchesThatDoNotCompleteOnceWithRightCounts() {
        var sent = (0..<4).map { job($0) }
        for index in sent.indices { sent[index].batch = BatchMembership(batch: "b", index: index) }
        let ends = [event(0), event(1), event(2, "failed/not_found"), event(3, "cancelled")]
        func broken(_ completions: [[String: Int]]) -> Int {
            BatchCompletionAudit(
                sent: sent, ends: ends, completions: completions.map { BatchCompletion(batch: "b", counts: $0) }
            ).broken.count
        }
        let right = ["ready": 2, "failed": 1, "cancelled": 1, "superseded": 0]
        #expect(broken([right]) == 0)
        #expect(broken([]) == 1 && broken([right, right]) == 1)
        #expect(broken([right.merging(["ready": 3]) { $1 }]) == 1)
        #expect(broken([right.merging(["ready": 1, "failed": 2]) { $1 }]) == 1)
    }

    @Test func findsJobsThatStartTooEarly() {
        var (late, soon) = (job(1, at: 1), job(2, at: 1))
        (late.notBefore, soon.notBefore) = (5, 5)
        let audit = self.audit([late, soon], [event(1, at: 6.1), event(2, at: 5.9)])
        #expect(audit.early.map(\.id) == ["job2"] && audit.broken.count == 1)
    }

    @Test func findsLostJobs() {
        let audit = self.audit([job(1), job(2)], [event(2)])
        #expect(audit.lost.map(\.id) == ["job1"])
        #expect(audit.broken.count == 1)
    }

    @Test func duplicateEventsViolateExactlyOnceOnly() {
        let (sent, ends) = ([job(1)], [event(1), event(1)])
        #expect(audit(mode: .exactlyOnce, sent, ends).broken.count == 1)
        let lenient = audit(mode: .atLeastOnce, sent, ends)
        #expect(lenient.broken.isEmpty)
        #expect(lenient.toldAgain.count == 1 && lenient.severalEnds.isEmpty)
    }

    @Test func findsJobsWithTwoOutcomes() {
        let audit = self.audit(
            mode: .atLeastOnce, [job(1, allowed: ["ready", "cancelled"])], [event(1), event(1, "cancelled")])
        #expect(audit.severalEnds.map(\.job.id) == ["job1"])
        #expect(audit.broken.isEmpty)
    }

    @Test func findsDuplicatesWithDifferentIDs() {
        let audit = self.audit(mode: .atLeastOnce, [job(1)], [event(1), event(1, id: "other")])
        #expect(audit.unrecognised.map(\.job.id) == ["job1"])
        #expect(audit.broken.count == 1)
    }

    @Test func recordsOfOneJobIDCountSeparately() {
        var again = job(2)
        again.id = "job1"
        #expect(audit([job(1), again], [event(1), event(2)]).broken.isEmpty)
        #expect(audit([job(1), again], [event(1)]).lost.count == 1)
    }

    @Test func findsForbiddenOutcomes() {
        let audit = self.audit(mode: .atLeastOnce, [job(1)], [event(1, "failed/internal", id: "failed")])
        #expect(audit.otherwise.map(\.job.id) == ["job1"])
        #expect(audit.broken.count == 1)
    }

    @Test func lastGenerationMustNotBeSuperseded() {
        let jobs = (1...2).map { number in
            var job = job(number, allowed: ["ready", "superseded"])
            (job.slot, job.generation) = ("cell", number)
            return job
        }
        let superseded = [event(1, "superseded", id: "ended"), event(2, "superseded", id: "ended")]
        #expect(audit(jobs, superseded).otherwise.map(\.job.id) == ["job2"])
        #expect(audit(jobs, [superseded[0], event(2)]).broken.isEmpty)
    }

    @Test func findsEventsOfUnknownJobs() {
        let audit = audit(mode: .atLeastOnce, [job(1)], [event(1), event(7)])
        #expect(audit.unknown.map(\.id) == ["jobs-0-7-ready"] && audit.broken.count == 1)
    }

    @Test func toleratesEventsOfUnconfirmedRecords() {
        func broken(unsure: Int) -> Int {
            let ends = [event(1), event(7, "started"), event(7), event(8)]
            return Audit(mode: .atLeastOnce, sent: [job(1)], unsure: unsure, ends: ends, faults: [], requests: [:])
                .broken
                .count
        }
        #expect(broken(unsure: 1) == 1 && broken(unsure: 2) == 0)
    }

    @Test func sourceMustBeFetchedOnce() {
        let (sent, ends) = ([job(1, source: "/a"), job(2, source: "/a")], [event(1), event(2)])
        #expect(audit(sent, ends, requests: ["/a": 1]).broken.isEmpty)
        let twice = audit(sent, ends, requests: ["/a": 2])
        #expect(twice.fetches.extra == 1 && twice.fetches.bound == 0)
        #expect(twice.fetches.beyond.map(\.source) == ["/a"])
        #expect(twice.broken.count == 1)
    }

    @Test func faultExcusesOnlyFetchesDuringIt() {
        let (sent, ends) = ([job(1, source: "/a")], [event(1)])
        let near = FaultRecord(kind: .kill, begin: 1.5, end: 1.6, disturbances: 2)
        #expect(audit(sent, ends, [near], requests: ["/a": 3]).broken.isEmpty)
        #expect(!audit(sent, ends, [near], requests: ["/a": 4]).broken.isEmpty)
        let later = FaultRecord(kind: .kill, begin: 100, end: 101, disturbances: 2)
        #expect(!audit(sent, ends, [later], requests: ["/a": 2]).broken.isEmpty)
        // Without Redis, each job may have fetched the source.
        let redis = FaultRecord(kind: .redisKill, begin: 1.5, end: 1.6, disturbances: 1, hitsRedis: true)
        #expect(audit(sent, ends, [redis], requests: ["/a": 3]).broken.isEmpty)
    }

    @Test func requiredJobsMayFailOnlyWhileTheStoreOrRedisIsUnavailable() {
        var job = job(1)
        job.requiresStore = true
        func broken(_ end: String, _ faults: FaultRecord...) -> Int {
            audit([job], [event(1, end, id: "failed")], faults).broken.count
        }
        let outage = FaultRecord(kind: .storeCut, begin: 1.5, end: 1.6)
        #expect(broken("failed/internal") == 1 && broken("failed/internal", outage) == 0)
        #expect(broken("failed/internal", FaultRecord(kind: .redisKill, begin: 1.5, end: 1.6, hitsRedis: true)) == 0)
        #expect(broken("failed/internal", FaultRecord(kind: .freeze, begin: 1.5, end: 1.6)) == 0)
        #expect(broken("failed/internal", FaultRecord(kind: .kill, begin: 1.5, end: 1.6)) == 1)
        #expect(broken("failed/internal", FaultRecord(kind: .storeFull, begin: 2.5, end: 9)) == 1)
        #expect(broken("failed/invalid_job", outage) == 1)
        job.requiresStore = false
        #expect(broken("failed/internal", outage) == 1)
    }

    @Test func findsWrongImages() {
        let sent = (1...4).map { number in
            var job = job(number)
            job.outputs = ["cat 64", "cat 32"]
            return job
        }
        func ready(_ number: Int, _ digests: String...) -> TerminalEvent {
            var event = event(number)
            event.outputs = digests.map { TerminalEvent.Output(key: "key", sha256: $0) }
            return event
        }
        let right = [ready(1, "a", "b"), ready(2, "a", "b")]
        #expect(audit(sent.prefix(2) + [], right).broken.isEmpty)
        #expect(audit(sent, right + [event(3, "cancelled"), event(4, "cancelled")]).wrongImages.isEmpty)
        let wrong = audit(sent, right + [ready(3, "b", "a"), ready(4, "a")])
        #expect(wrong.wrongImages.map(\.job.id) == ["job3", "job4"] && wrong.broken.count == 1)
    }

    @Test func findsMissingAndWrongResultsInTheStore() async throws {
        var sent = (1...4).map { job($0) }
        sent[0].requiresStore = true
        sent[1].requiresStore = true
        let keys = (1...4).map {
            "halcyon:{\(String(repeating: "\($0)", count: 32))}:\(String(repeating: "a", count: 32))"
        }
        let ends = (1...4).map { number in
            var event = event(number)
            event.outputs = [TerminalEvent.Output(key: keys[number - 1], sha256: "digest \(number)")]
            return event
        }
        func stored(_ number: Int, _ digest: String) throws -> (ResultKey, StoredResult) {
            let key = try #require(ResultKey(keys[number - 1]))
            let source = SourceMetadata(status: 200, etag: nil, bytes: 1, format: .jpeg, width: 1, height: 1)
            let metadata = ResultMetadata(
                width: 1, height: 1, format: .jpeg, bytes: 1, sha256: digest, source: source)
            return (
                key,
                StoredResult(
                    key: key, tenant: nil, body: [0], metadata: metadata, expiresAt: 0, storedAt: 0, rule: "", fence: 0,
                    since: 0)
            )
        }
        let content = Dictionary(uniqueKeysWithValues: [try stored(1, "digest 1"), try stored(3, "digest 4")])
        let audit = await StoreAudit(sent: sent, ends: ends) { content[$0] }
        #expect(audit.sought == 4 && audit.found == 2 && audit.broken.count == 2)
        #expect(audit.missing.map(\.job.id) == ["job2"] && audit.wrong.map(\.job.id) == ["job3"])
    }

    @Test func recoveryLastsUntilEarlierJobsHaveEnded() {
        let sent = [job(1, at: 1), job(2, at: 4), job(3, at: 20)]
        let ends = [event(1, at: 9), event(2, at: 8), event(3, at: 21)]
        let recoveries = audit(sent, ends, [FaultRecord(kind: .kill, begin: 3, end: 5)]).recoveries
        #expect(recoveries.map(\.seconds) == [4])
    }
}
