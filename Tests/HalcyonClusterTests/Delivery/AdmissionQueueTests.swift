import Concurrency
import Testing

@testable import HalcyonCluster

@Suite struct AdmissionQueueTests {
    private struct Element: FlowMember, Equatable {
        let name: String
        var offset: Int64 = 0
        var bytes = 100
        var flow: Flow { Flow(name) }
    }

    private func elements(_ count: Int, _ name: String) -> [Element] { (0..<count).map { _ in Element(name: name) } }

    @Test func admitsAsManyAsTheWindow() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        #expect(queue.receive(elements(10, "a")).count == 10)
        #expect(queue.receive(elements(30, "a")).count == 6)
        #expect(queue.inFlight == 16 && queue.count == 24)
    }

    /// A refill of single jobs would look them up one by one.
    @Test func refillsInPortions() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(100, "a"))
        #expect(queue.end(elements(3, "a")).isEmpty)
        #expect(queue.end(elements(1, "a")).count == 4)
    }

    @Test func theLastOnesWaitForNoPortion() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(17, "a"))
        #expect(queue.end(elements(1, "a")).count == 1 && queue.count == 0)
    }

    @Test func aSmallFlowDoesNotWaitForTheWindow() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(1000, "big"))
        #expect(queue.receive(elements(5, "small")) == elements(2, "small"))
        #expect(queue.end(elements(1, "small")) == elements(1, "small"))
    }

    @Test func flowsThatWaitTakeTurns() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 0)
        _ = queue.receive(elements(1000, "big"))
        _ = queue.receive(elements(100, "small"))
        let next = queue.end(elements(16, "big"))
        #expect(next.count == 16 && next.count { $0.name == "small" } >= 8)
    }

    @Test func allReservesTogetherAreBounded() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 4)
        _ = queue.receive(elements(100, "big"))
        for tenant in 0..<100 { _ = queue.receive(elements(10, "\(tenant)")) }
        #expect(queue.inFlight == 32)
    }

    @Test func aFlowAtItsLimitDelaysNoOther() {
        var limits = FlowLimiter.Limits()
        limits.inFlight["big"] = 3
        var queue = AdmissionQueue<Element>(window: 16, reserve: 8, limiter: FlowLimiter(limits))
        #expect(queue.receive(elements(100, "big")).count == 3)
        #expect(queue.receive(elements(20, "small")).count == 13 && queue.inFlight == 16)
        #expect(queue.end(elements(1, "big")) == elements(1, "big"))
        // The window has room, but the big flow is at its limit.
        #expect(queue.end(elements(13, "small")) == elements(7, "small"))
        #expect(queue.inFlight == 10 && queue.admitWithinLimits().isEmpty)
        #expect(queue.count == 96)
    }

    @Test func aQueueThatEndsReleasesItsPartOfTheLimits() {
        var limits = FlowLimiter.Limits()
        limits.inFlight["a"] = 5
        let limiter = FlowLimiter(limits)
        var (old, new) = (
            AdmissionQueue<Element>(window: 16, reserve: 2, limiter: limiter),
            AdmissionQueue<Element>(window: 16, reserve: 2, limiter: limiter)
        )
        #expect(old.receive(elements(10, "a")).count == 5 && new.receive(elements(10, "a")).isEmpty)
        old.releaseLimits()
        #expect(new.admitWithinLimits().count == 5)
    }

    @Test func aWaitingJobCountsTowardsNoLimit() {
        var limits = FlowLimiter.Limits()
        limits.inFlight["a"] = 2
        let limiter = FlowLimiter(limits)
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2, limiter: limiter)
        let jobs = interleaved(["a"], 6)
        #expect(queue.receive(jobs).map(\.offset) == [0, 1])
        // Twice, as after a cancellation before the wait.
        for _ in 0..<2 { queue.release(jobs[0]) }
        #expect(queue.admitWithinLimits().map(\.offset) == [2] && queue.inFlight == 3)
        // It begins again although the flow is at its limit.
        for _ in 0..<2 { queue.resume(jobs[0]) }
        #expect(queue.end([jobs[1]]).isEmpty && queue.admitWithinLimits().isEmpty)
        #expect(queue.end([jobs[2]]).map(\.offset) == [3])
        // A job may end while it waits.
        queue.release(jobs[3])
        #expect(queue.end([jobs[3]]).map(\.offset) == [4])
        queue.release(jobs[4])
        queue.releaseLimits()
        #expect((0..<3).map { _ in limiter.begin("a") } == [true, true, false])
    }

    @Test func aDelayedRecordDoesNotCountTowardsTheRateAgain() {
        var limits = FlowLimiter.Limits()
        limits.rates["a"] = 0.001
        let limiter = FlowLimiter(limits)
        var delayed = AdmissionQueue<Element>(window: 16, reserve: 2, limiter: limiter, isRated: false)
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2, limiter: limiter)
        #expect(delayed.receive(elements(5, "a")).count == 5)
        #expect(queue.receive(elements(5, "a")).count == 1)
    }

    @Test func everyLimitedRecordIsAdmittedOnce() {
        var limits = FlowLimiter.Limits()
        (limits.inFlight, limits.rates) = (["*": 2], ["0": 1_000_000])
        var queue = AdmissionQueue<Element>(window: 8, reserve: 1, limiter: FlowLimiter(limits))
        var inFlight = queue.receive((0..<2000).map { Element(name: "\($0 % 7 * ($0 % 3))") })
        var count = 0
        while queue.inFlight > 0 || queue.count > 0 {
            inFlight += queue.admitWithinLimits()
            guard !inFlight.isEmpty else { continue }
            count += 1
            inFlight += queue.end([inFlight.removeFirst()])
        }
        #expect(count == 2000 && inFlight.isEmpty)
    }

    /// The names and offsets of jobs that take turns, in the order of their partition.
    private func interleaved(_ names: [String], _ count: Int) -> [Element] {
        (0..<count).map { Element(name: names[$0 % names.count], offset: Int64($0)) }
    }

    @Test(arguments: [2, 20, 200]) func aFlowWithOneJobPassesTheFloodOfManyOthers(flows: Int) {
        var queue = AdmissionQueue<Element>(window: 256, reserve: 8)
        var inFlight = queue.receive(interleaved((1..<flows).map { "\($0)" }, 5000))
        for number in 0..<100 {
            let job = Element(name: "small", offset: Int64(5000 + number))
            #expect(queue.receive([job]) == [job], "\(number)")
            inFlight += queue.end([job])
            inFlight += queue.end(inFlight.prefix(5))
            inFlight.removeFirst(5)
        }
        #expect(queue.inFlight <= 256 + 8 * min(flows, 32))
    }

    /// Lets a quarter of a second pass, twice, and returns the jobs that are moved the second time.
    private func spilled(
        from queue: inout AdmissionQueue<Element>, count: Int, bytes: Int = .max
    ) -> [Element] {
        let limit = AdmissionQueue<Element>.SpillLimit(count: count, bytes: bytes, patience: 1)
        queue.measure(after: 0.25)
        #expect(queue.spill(limit).isEmpty, "a queue that has just become full is moved")
        queue.measure(after: 0.25)
        return queue.spill(limit)
    }

    @Test func spillsFullQueues() {
        var queue = AdmissionQueue<Element>(window: 10, reserve: 0)
        _ = queue.receive(interleaved(["a"], 110))
        #expect(spilled(from: &queue, count: 100).map(\.offset) == Array(10..<110))
        #expect(queue.count == 0 && queue.inFlight == 10)
        // It is not full any more.
        _ = queue.receive(interleaved(["a"], 99))
        #expect(spilled(from: &queue, count: 100).isEmpty)
        #expect(queue.end(interleaved(["a"], 10)).map(\.offset) == Array(0..<10))
    }

    @Test func spillsNothingFromAQueueThatMoves() {
        var queue = AdmissionQueue<Element>(window: 10, reserve: 0)
        _ = queue.receive(interleaved(["a"], 1000))
        let limit = AdmissionQueue<Element>.SpillLimit(count: 100, bytes: .max, patience: 1)
        #expect(queue.spill(limit).isEmpty)
        for _ in 0..<30 { _ = queue.end(interleaved(["a"], 10)) }
        // 310 jobs in a quarter second: the other 690 take less than a second.
        queue.measure(after: 0.25)
        #expect(queue.spill(limit).isEmpty)
        queue.measure(after: 0.25)
        #expect(queue.spill(limit).count == 690)
    }

    @Test func spillsFlowsWithManyJobsOnly() {
        var queue = AdmissionQueue<Element>(window: 1, reserve: 0)
        _ = queue.receive(interleaved(["big", "big", "big", "small", "other", "big", "big", "big"], 401))
        let spilled = spilled(from: &queue, count: 100)
        #expect(spilled.count == 300 && spilled.allSatisfy { $0.name == "big" })
        #expect(spilled.map(\.offset) == spilled.map(\.offset).sorted())
        #expect(queue.count == 100)
    }

    @Test func spillsFlowsOfEqualSize() {
        var queue = AdmissionQueue<Element>(window: 1, reserve: 0)
        _ = queue.receive(interleaved((0..<50).map { "\($0)" }, 501))
        #expect(spilled(from: &queue, count: 100).count == 500)
    }

    @Test func spillsLargeMessages() {
        var queue = AdmissionQueue<Element>(window: 1, reserve: 0)
        _ = queue.receive(interleaved(["a"], 51))
        #expect(spilled(from: &queue, count: 1000, bytes: 5001).isEmpty)
        #expect(spilled(from: &queue, count: 1000, bytes: 5000).count == 50)
        #expect(spilled(from: &queue, count: 1000, bytes: 1).isEmpty)
    }

    @Test func spillsHeldElements() {
        var queue = AdmissionQueue<Element>(window: 8, reserve: 0) { $0.name == "paused" }
        let others = queue.receive(interleaved(["paused", "paused", "paused", "paused", "other"], 400))
        #expect(others.count == 8)
        let spilled = spilled(from: &queue, count: 300)
        #expect(spilled.count == 320 && spilled.allSatisfy { $0.name == "paused" })
        #expect(queue.held.isEmpty && queue.count == 72)
        // Those that stay are held again.
        _ = queue.receive(interleaved(["paused"], 10) + interleaved(["other"], 300))
        #expect(self.spilled(from: &queue, count: 300).allSatisfy { $0.name == "other" })
        #expect(queue.held.count == 10 && queue.count == 10)
    }

    @Test func portionsFollowTheRate() {
        var queue = AdmissionQueue<Element>(window: 64, reserve: 0)
        var inFlight = queue.receive(interleaved(["a"], 5000))
        func admitted(after ended: Int) -> Int {
            let admitted = queue.end(inFlight.prefix(ended))
            inFlight = inFlight.dropFirst(ended) + admitted
            return admitted.count
        }
        // At first a quarter of the window.
        #expect(admitted(after: 15) == 0)
        #expect(admitted(after: 1) == 16)
        // 80 a second are 1.6 in 20 ms.
        queue.measure(after: 1)
        #expect(admitted(after: 1) == 1)
        // 1 in two seconds.
        queue.measure(after: 2)
        #expect(admitted(after: 1) == 1)
        for _ in 0..<20 { #expect(admitted(after: 50) == 50) }
        // 2002 a second are 40 in 20 ms, more than a quarter of the window.
        queue.measure(after: 0.5)
        #expect(admitted(after: 15) == 0)
        #expect(admitted(after: 1) == 16)
    }

    @Test func everyRecordIsAdmittedOnce() {
        var queue = AdmissionQueue<Element>(window: 8, reserve: 1)
        var inFlight = queue.receive((0..<5000).map { Element(name: "\($0 % 7 * ($0 % 3))") })
        var count = 0
        while !inFlight.isEmpty {
            count += 1
            inFlight += queue.end([inFlight.removeFirst()])
        }
        #expect(count == 5000 && queue.inFlight == 0 && queue.count == 0)
    }

    @Test func heldElementsWaitUntilTheyAreReleased() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        #expect(queue.receive(elements(20, "a")).count == 16)
        #expect(queue.hold { $0.name == "a" }.isEmpty)
        #expect(queue.held.count == 4 && queue.count == 4)
        // Others continue, and those in flight end.
        #expect(queue.receive(elements(10, "a") + elements(1, "b")) == elements(1, "b"))
        #expect(queue.end(elements(16, "a") + elements(1, "b")).isEmpty)
        #expect(queue.held.count == 14 && queue.inFlight == 0)
        #expect(queue.hold { $0.name == "b" } == elements(14, "a"))
        #expect(queue.held.isEmpty && queue.count == 0)
        #expect(queue.receive(elements(2, "b")).isEmpty)
        #expect(queue.hold(where: nil) == elements(2, "b"))
    }

    @Test func aFlowKeepsItsOrderWhenItIsHeldAndReleased() {
        var queue = AdmissionQueue<Element>(window: 4, reserve: 0)
        let all = interleaved(["a", "b"], 60)
        var inFlight = queue.receive(Array(all.prefix(30)))
        inFlight += queue.hold { $0.name == "a" }
        inFlight += queue.receive(Array(all.dropFirst(30)))
        var done: [Element] = []
        func finish() {
            while !inFlight.isEmpty {
                done.append(inFlight[0])
                inFlight += queue.end([inFlight.removeFirst()])
            }
        }
        finish()
        #expect(done.count { $0.name == "b" } == 30 && queue.held.count == 60 - done.count)
        inFlight = queue.hold(where: nil)
        finish()
        for name in ["a", "b"] {
            #expect(done.filter { $0.name == name } == all.filter { $0.name == name })
        }
        #expect(queue.count == 0 && queue.inFlight == 0)
    }
}
