import HalcyonModel
import TestSupport
import Testing
import Vips

/// Many renderings on few threads of this process.
@Suite(.limitedParallelism) struct PoolTests {
    @Test func threadsProduceEqualBytesAndReportTimings() async throws {
        let source = try await TestImages.noise(width: 640, height: 480)
        try await RenderFixture.with(threads: 2) { fixture in
            let bodies = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        let rendering = try await fixture.service.render(source, [filling(100, 75, as: .jpeg)])
                        #expect(rendering.timings.decode > .zero && rendering.timings.encode > .zero)
                        return rendering.images[0].body
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(bodies).count == 1)
        }
    }

    @Test func cancelledTaskThrowsAndFreesItsThread() async throws {
        let source = try await TestImages.noise(.png)
        try await RenderFixture.with { fixture in
            // Enlarged to 36 million pixels, which takes seconds unless it is cancelled.
            let slow = filling(6000, 6000, as: .png)
            // On a busy machine, a rendering may be complete before it is cancelled.
            try await until("a running and a queued rendering are cancelled") {
                let tasks = (0..<2).map { _ in Task { try await fixture.service.render(source, [slow]) } }
                try await Task.sleep(for: .milliseconds(50))
                for task in tasks.reversed() { task.cancel() }
                var isComplete = false
                for task in tasks {
                    do {
                        _ = try await task.value
                        isComplete = true
                    } catch { #expect(error is CancellationError) }
                }
                return !isComplete
            }
            #expect(try await fixture.service.render(source, [filling(10, 10, as: .png)]).images.count == 1)
        }
    }

    // In its own process, so that objects of other tests are not counted.
    @Test(.extended) func leaksNothingAfterThousandsOfRenderings() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                var sources: [[UInt8]] = []
                for format in [Format.jpeg, .png, .webp] { sources.append(try await TestImages.noise(format)) }
                let cut = sources.map { Array($0.prefix($0.count / 2)) }
                try await RenderFixture.with(threads: 2) { [sources] fixture in
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for index in 0..<600 {
                            group.addTask {
                                let (source, cut) = (sources[index % 3], cut[index % 3])
                                _ = try await fixture.service.render(source, [filling(60, 60, as: .jpeg)])
                                _ = try? await fixture.service.render(cut, [filling(60, 60, as: .webp)])
                                let cancelled = Task {
                                    try await fixture.service.render(source, [filling(61, 60, as: .jpeg)])
                                }
                                cancelled.cancel()
                                _ = try? await cancelled.value
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                try await until("all buffers and objects are released") {
                    VipsLibrary.liveBuffers == 0 && VipsLibrary.liveObjects == 0
                }
            }
        }
    }
}
