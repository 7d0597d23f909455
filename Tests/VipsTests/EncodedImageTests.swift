import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct EncodedImageTests {
    static func testImage(width: Int = 60, height: Int = 40) throws -> Image {
        let pixels = (0..<width * height).flatMap { index -> [UInt8] in
            [UInt8(truncatingIfNeeded: index % width), UInt8(truncatingIfNeeded: index / width), 77]
        }
        return try Image(pixels: pixels, width: width, height: height, bands: 3)
    }

    @Test(arguments: [Format.png, .webp, .tiff])
    func losslessFormatsRoundTrip(_ format: Format) throws {
        let image = try Self.testImage()
        let file = try image.encoded(as: format, format == .webp ? ["lossless": true] : [:])
        let encoded = try EncodedImage(file)
        #expect(encoded.format == format)
        #expect(encoded.count == file.count)
        #expect(try encoded.open(["access": "sequential"]).pixels() == image.pixels())
    }

    @Test func readsHeaderFields() throws {
        let file = try Self.testImage().encoded(as: .jpeg)
        let image = try EncodedImage(file).open()
        #expect(image.sampleFormat == .uint8)
        #expect(image.interpretation == .sRGB)
        #expect(!image.hasAlpha)
        #expect(image.has(field: "jpeg-multiscan"))
        #expect(image.text(of: "width") == "60")
        #expect(image.text(of: "no-such") == nil)
        #expect(image.bytes(of: "icc-profile-data") == nil)
        #expect(image.fields.contains("bands"))
        let shrunk = try EncodedImage(file).open(["shrink": 4])
        #expect((shrunk.width, shrunk.height) == (15, 10))
    }

    @Test func rejectsUnknownFormats() {
        let junk: [[UInt8]] = [
            [], [0], Array("<!DOCTYPE html>".utf8), [UInt8](repeating: 7, count: 32),
            [UInt8](repeating: 0xff, count: 4096),
        ]
        for bytes in junk {
            let error = #expect(throws: VipsError.self) { try EncodedImage(bytes) }
            #expect(error?.code == .unsupportedFormat)
        }
    }

    @Test func lazyPipelineRetainsItsBytesUntilReleased() throws {
        let file = try Self.testImage().encoded(as: .png)
        weak var bytes: RetainedBlob?
        do {
            let image: Image
            do {
                let kept = RetainedBlob(file)
                bytes = kept
                image = try Operation.load("pngload_buffer", kept, ["access": "sequential"])
            }
            #expect(bytes != nil, "retained by libvips only")
            let small = try Operation.call("resize", ["in": .image(image), "scale": 0.5]).image()
            #expect(try small.pixels().count == 30 * 20 * 3)
        }
        #expect(bytes == nil)
    }

    @Test func failsOnTruncatedPixelsWithFailOnError() throws {
        let file = try Self.testImage(width: 400, height: 400).encoded(as: .jpeg)
        let cut = Array(file.prefix(file.count / 2))
        let error = #expect(throws: VipsError.self) {
            try EncodedImage(cut).open(["fail-on": "error", "access": "sequential"]).inMemory()
        }
        #expect(error?.code == .failed)
    }

    @Test(arguments: [UInt8(0), 3]) func rejectsAWebPThatDeclaresLessThanItsHeader(_ length: UInt8) {
        let size: [UInt8] = [length, 0, 0, 0]
        let file = Array("RIFF".utf8) + size + Array("WEBP".utf8)
        #expect(WebPChunks.pixels(of: file, keepingProfile: true) == nil)
    }
}
