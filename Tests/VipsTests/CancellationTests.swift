import Concurrency
import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct CancellationTests {
    /// An image that would take hours to compute: a rank filter with a window of 500×500.
    static func slowImage() throws -> Image {
        let noise = try Operation.call("gaussnoise", ["width": 4000, "height": 4000]).image()
        let bytes = try Operation.call("cast", ["in": .image(noise), "format": "uchar"]).image()
        return try Operation.call(
            "rank", ["in": .image(bytes), "width": 500, "height": 500, "index": 1000]
        ).image()
    }

    @Test func stopsARunningPipeline() async throws {
        let pool = ThreadPool(name: "vips", threads: 2, onThreadEnd: VipsLibrary.endThread)
        for encode in [false, true] {
            let cancellation = Cancellation()
            let running = Task {
                try await pool.run {
                    let image = try Self.slowImage()
                    if encode {
                        _ = try image.encoded(as: .png, [:], cancellation)
                    } else {
                        _ = try image.inMemory(cancellation)
                    }
                }
            }
            try await Task.sleep(for: .milliseconds(200))
            cancellation.cancel()
            let error = await #expect(throws: VipsError.self) { try await running.value }
            #expect(error?.code == .cancelled)
        }
        NamedThread(name: "closer") { pool.shutdown() }.join()
    }

    @Test func cancelledPipelineDoesNotStart() throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        #expect(cancellation.isCancelled)
        let error = #expect(throws: VipsError.self) { try Self.slowImage().inMemory(cancellation) }
        #expect(error?.code == .cancelled)
    }

    @Test func unusedTokenHasNoEffect() throws {
        let cancellation = Cancellation()
        let image = try EncodedImageTests.testImage()
        let file = try image.inMemory(cancellation).encoded(as: .png, [:], cancellation)
        cancellation.cancel()
        #expect(try EncodedImage(file).open().pixels() == image.pixels())
    }

    @Test func readsIsDecodedAtOnceFromTheHeader() throws {
        let image = try EncodedImageTests.testImage()
        for format in [Format.jpeg, .png] {
            for interlaced in [false, true] {
                let file = try EncodedImage(image.encoded(as: format, ["interlace": .bool(interlaced)]))
                #expect(try file.open(["access": "sequential"]).isDecodedAtOnce == interlaced, "\(format)")
            }
        }
        for format in Format.allCases where format != .jpeg && format != .png {
            #expect(
                try EncodedImage(SampleFiles.file(format)).open().isDecodedAtOnce
                    == (![.tiff, .bmp, .ico].contains(format)), "\(format)")
        }
        #expect(!image.isDecodedAtOnce)
    }
}
