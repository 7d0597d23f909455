import HalcyonCoding
import HalcyonModel
import Testing

@testable import HalcyonCluster

@Suite struct CancelledJobsTests {
    @Test func appliesToJobsSubmittedBeforeTheCancellation() {
        var jobs = CancelledJobs(capacity: 10, lifetime: 1000)
        jobs.cancel("a", at: 500, now: 600)
        #expect(jobs.contains("a", submitted: 499) && jobs.contains("a", submitted: 500))
        // The id can be used again.
        #expect(!jobs.contains("a", submitted: 501) && !jobs.contains("b", submitted: 1))
        jobs.cancel("a", at: 700, now: 700)
        #expect(jobs.contains("a", submitted: 600))
        // A late, older cancellation does not replace a newer one.
        jobs.cancel("a", at: 650, now: 710)
        #expect(jobs.contains("a", submitted: 700) && jobs.count == 1)
    }

    @Test func distinguishesCanonicallyEquivalentIDs() {
        var jobs = CancelledJobs(capacity: 10, lifetime: 1000)
        jobs.cancel("\u{e9}", at: 5, now: 5)
        #expect(!jobs.contains("e\u{301}", submitted: 1))
    }

    @Test func appliesToJobsWithTheAttribute() throws {
        let source = try Source("https://example.org/a")
        func job(_ tenant: String? = nil, tags: [String] = [], submitted: Int64 = 5) -> JobIdentity {
            var job = JobIdentity(id: "t", submitted: submitted)
            (job.tenant, job.tags) = (tenant, tags)
            job.sourceHash = SourceRequest(source, tenant: tenant).sourceHash
            return job
        }
        func cancelled(_ target: CancelTarget) -> CancelledJobs {
            var jobs = CancelledJobs(capacity: 10, lifetime: 1000)
            jobs.cancel(CancellationKey(target), at: 5, now: 5)
            return jobs
        }
        let tenant = cancelled(.tenant("t"))
        #expect(tenant.contains(job("t")) && !tenant.contains(job("u")) && !tenant.contains(job()))
        #expect(!tenant.contains(job("t", submitted: 6)))
        let tag = cancelled(.tag("x", of: "t"))
        #expect(tag.contains(job("t", tags: ["w", "x"])) && !tag.contains(job("t", tags: ["w"])))
        #expect(!tag.contains(job("u", tags: ["x"])) && !tag.contains(job(tags: ["x", "t/x"])))
        let untenanted = cancelled(.tag("\u{e9}"))
        #expect(untenanted.contains(job(tags: ["\u{e9}"])) && !untenanted.contains(job(tags: ["e\u{301}"])))
        #expect(!untenanted.contains(job("t", tags: ["\u{e9}"])))
        let url = cancelled(.source(source, of: "t"))
        #expect(url.contains(job("t")) && !url.contains(job()) && !url.contains(JobIdentity(id: "t", submitted: 1)))
    }

    @Test func cancellationByAKeySparesJobsOfOthersWithTheSameID() {
        var jobs = CancelledJobs(capacity: 10, lifetime: 1000)
        func isCancelled(_ id: String, of owner: String?) -> Bool {
            var job = JobIdentity(id: id, submitted: 1)
            job.owner = owner
            return jobs.contains(job)
        }
        jobs.cancel(CancellationKey(.job("a", ownedBy: "shop")), at: 5, now: 5)
        #expect(isCancelled("a", of: "shop") && !isCancelled("b", of: "shop"))
        #expect(!isCancelled("a", of: "other") && !isCancelled("a", of: nil))
        jobs.cancel("a", at: 5, now: 5)
        #expect(isCancelled("a", of: "other") && isCancelled("a", of: nil))
    }

    @Test func cancellationsOfAllKindsShareTheCapacity() {
        var jobs = CancelledJobs(capacity: 2, lifetime: 1000)
        for target in [CancelTarget.tenant("a"), .job("a"), .tag("a")] {
            jobs.cancel(CancellationKey(target), at: 5, now: 5)
        }
        var job = JobIdentity(id: "x", submitted: 1)
        job.tenant = "a"
        #expect(jobs.count == 2 && !jobs.contains(job) && jobs.contains("a", submitted: 1))
    }

    @Test func evictsByAgeAndCapacity() {
        var jobs = CancelledJobs(capacity: 3, lifetime: 1000)
        for number in 0..<5 { jobs.cancel("\(number)", at: Int64(number), now: 10) }
        #expect(jobs.count == 3 && !jobs.contains("1", submitted: 0) && jobs.contains("2", submitted: 0))
        jobs.cancel("late", at: 1500, now: 1500)
        #expect(jobs.count == 1 && jobs.contains("late", submitted: 0))
        jobs.cancel("long ago", at: 400, now: 1500)
        #expect(jobs.count == 1)
    }

    /// Compares with a list that drops entries by age and count only.
    @Test func matchesAListModel() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let capacity = Int.random(in: 1...6, using: &generator)
            var jobs = CancelledJobs(capacity: capacity, lifetime: 50)
            var list: [(id: String, moment: Int64)] = []
            var now: Int64 = 1000
            for _ in 0..<120 {
                now += Int64.random(in: 0...10, using: &generator)
                let id = "\(Int.random(in: 0..<9, using: &generator))"
                if list.first(where: { $0.id == id })?.moment ?? 0 < now {
                    list.removeAll { $0.id == id }
                    list.append((id, now))
                }
                list.removeAll { $0.moment < now - 50 }
                if list.count > capacity { list.removeFirst() }
                jobs.cancel(id, at: now, now: now)
                #expect(jobs.count == list.count)
                let asked = "\(Int.random(in: 0..<9, using: &generator))"
                let submitted = now - Int64.random(in: -5...60, using: &generator)
                let expected = list.contains { $0.id == asked && submitted <= $0.moment }
                #expect(jobs.contains(asked, submitted: submitted) == expected)
            }
        }
    }
}

extension CancelledJobs {
    fileprivate mutating func cancel(_ id: String, at moment: Int64, now: Int64) {
        cancel(CancellationKey(.job(id)), at: moment, now: now)
    }

    fileprivate func contains(_ id: String, submitted: Int64) -> Bool {
        contains(JobIdentity(id: id, submitted: submitted))
    }
}
