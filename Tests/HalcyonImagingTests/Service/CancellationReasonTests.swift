import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Testing

/// Time limits and cancellation, here and in a child.
@Suite(.limitedParallelism) struct CancellationReasonTests {
    /// Seconds of work that can be stopped.
    private let enlarged = filling(8000, 8000, as: .png)

    @Test(arguments: [RenderService.Isolation.whereNeeded, .always])
    func `what takes too long ends as a timeout`(_ isolation: RenderService.Isolation) async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(limits: ImageLimits(renderTime: .milliseconds(300))) { fixture in
            let failure = await fixture.failure(source, enlarged, isolation: isolation)
            #expect(failure?.code == .timeout && failure?.isRetryable == false, "\(failure as Any)")
            #expect(failure?.message.contains("images.renderTimeout") == true)
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func `a cancellation ends an encoder that does not listen, and its process`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            // The child is seen in the middle of its work, and then is no more.
            let child = Task { try await fixture.child() }
            await #expect(throws: CancellationError.self) {
                try await fixture.rendering(source, [slow], cancelledAfter: .seconds(2))
            }
            let pid = try await child.value
            #expect(kill(pid, 0) != 0 && errno == ESRCH)
            #expect(fixture.children.processes.isEmpty)
            // The thread is free for others, and a child is started for them.
            let image = try await fixture.renderInChild(source, filling(9, 9, as: .avif))
            #expect(image.format == .avif)
            #expect(fixture.notes.isEmpty)
        }
    }

    @Test func `a cancellation ends what is rendered here`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            await #expect(throws: CancellationError.self) {
                try await fixture.rendering(source, [enlarged], cancelledAfter: .milliseconds(100))
            }
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func `a task that is cancelled already begins nothing`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            await #expect(throws: CancellationError.self) {
                try await fixture.rendering(source, [slow], cancelledAfter: .zero)
            }
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func `a cancelled task ends its child`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            let task = Task { try await fixture.service.render(source, [slow]) }
            let child = try await fixture.child()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(kill(child, 0) != 0 && errno == ESRCH)
            #expect(fixture.notes.isEmpty)
        }
    }

    @Test func `what waits for a thread is let go at once`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            let running = Task { try await fixture.service.render(source, [slow]) }
            let child = try await fixture.child()
            let cancelled = Task { try await fixture.service.render(source, [slow]) }
            await #expect(throws: CancellationError.self) {
                try await fixture.rendering(source, [slow], cancelledAfter: .milliseconds(50))
            }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            // The thread was busy all the time.
            #expect(fixture.children.processes == [child])
            running.cancel()
            _ = try? await running.value
        }
    }

    @Test func `a pool that has been shut down renders nothing`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            await blocking { fixture.pool.shutdown() }
            await #expect(throws: ThreadPoolClosed.self) { try await fixture.service.render(source, [enlarged]) }
        }
    }

    @Test func `stops that come at any moment end renderings as stopped or done`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with(threads: 2) { fixture in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let isolation: RenderService.Isolation = number % 2 == 0 ? .always : .whereNeeded
                        do {
                            let rendering = try await fixture.rendering(
                                source, [filling(40, 30, as: .jpeg)],
                                cancelledAfter: .microseconds(number * 500), isolation: isolation)
                            #expect(rendering.images[0].size == PixelSize(width: 40, height: 30))
                        } catch is CancellationError {
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(fixture.notes.isEmpty)
            let image = try await fixture.renderInChild(source, filling(9, 9, as: .png))
            #expect(image.format == .png)
        }
    }
}
