import Concurrency
import TestSupport
import Testing

@Suite struct PrioritySemaphoreTests {
    @Test func neverExceedsItsNumberOfPermits() async throws {
        let semaphore = PrioritySemaphore(3)
        let inside = Lock((now: 0, most: 0))
        await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    try await semaphore.acquire()
                    defer { semaphore.release() }
                    inside.withLock {
                        $0.now += 1
                        $0.most = max($0.most, $0.now)
                    }
                    await Task.yield()
                    inside.withLock { $0.now -= 1 }
                }
            }
        }
        let (now, most) = inside.withLock { $0 }
        #expect(now == 0)
        #expect((1...3).contains(most))
    }

    @Test func flowsOfALevelTakeTurns() async throws {
        let semaphore = PrioritySemaphore(1, shares: [4, 1])
        try await semaphore.acquire()
        let order = Lock<[String]>([])
        await withThrowingTaskGroup(of: Void.self) { group in
            for (count, name) in [(50, "big"), (3, "small")] {
                for _ in 0..<count {
                    let waiting = semaphore.waiting
                    group.addTask {
                        try await semaphore.acquire(WorkPriority(level: 1, flow: Flow(name)))
                        order.withLock { $0.append(name) }
                        semaphore.release()
                    }
                    while semaphore.waiting == waiting { await Task.yield() }
                }
            }
            semaphore.release()
        }
        #expect(order.withLock { $0.prefix(8).count { $0 == "small" } } == 3)
    }

    @Test func flowsBelowTheirShareHaveAReserve() async throws {
        let semaphore = PrioritySemaphore(4, shares: [4, 1], reserve: 2)
        let (big, small) = (WorkPriority(level: 1, flow: Flow("big")), WorkPriority(level: 1, flow: Flow("small")))
        // A single flow gets all permits.
        for _ in 0..<4 { try await semaphore.acquire(big) }
        let waiters = (0..<20).map { _ in Task { try await semaphore.acquire(big) } }
        try await until("all wait") { semaphore.waiting == 20 }
        semaphore.release(3)
        try await until("three go on") { semaphore.waiting == 17 }
        let first = Task { try await semaphore.acquire(small) }
        try await until("the small flow waits") { semaphore.waiting == 18 }
        // Two permits fill the reserve again, and the third one is the turn of the small flow.
        semaphore.release(3)
        try await first.value
        #expect(semaphore.waiting == 17)
        semaphore.release(3)
        try await until("three of the big flow go on") { semaphore.waiting == 14 }
        // After a while it does not wait, but only once.
        try await semaphore.acquire(small)
        let second = Task { try await semaphore.acquire(small) }
        try await until("the small flow waits") { semaphore.waiting == 15 }
        // Work that took nothing does not count.
        semaphore.refund(small)
        semaphore.release(2)
        try await second.value
        for waiter in waiters { waiter.cancel() }
    }

    @Test func cancelledWaiterTakesNoPermit() async throws {
        let semaphore = PrioritySemaphore(1)
        try await semaphore.acquire()
        let waiter = Task { try await semaphore.acquire() }
        try await until("the task waits") { semaphore.waiting != 0 }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        semaphore.release()
        try await semaphore.acquire()
        semaphore.release()
    }

    @Test func waiterWithADeadlineTakesNoPermitAfterIt() async throws {
        let semaphore = PrioritySemaphore(1)
        #expect(try await semaphore.acquire(until: .now))
        #expect(try await semaphore.acquire(until: .now + .milliseconds(10)) == false)
        #expect(semaphore.waiting == 0)
        let patient = Task { try await semaphore.acquire(until: .now + .seconds(600)) }
        try await until("the task waits") { semaphore.waiting != 0 }
        semaphore.release()
        #expect(try await patient.value)
        let cancelled = Task { try await semaphore.acquire(until: .now + .seconds(600)) }
        try await until("the task waits") { semaphore.waiting != 0 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        semaphore.release()
        #expect(try await semaphore.acquire(until: nil))
    }

    @Test func servesPriorityLevelsByTheirShares() async throws {
        let semaphore = PrioritySemaphore(1, shares: [4, 2, 1])
        try await semaphore.acquire()
        let order = Lock<[Int]>([])
        let tasks = (0..<210).map { number in
            Task {
                try await semaphore.acquire(WorkPriority(level: number % 3))
                order.withLock { $0.append(number % 3) }
                semaphore.release()
            }
        }
        try await until("all tasks wait") { semaphore.waiting >= 210 }
        semaphore.release()
        for task in tasks { try await task.value }
        // All three levels have waiters until the highest level is empty.
        let served = order.withLock { $0 }.prefix(105)
        #expect([0, 1, 2].map { level in served.count { $0 == level } } == [60, 30, 15])
    }

    @Test func escalatedWaiterMovesUp() async throws {
        let semaphore = PrioritySemaphore(1, shares: [1000, 1])
        try await semaphore.acquire()
        let order = Lock<[Int]>([])
        let urgencies = (0..<5).map { _ in WorkPriority(level: 1) }
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<5 {
            tasks.append(
                Task {
                    try await semaphore.acquire(urgencies[number])
                    order.withLock { $0.append(number) }
                    semaphore.release()
                })
            try await until("the task waits as the last") { semaphore.waiting == number + 1 }
        }
        urgencies[3].escalate(to: 0)
        urgencies[4].escalate(to: 0)
        tasks[4].cancel()
        semaphore.release()
        for task in tasks.prefix(4) { try await task.value }
        #expect(order.withLock { $0 } == [3, 0, 1, 2])
    }

    @Test func permitIsReleasedWithItsLastReference() async throws {
        let semaphore = PrioritySemaphore(1)
        var permit: SemaphorePermit? = SemaphorePermit(of: semaphore)
        try await permit?.acquire()
        let waiter = Task { try await semaphore.acquire() }
        try await until("the task waits") { semaphore.waiting != 0 }
        permit = nil
        try await waiter.value
        semaphore.release()
    }

    @Test func extraPermitsMayExceedTheCapacity() async throws {
        let semaphore = PrioritySemaphore(2)
        let large = SemaphorePermit(of: semaphore)
        large.setExtraPermits(4)
        try await large.acquire()
        large.setExtraPermits(4)
        // One permit was free, and four have been taken.
        let waiters = (0..<3).map { _ in Task { try await semaphore.acquire() } }
        try await until("all tasks wait") { semaphore.waiting == 3 }
        large.releaseOwn()
        large.releaseOwn()
        large.setExtraPermits(0)
        #expect(semaphore.waiting == 3)
        large.release()
        large.release()
        try await until("both permits are free again") { semaphore.waiting == 1 }
        semaphore.release(2)
        for waiter in waiters { try await waiter.value }
        semaphore.release()
    }

    @Test func oneHolderAtATimeExceedsTheCapacity() async throws {
        let semaphore = PrioritySemaphore(3)
        let holders = (0..<3).map { _ in SemaphorePermit(of: semaphore) }
        for holder in holders { try await holder.acquire() }
        try await holders[0].grow(more: 2)
        let second = Task { try await holders[1].grow(more: 1) }
        let third = Task { try await holders[2].grow(more: 1) }
        let newcomer = Task { try await semaphore.acquire() }
        try await until("all three tasks wait") { semaphore.waiting == 3 }
        // The holder that has exceeded the capacity may take more.
        try await holders[0].grow(more: 4)
        #expect((holders[0].permits, semaphore.waiting) == (5, 3))
        holders[0].release()
        try await second.value
        try await third.value
        #expect(semaphore.waiting == 1)
        holders[1].release()
        try await newcomer.value
        holders[2].release()
        semaphore.release()
        for _ in 0..<3 { try await semaphore.acquire() }
        #expect(semaphore.waiting == 0)
    }

    @Test func cancelledGrowthKeepsThePermit() async throws {
        let semaphore = PrioritySemaphore(2)
        let (large, small) = (SemaphorePermit(of: semaphore), SemaphorePermit(of: semaphore))
        try await large.acquire()
        try await small.acquire()
        try await large.grow(more: 1)
        let growing = Task { try await small.grow(more: 1) }
        try await until("the task waits") { semaphore.waiting == 1 }
        growing.cancel()
        await #expect(throws: CancellationError.self) { try await growing.value }
        #expect((small.permits, semaphore.waiting) == (1, 0))
        large.release()
        small.release()
        for _ in 0..<2 { try await semaphore.acquire() }
        #expect(semaphore.waiting == 0)
    }
}
