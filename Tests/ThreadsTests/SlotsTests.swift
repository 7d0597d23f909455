import Testing
import Threads

@Suite struct SlotsTests {
    @Test func neverLetsInMoreThanItHolds() async throws {
        let slots = Slots(3)
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
        let slots = Slots(1)
        try await slots.acquire()
        let waiter = Task { try await slots.acquire() }
        while slots.waiting == 0 { await Task.yield() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        slots.release()
        try await slots.acquire()
        slots.release()
    }
}
