import Concurrency
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Who gets how much of the memory, and when.
@Suite struct MemoryBudgetTests {
    /// Waits for a share on a thread of its own.
    private func waiting(
        _ memory: MemoryBudget, for bytes: Int, unless isStopped: @escaping @Sendable () -> Bool = { false }
    ) -> Task<MemoryBudget.Reservation?, Never> {
        Task { await blocking { memory.wait(for: bytes, unless: isStopped) } }
    }

    @Test func whatFitsIsThereAtOnce() {
        let memory = MemoryBudget(limit: 100)
        var shares = [memory.share(60), memory.share(40)]
        #expect(shares.allSatisfy { $0 != nil })
        #expect(memory.use == (100, 0))
        #expect(memory.share(1) == nil)
        shares = []
        #expect(memory.use == (0, 0))
    }

    @Test func whatNeedsMoreThanThereIsHasItAlone() {
        let memory = MemoryBudget(limit: 100)
        do {
            let share = memory.share(1 << 60)
            #expect(share != nil && memory.share(0) == nil)
        }
        let small = memory.share(1)
        #expect(small != nil && memory.share(101) == nil)
    }

    @Test func whatRestsStandsInNobodysWay() async throws {
        let memory = MemoryBudget(limit: 100)
        var resting = memory.reserveIdle(60)
        #expect(resting != nil && memory.reserveIdle(41) == nil && memory.use == (0, 0))
        do {
            let first = memory.share(30)
            #expect(first != nil && memory.share(20) == nil)
            let second = waiting(memory, for: 50)
            try await until("it waits") { memory.use.waiting == 1 }
            #expect(memory.reserveIdle(1) == nil)
            resting = nil
            memory.wake()
            let share = await second.value
            #expect(share != nil && memory.use == (80, 0))
        }
        // The task that waited holds its share until the runtime lets go of the task.
        try await until("all shares are released") { memory.use == (0, 0) }
        // One alone is not kept waiting.
        resting = memory.reserveIdle(100)
        let alone = memory.share(90)
        #expect(resting != nil && alone != nil)
    }

    @Test func theyAreServedAsTheyCame() async throws {
        let memory = MemoryBudget(limit: 100)
        var first = memory.share(60)
        let large = waiting(memory, for: 90)
        try await until("the large one waits") { memory.use.waiting == 1 }
        // There is room for it, and the other came first.
        #expect(memory.share(10) == nil)
        let small = waiting(memory, for: 10)
        try await until("the small one waits too") { memory.use == (60, 2) }
        #expect(first != nil)
        first = nil
        let shares = [await large.value, await small.value]
        #expect(shares.allSatisfy { $0 != nil } && memory.use == (100, 0))
    }

    @Test func whoIsStoppedStandsInNobodysWay() async throws {
        let memory = MemoryBudget(limit: 100)
        let first = memory.share(60)
        let isStopped = Lock(false)
        let large = waiting(memory, for: 90) { isStopped.withLock { $0 } }
        try await until("the large one waits") { memory.use.waiting == 1 }
        let small = waiting(memory, for: 10)
        try await until("the small one waits too") { memory.use.waiting == 2 }
        isStopped.withLock { $0 = true }
        memory.wake()
        #expect(await large.value == nil)
        let share = await small.value
        #expect(share != nil && memory.use == (70, 0))
        withExtendedLifetime(first) {}
    }

    @Test func timeDoesNotPassWhileItWaits() async throws {
        let memory = MemoryBudget(limit: 100)
        var all = memory.share(100)
        let task = RenderTask(RenderTask.Input(source: [], variants: [], assets: [:], isolation: .whereNeeded))
        let inFlight = ActiveRenders()
        let entering = Task {
            try await blocking {
                let clock = RenderDeadline(task, .milliseconds(20), TimerThread(name: "test"), inFlight)
                defer { clock.end() }
                return try MemoryReservation(memory: memory, task: task, clock: clock).enter(1)
            }
        }
        try await until("it waits") { memory.use.waiting == 1 }
        // Far more than it has.
        try await Task.sleep(for: .milliseconds(200))
        #expect(task.stopped == nil && inFlight.firstLimit == nil && all != nil)
        all = nil
        _ = try await entering.value
    }
}

/// Renderings that have to share what memory there is.
@Suite(.limitedParallelism) struct MemoryLimitTests {
    private let quick = filling(9, 9, as: .jpeg)

    @Test(arguments: [RenderService.Isolation.whereNeeded, .always])
    func `a rendering for which there is no memory waits, and can be stopped`(
        _ isolation: RenderService.Isolation
    ) async throws {
        let source = try await Pictures.noise()
        // Each rendering has it alone.
        try await RenderFixture.with(threads: 2, memory: 1) { [quick] fixture in
            let first = Task { try await fixture.service.render(source, [slow]) }
            try await until("the first one has it") { fixture.service.memoryUse.taken > 0 }
            let second = Task { try await fixture.service.render(source, [quick], isolation: isolation) }
            try await until("the second one waits") { fixture.service.memoryUse.waiting == 1 }
            second.cancel()
            await #expect(throws: CancellationError.self) { try await second.value }
            #expect(fixture.service.memoryUse.taken > 0 && fixture.service.memoryUse.waiting == 0)

            let third = Task { try await fixture.service.render(source, [quick], isolation: isolation) }
            try await until("the third one waits") { fixture.service.memoryUse.waiting == 1 }
            first.cancel()
            #expect(try await third.value.images[0].size == PixelSize(width: 9, height: 9))
            await #expect(throws: CancellationError.self) { try await first.value }
            try await until("all is given back") { fixture.service.memoryUse == (0, 0) }
        }
    }

    @Test func `a service that leaves stops those that wait too`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(threads: 2, memory: 1) { [quick] fixture in
            let first = Task { try await fixture.service.render(source, [slow]) }
            try await until("the first one has it") { fixture.service.memoryUse.taken > 0 }
            let second = Task { try await fixture.service.render(source, [quick]) }
            try await until("the second one waits") { fixture.service.memoryUse.waiting == 1 }
            fixture.service.cancelAll()
            for task in [first, second] { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(fixture.service.memoryUse == (0, 0))
        }
    }

    // In a process of its own: what libvips holds is counted for all of it.
    @Test func `many at once take no more than they are allowed`() async {
        await #expect(processExitsWith: .success) {
            let source = try await Pictures.noise(.png, width: 3000, height: 2000)
            // Two outputs: the whole picture is in memory for them.
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
            // One alone takes at least its pixels; four at once would take twice of what there is.
            #expect(VipsLibrary.highestBytes > 3000 * 2000 * 3)
            #expect(VipsLibrary.highestBytes <= need * 5 / 2)
        }
    }
}
