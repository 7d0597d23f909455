import Concurrency
import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct LibraryTests {
    @Test func reportsVersionLiveObjectsAndOperations() throws {
        VipsLibrary.start()
        VipsLibrary.start()
        let image = try Operation.call("black", ["width": 4, "height": 4]).image()
        #expect(VipsLibrary.liveObjects > 0 && image.width == 4)
        let numbers = VipsLibrary.version.split(separator: ".").map { Int($0) }
        #expect(numbers.count == 3 && numbers.allSatisfy { $0 != nil }, "\(VipsLibrary.version)")
        #expect(VipsLibrary.has(operation: "resize"))
        #expect(!VipsLibrary.has(operation: "no_such_operation"))
    }

    // In its own process, so that objects of other tests are not counted.
    @Test(.extended) func leaksNothingAfterThousandsOfImages() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                let pool = ThreadPool(name: "vips", threads: 2, onThreadEnd: VipsLibrary.endThread)
                try await pool.run { try Self.run(1000) }
                NamedThread(name: "closer") { pool.shutdown() }.join()
                try await until("all buffers and objects are released") {
                    VipsLibrary.liveBuffers == 0 && VipsLibrary.liveBytes == 0 && VipsLibrary.liveObjects == 0
                }
            }
        }
    }

    /// Loads, shrinks and saves an image, decodes a damaged image, and abandons a pipeline, `count` times.
    static func run(_ count: Int) throws {
        let file = try EncodedImageTests.testImage(width: 250, height: 150).encoded(as: .jpeg)
        let cut = Array(file.prefix(file.count / 2))
        for _ in 0..<count {
            let image = try EncodedImage(file).open(["access": "sequential"])
            let small = try Operation.call("resize", ["in": .image(image), "scale": 0.2]).image().inMemory()
            _ = try small.encoded(as: .jpeg)
            _ = try? EncodedImage(cut).open(["access": "sequential", "fail-on": "error"]).inMemory()
            _ = try Operation.call("resize", ["in": .image(try EncodedImage(file).open()), "scale": 0.2]).image()
        }
    }
}
