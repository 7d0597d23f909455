import Concurrency
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Reservations of memory, and the order in which they are granted.
@Suite struct MemoryBudgetTests {
    /// Waits for a reservation on a thread of its own.
    private func waiting(
        _ memory: MemoryBudget, for bytes: Int, unless isStopped: @escaping @Sendable () -> Bool = { false }
    ) -> Task<MemoryBudget.Reservation?, Never> {
        Task { await blocking { memory.wait(for: bytes, unless: isStopped) } }
    }

    @Test func reservesAvailableMemoryAtOnce() {
        let memory = MemoryBudget(limit: 100)
        var reservations = [memory.share(60), memory.share(40)]
        #expect(reservations.allSatisfy { $0 != nil })
        #expect(memory.use == (100, 0))
        #expect(memory.share(1) == nil)
        reservations = []
        #expect(memory.use == (0, 0))
    }

    @Test func oversizedReservationExcludesOthers() {
        let memory = MemoryBudget(limit: 100)
        do {
            let reservation = memory.share(1 << 60)
            #expect(reservation != nil && memory.share(0) == nil)
        }
        let small = memory.share(1)
        #expect(small != nil && memory.share(101) == nil)
    }

    @Test func idleMemoryYieldsToRenderings() async throws {
        let memory = MemoryBudget(limit: 100)
        var idle = memory.reserveIdle(60)
        #expect(idle != nil && memory.reserveIdle(41) == nil && memory.use == (0, 0))
        do {
            let first = memory.share(30)
            #expect(first != nil && memory.share(20) == nil)
            let second = waiting(memory, for: 50)
            try await until("the second reservation waits") { memory.use.waiting == 1 }
            #expect(memory.reserveIdle(1) == nil)
            idle = nil
            memory.wake()
            let reservation = await second.value
            #expect(reservation != nil && memory.use == (80, 0))
        }
        // The task that waited holds its reservation until the runtime releases the task.
        try await until("all reservations are released") { memory.use == (0, 0) }
        // A single reservation does not wait.
        idle = memory.reserveIdle(100)
        let alone = memory.share(90)
        #expect(idle != nil && alone != nil)
    }

    @Test func servesWaitersInOrderOfArrival() async throws {
        let memory = MemoryBudget(limit: 100)
        var first = memory.share(60)
        let large = waiting(memory, for: 90)
        try await until("the large reservation waits") { memory.use.waiting == 1 }
        // It would fit, but the other one came first.
        #expect(memory.share(10) == nil)
        let small = waiting(memory, for: 10)
        try await until("the small reservation waits too") { memory.use == (60, 2) }
        #expect(first != nil)
        first = nil
        let reservations = [await large.value, await small.value]
        #expect(reservations.allSatisfy { $0 != nil } && memory.use == (100, 0))
    }

    @Test func stoppedWaiterDoesNotBlockOthers() async throws {
        let memory = MemoryBudget(limit: 100)
        let first = memory.share(60)
        let isStopped = Lock(false)
        let large = waiting(memory, for: 90) { isStopped.withLock { $0 } }
        try await until("the large reservation waits") { memory.use.waiting == 1 }
        let small = waiting(memory, for: 10)
        try await until("the small reservation waits too") { memory.use.waiting == 2 }
        isStopped.withLock { $0 = true }
        memory.wake()
        #expect(await large.value == nil)
        let reservation = await small.value
        #expect(reservation != nil && memory.use == (70, 0))
        withExtendedLifetime(first) {}
    }

    @Test func deadlineIsSuspendedWhileWaiting() async throws {
        let memory = MemoryBudget(limit: 100)
        var all = memory.share(100)
        let task = RenderTask(RenderTask.Input(source: [], variants: [], assets: [:], isolation: .whereNeeded))
        let (inFlight, mayEnter) = (ActiveRenders(), Latch())
        let entering = Task {
            try await blocking { () throws -> ContinuousClock.Instant? in
                let clock = RenderDeadline(task, .seconds(600), TimerThread(name: "test"), inFlight)
                defer { clock.end() }
                clock.start()
                mayEnter.wait()
                _ = try MemoryReservation(memory: memory, task: task, clock: clock).enter(1)
                return inFlight.firstLimit
            }
        }
        try await until("the deadline is set") { inFlight.firstLimit != nil }
        mayEnter.open()
        try await until("the reservation waits") { memory.use.waiting == 1 }
        #expect(inFlight.firstLimit == nil && all != nil)
        all = nil
        let limit = try await entering.value
        #expect(limit != nil)
    }
}

/// Renderings that share a memory budget.
@Suite(.limitedParallelism) struct MemoryLimitTests {
    private let quick = filling(9, 9, as: .jpeg)

    @Test(arguments: [RenderService.Isolation.whereNeeded, .always])
    func waitsForMemoryAndCanBeCancelled(
        _ isolation: RenderService.Isolation
    ) async throws {
        let source = try await TestImages.noise()
        // Each rendering uses the whole budget.
        try await RenderFixture.with(threads: 2, memory: 1) { [quick] fixture in
            let first = Task { try await fixture.service.render(source, [slow]) }
            try await until("the first rendering has its memory") { fixture.service.memoryUse.taken > 0 }
            let second = Task { try await fixture.service.render(source, [quick], isolation: isolation) }
            try await until("the second rendering waits") { fixture.service.memoryUse.waiting == 1 }
            second.cancel()
            await #expect(throws: CancellationError.self) { try await second.value }
            #expect(fixture.service.memoryUse.taken > 0 && fixture.service.memoryUse.waiting == 0)

            let third = Task { try await fixture.service.render(source, [quick], isolation: isolation) }
            try await until("the third rendering waits") { fixture.service.memoryUse.waiting == 1 }
            first.cancel()
            #expect(try await third.value.images[0].size == PixelSize(width: 9, height: 9))
            await #expect(throws: CancellationError.self) { try await first.value }
            try await until("all memory is released") { fixture.service.memoryUse == (0, 0) }
        }
    }

    @Test func cancelAllCancelsWaitingRenderings() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(threads: 2, memory: 1) { [quick] fixture in
            let first = Task { try await fixture.service.render(source, [slow]) }
            try await until("the first rendering has its memory") { fixture.service.memoryUse.taken > 0 }
            let second = Task { try await fixture.service.render(source, [quick]) }
            try await until("the second rendering waits") { fixture.service.memoryUse.waiting == 1 }
            fixture.service.cancelAll()
            for task in [first, second] { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(fixture.service.memoryUse == (0, 0))
        }
    }

    // In its own process, because libvips counts the memory of the whole process.
    @Test func concurrentRenderingsStayWithinTheBudget() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                let source = try await TestImages.noise(.png, width: 3000, height: 2000)
                // Two outputs, for which the whole image is in memory.
                let variants = [filling(30, 20, as: .jpeg), filling(60, 40, as: .jpeg)]
                let need = try await blocking {
                    let renderer = Renderer()
                    return try renderer.plan(renderer.identify(source), variants).memory
                }
                try await RenderFixture.with(threads: 4, memory: need * 5 / 2) { fixture in
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<12 { group.addTask { _ = try await fixture.service.render(source, variants) } }
                        try await group.waitForAll()
                    }
                }
                // One rendering takes at least its pixels. Four at once would exceed the budget.
                #expect(VipsLibrary.highestBytes > 3000 * 2000 * 3)
                #expect(VipsLibrary.highestBytes <= need * 5 / 2)
            }
        }
    }
}
