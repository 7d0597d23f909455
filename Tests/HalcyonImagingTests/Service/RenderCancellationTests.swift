import Concurrency
import Glibc
import HalcyonImaging
import HalcyonModel
import TestSupport
import Testing

/// Time limits and cancellation, in this process and in a child process.
@Suite(.limitedParallelism) struct RenderCancellationTests {
    /// Seconds of work that can be interrupted.
    private let enlarged = filling(8000, 8000, as: .png)

    @Test(arguments: [RenderService.Isolation.whereNeeded, .always])
    func exceedingTheTimeLimitIsATimeout(_ isolation: RenderService.Isolation) async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with(limits: ImageLimits(renderTime: .milliseconds(300))) { fixture in
            let failure = await fixture.failure(source, enlarged, isolation: isolation)
            #expect(failure?.code == .timeout && failure?.isRetryable == false, "\(failure as Any)")
            #expect(failure?.message.contains("images.renderTimeout") == true)
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func cancellationKillsAnUninterruptibleEncoder() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            let task = Task { try await fixture.service.render(source, [slow]) }
            let child = try await fixture.child()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(kill(child, 0) != 0 && errno == ESRCH)
            #expect(fixture.children.processes.isEmpty)
            // The thread is free again, and a new child is started.
            let image = try await fixture.renderInChild(source, filling(9, 9, as: .avif))
            #expect(image.format == .avif)
            #expect(fixture.loggedEvents.isEmpty)
        }
    }

    @Test func cancellationEndsARenderingInThisProcess() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            // On a busy machine, a rendering may be complete before it is cancelled.
            try await until("a rendering is cancelled") {
                do {
                    _ = try await fixture.rendering(source, [enlarged], cancelledAfter: .milliseconds(100))
                    return false
                } catch {
                    #expect(error is CancellationError)
                    return true
                }
            }
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func cancelledTaskStartsNothing() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            await #expect(throws: CancellationError.self) {
                try await fixture.rendering(source, [slow], cancelledAfter: .zero)
            }
            #expect(fixture.children.processes.isEmpty)
        }
    }

    @Test func cancellationReleasesRenderingsThatWait() async throws {
        let source = try await TestImages.noise()
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

    @Test func rendersNothingAfterPoolShutdown() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            await blocking { fixture.pool.shutdown() }
            await #expect(throws: ThreadPoolClosed.self) { try await fixture.service.render(source, [enlarged]) }
        }
    }

    @Test func cancellationAtAnyMomentEndsAsCancelledOrDone() async throws {
        let source = try await TestImages.noise()
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
            #expect(fixture.loggedEvents.isEmpty)
            let image = try await fixture.renderInChild(source, filling(9, 9, as: .png))
            #expect(image.format == .png)
        }
    }
}
