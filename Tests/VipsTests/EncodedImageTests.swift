import TestSupport
import Testing

@testable import Vips

@Suite(.takesTurns) struct EncodedImageTests {
    static func card(width: Int = 60, height: Int = 40) throws -> Image {
        let pixels = (0..<width * height).flatMap { place -> [UInt8] in
            [UInt8(truncatingIfNeeded: place % width), UInt8(truncatingIfNeeded: place / width), 77]
        }
        return try Image(pixels: pixels, width: width, height: height, bands: 3)
    }

    @Test(arguments: [Format.png, .webp, .tiff])
    func losslessFormatsGoRound(_ format: Format) throws {
        let card = try Self.card()
        let file = try card.encoded(as: format, format == .webp ? ["lossless": true] : [:])
        let encoded = try EncodedImage(file)
        #expect(encoded.format == format)
        #expect(encoded.count == file.count)
        #expect(try encoded.open(["access": "sequential"]).pixels() == card.pixels())
    }

    @Test(arguments: Format.allCases)
    func everyFormatIsRecognisedByItsBytes(_ format: Format) throws {
        #expect(format.canLoad && format.canSave)
        let file = try Self.card().encoded(as: format, format == .heif ? ["compression": "av1", "effort": 0] : [:])
        let image = try EncodedImage(file)
        #expect(image.format == format)
        let opened = try image.open()
        #expect((opened.width, opened.height, opened.pages, opened.orientation) == (60, 40, 1, 1))
    }

    @Test func theHeaderIsToldWithoutDecoding() throws {
        let file = try Self.card().encoded(as: .jpeg)
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

    @Test func junkIsRefusedBeforeAnythingReadsIt() {
        let junk: [[UInt8]] = [
            [], [0], Array("<!DOCTYPE html>".utf8), [UInt8](repeating: 7, count: 32),
            [UInt8](repeating: 0xff, count: 4096),
        ]
        for bytes in junk {
            let error = #expect(throws: VipsError.self) { try EncodedImage(bytes) }
            #expect(error?.code == .unsupportedFormat)
        }
    }

    /// Formats that this libvips can load, and must not: ImageMagick's many, SVG, PDF, and those without fuzzing.
    @Test func loadersThatAreNotListedAreBlocked() throws {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>"
        let ppm = "P6\n1 1\n255\nabc"
        let xpm = "/* XPM */\nstatic char *x[] = {\"1 1 1 1\", \"a c #ff0000\", \"a\"};"
        let pdf = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>"
        let radiance = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\nabcd"
        for text in [svg, ppm, xpm, pdf, radiance] {
            let error = #expect(throws: VipsError.self) { try EncodedImage(Array(text.utf8)) }
            #expect(error?.code == .unsupportedFormat, "\(text.prefix(12))")
        }
        // Not by any other way either.
        if VipsLibrary.has(operation: "svgload") {
            #expect(throws: VipsError.self) { try Operation.call("svgload", ["filename": "/dev/null"]) }
        }
        if VipsLibrary.has(operation: "magickload") {
            #expect(throws: VipsError.self) { try Operation.call("magickload", ["filename": "/dev/null"]) }
        }
    }

    @Test func aLazyPipelineKeepsItsBytesAndNothingKeepsThemLonger() throws {
        let file = try Self.card().encoded(as: .png)
        weak var bytes: KeptBytes?
        do {
            let image: Image
            do {
                let kept = KeptBytes(file)
                bytes = kept
                image = try Operation.load(Format.png.loader, kept, ["access": "sequential"])
            }
            #expect(bytes != nil, "held by libvips alone")
            let small = try Operation.call("resize", ["in": .image(image), "scale": 0.5]).image()
            #expect(try small.pixels().count == 30 * 20 * 3)
        }
        #expect(bytes == nil)
    }

    @Test func damagedPixelsAreAnErrorWhenAskedFor() throws {
        let file = try Self.card(width: 400, height: 400).encoded(as: .jpeg)
        let cut = Array(file.prefix(file.count / 2))
        let error = #expect(throws: VipsError.self) {
            try EncodedImage(cut).open(["fail-on": "error", "access": "sequential"]).inMemory()
        }
        #expect(error?.code == .failed)
    }
}
