import Concurrency
import Glibc
import TestSupport
import Testing

@testable import Vips

/// The crash that the lock prevents takes minutes to occur, so the tests check that the lock is taken.
@Suite(.limitedParallelism) struct SIMDSupportTests {
    static func resize() throws -> Image {
        let black = try Operation.call("black", ["width": 80, "height": 60]).image()
        return try Operation.call("resize", ["in": .image(black), "scale": 0.6]).image()
    }

    /// Whether `work` finished on another thread while this thread held the lock, and after it released the lock.
    static func finishes(_ work: @escaping @Sendable () throws -> Void) -> (whileLocked: Bool, afterwards: Bool) {
        let done = Lock(false)
        var thread: NamedThread?
        let whileLocked = SIMDSupport.alone {
            thread = NamedThread(name: "builder") {
                try? work()
                done.withLock { $0 = true }
            }
            // Without the lock, the thread finishes as soon as it is scheduled.
            let end = ContinuousClock.now + (SIMDSupport.isTranslated ? .milliseconds(300) : .seconds(60))
            while !done.withLock({ $0 }) && ContinuousClock.now < end { usleep(1000) }
            return done.withLock { $0 }
        }
        thread?.join()
        return (whileLocked, done.withLock { $0 })
    }

    @Test func buildsResizesOnOneThreadAtATime() async throws {
        VipsLibrary.start()
        let pool = ThreadPool(name: "vips", threads: 1, onThreadEnd: VipsLibrary.endThread)
        let built = try await pool.run { Self.finishes { _ = try Self.resize() } }
        #expect(built == (!SIMDSupport.isTranslated, true))
        NamedThread(name: "closer") { pool.shutdown() }.join()
    }

    @Test func releasesImagesOnOneThreadAtATime() async throws {
        let pool = ThreadPool(name: "vips", threads: 1, onThreadEnd: VipsLibrary.endThread)
        let dropped = try await pool.run {
            // The other thread takes over the only reference and releases the image.
            nonisolated(unsafe) var image: Image? = try Self.resize()
            return Self.finishes { if image != nil { image = nil } }
        }
        #expect(dropped == (!SIMDSupport.isTranslated, true))
        NamedThread(name: "closer") { pool.shutdown() }.join()
    }
}
