import HalcyonModel
import TestSupport
import Testing
import Threads
import Vips

@testable import HalcyonImaging

@Suite(.takesTurns) struct RendererTests {
    @Test func rendersOnAPoolAndSaysHowLongItTook() async throws {
        let source = try await BadInputTests.photo(.jpeg)
        let pool = Renderer.makePool(threads: 2)
        let bodies = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<40 {
                group.addTask {
                    let image = try await Renderer().render(source, [filling(100, 75, as: .jpeg)], on: pool)
                    #expect(image.timings.decode > .zero && image.timings.encode > .zero)
                    return image.images[0].body
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(bodies).count == 1)
        WorkThread(name: "closer") { pool.shutdown() }.join()
    }

    @Test func aCancelledTaskEndsAsCancelledAndFreesItsThread() async throws {
        let source = try await BadInputTests.photo(.png)
        let pool = Renderer.makePool(threads: 1)
        // Enlarged to 36 million pixels: seconds, were it not stopped.
        let slow = filling(6000, 6000)
        let task = Task { try await Renderer().render(source, [slow], on: pool) }
        let queued = Task { try await Renderer().render(source, [slow], on: pool) }
        try await Task.sleep(for: .milliseconds(50))
        queued.cancel()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await #expect(throws: CancellationError.self) { try await queued.value }
        #expect(try await Renderer().render(source, [filling(10, 10)], on: pool).images.count == 1)
        WorkThread(name: "closer") { pool.shutdown() }.join()
    }

    @Test func nothingIsLeftAfterThousandsOfRenderings() async throws {
        let pool = Renderer.makePool(threads: 2)
        let sources = [
            try await BadInputTests.photo(.jpeg), try await BadInputTests.photo(.png),
            try await BadInputTests.photo(.webp),
        ]
        let cut = sources.map { Array($0.prefix($0.count / 2)) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<600 {
                group.addTask {
                    _ = try await Renderer().render(sources[index % 3], [filling(60, 60, as: .jpeg)], on: pool)
                    _ = try? await Renderer().render(cut[index % 3], [filling(60, 60, as: .webp)], on: pool)
                    let cancelled = Task {
                        try await Renderer().render(sources[index % 3], [filling(61, 60)], on: pool)
                    }
                    cancelled.cancel()
                    _ = try? await cancelled.value
                }
            }
            try await group.waitForAll()
        }
        WorkThread(name: "closer") { pool.shutdown() }.join()
        // Other suites render at the same time: wait for them too.
        try await until("libvips holds no pixels and no objects", within: .seconds(120)) {
            VipsLibrary.liveBuffers == 0 && VipsLibrary.liveObjects == 0
        }
    }
}
