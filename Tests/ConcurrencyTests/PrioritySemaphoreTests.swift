import Concurrency
import TestSupport
import Testing

@Suite struct PrioritySemaphoreTests {
    @Test func neverLetsInMoreThanItHolds() async throws {
        let slots = PrioritySemaphore(3)
        let inside = Lock((now: 0, most: 0))
        await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    try await slots.acquire()
                    defer { slots.release() }
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

    @Test func givesUpAWaitThatIsCancelledAndKeepsThePlace() async throws {
        let slots = PrioritySemaphore(1)
        try await slots.acquire()
        let waiter = Task { try await slots.acquire() }
        try await until("it waits") { slots.waiting != 0 }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        slots.release()
        try await slots.acquire()
        slots.release()
    }

    @Test func eachLevelGetsItsShareAndNoneStarves() async throws {
        let slots = PrioritySemaphore(1, shares: [4, 2, 1])
        try await slots.acquire()
        let order = Lock<[Int]>([])
        let tasks = (0..<210).map { number in
            Task {
                try await slots.acquire(WorkPriority(level: number % 3))
                order.withLock { $0.append(number % 3) }
                slots.release()
            }
        }
        try await until("all wait") { slots.waiting >= 210 }
        slots.release()
        for task in tasks { try await task.value }
        // All three wait until the most urgent have all been served.
        let served = order.withLock { $0 }.prefix(105)
        #expect([0, 1, 2].map { level in served.count { $0 == level } } == [60, 30, 15])
    }

    @Test func whoBecomesMoreUrgentWhileWaitingMovesUp() async throws {
        let slots = PrioritySemaphore(1, shares: [1000, 1])
        try await slots.acquire()
        let order = Lock<[Int]>([])
        let urgencies = (0..<5).map { _ in WorkPriority(level: 1) }
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<5 {
            tasks.append(
                Task {
                    try await slots.acquire(urgencies[number])
                    order.withLock { $0.append(number) }
                    slots.release()
                })
            try await until("it waits as the last") { slots.waiting == number + 1 }
        }
        urgencies[3].escalate(to: 0)
        urgencies[4].escalate(to: 0)
        tasks[4].cancel()
        slots.release()
        for task in tasks.prefix(4) { try await task.value }
        #expect(order.withLock { $0 } == [3, 0, 1, 2])
    }

    @Test func aPlaceIsGivenBackWithTheLastWhoHasIt() async throws {
        let slots = PrioritySemaphore(1)
        var permit: SemaphorePermit? = SemaphorePermit(of: slots)
        try await permit?.acquire()
        let waiter = Task { try await slots.acquire() }
        try await until("it waits") { slots.waiting != 0 }
        permit = nil
        try await waiter.value
        slots.release()
    }

    @Test func whatTurnsOutToBeLargeTakesThePlacesOfSeveral() async throws {
        let slots = PrioritySemaphore(2)
        let large = SemaphorePermit(of: slots)
        large.setExtraPermits(4)
        try await large.acquire()
        large.setExtraPermits(4)
        // One place was left, and four have been taken.
        let waiters = (0..<3).map { _ in Task { try await slots.acquire() } }
        try await until("all wait") { slots.waiting == 3 }
        large.releaseOwn()
        large.releaseOwn()
        large.setExtraPermits(0)
        #expect(slots.waiting == 3)
        large.release()
        large.release()
        try await until("two places are free, as before") { slots.waiting == 1 }
        slots.release(2)
        for waiter in waiters { try await waiter.value }
        slots.release()
    }

    @Test func oneHolderAtATimeTakesWhatIsNotFree() async throws {
        let slots = PrioritySemaphore(3)
        let holders = (0..<3).map { _ in SemaphorePermit(of: slots) }
        for holder in holders { try await holder.acquire() }
        try await holders[0].grow(more: 2)
        let second = Task { try await holders[1].grow(more: 1) }
        let third = Task { try await holders[2].grow(more: 1) }
        let newcomer = Task { try await slots.acquire() }
        try await until("they wait") { slots.waiting == 3 }
        // The one that has taken more may go on.
        try await holders[0].grow(more: 4)
        #expect((holders[0].permits, slots.waiting) == (5, 3))
        holders[0].release()
        try await second.value
        try await third.value
        #expect(slots.waiting == 1)
        holders[1].release()
        try await newcomer.value
        holders[2].release()
        slots.release()
        for _ in 0..<3 { try await slots.acquire() }
        #expect(slots.waiting == 0)
    }

    @Test func whoGivesUpGrowingKeepsWhatItHas() async throws {
        let slots = PrioritySemaphore(2)
        let (large, small) = (SemaphorePermit(of: slots), SemaphorePermit(of: slots))
        try await large.acquire()
        try await small.acquire()
        try await large.grow(more: 1)
        let growing = Task { try await small.grow(more: 1) }
        try await until("it waits") { slots.waiting == 1 }
        growing.cancel()
        await #expect(throws: CancellationError.self) { try await growing.value }
        #expect((small.permits, slots.waiting) == (1, 0))
        large.release()
        small.release()
        for _ in 0..<2 { try await slots.acquire() }
        #expect(slots.waiting == 0)
    }
}
