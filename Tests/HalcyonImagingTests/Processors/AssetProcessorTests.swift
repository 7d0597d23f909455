import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Processors that use a second image.
@Suite(.limitedParallelism) struct AssetProcessorTests {
    let source: Source
    let green: [UInt8] = [0, 200, 0]

    init() throws {
        source = try Source("https://example.org/mark.png")
    }

    static func file(_ picture: Bitmap, as format: Format = .png) async throws -> [UInt8] {
        try await onRenderThread { try picture.image.encoded(as: format, format == .jpeg ? ["Q": 95] : [:]) }
    }

    func overlay(_ opacity: Double = 1) -> Processor { .overlay(.picture(source, opacity: opacity)) }

    @Test func overlayFillsTheImageAndKeepsItsAlpha() async throws {
        // A green square in the middle third of a wide image, which scaleAspectFill keeps.
        var wide = Bitmap([255, 0, 0], width: 90, height: 30)
        for y in 0..<30 { for x in 30..<60 { wide[x, y] = green } }
        let assets = [source: try await Self.file(wide)]
        let opaque = try await applied(overlay(), to: Bitmap([1, 2, 3], width: 30, height: 30), assets: assets)
        #expect(opaque.bytes == Bitmap(green, width: 30, height: 30).bytes)
        let translucent = try await applied(
            overlay(), to: Bitmap([1, 2, 3, 77], width: 30, height: 30), assets: assets)
        #expect(translucent[15, 15] == green + [77])
        let invisible = try await applied(overlay(), to: Bitmap([1, 2, 3, 0], width: 9, height: 9), assets: assets)
        #expect(invisible[4, 4][3] == 0)
    }

    @Test func overlayAppliesItsOpacityAndAlpha() async throws {
        let plain = [source: try await Self.file(Bitmap([0, 200, 100], width: 5, height: 5))]
        let picture = Bitmap([100, 100, 100], width: 10, height: 10)
        #expect(try await applied(overlay(0.2), to: picture, assets: plain)[5, 5] == [80, 120, 100])
        #expect(try await applied(overlay(0), to: picture, assets: plain).bytes == picture.bytes)
        let fading = [source: try await Self.file(Bitmap([0, 200, 100, 51], width: 5, height: 5))]
        #expect(try await applied(overlay(), to: picture, assets: fading)[5, 5] == [80, 120, 100])
        // Gray with color.
        #expect(
            try await applied(overlay(0.2), to: Bitmap([100], width: 10, height: 10), assets: plain)[5, 5] == [
                80, 120, 100,
            ])
        let grey = [source: try await Self.file(Bitmap([200], width: 5, height: 5))]
        #expect(
            try await applied(overlay(0.5), to: picture, assets: grey)[5, 5].map { abs(Int($0) - 150) <= 1 } == [
                true, true, true,
            ])
        let both = try await applied(overlay(0.5), to: Bitmap([100], width: 10, height: 10), assets: grey)
        #expect(both.bands == 1 && abs(Int(both[5, 5][0]) - 150) <= 1)
    }

    /// The position of a 4×2 watermark on 20×10 pixels.
    @Test(arguments: [
        (ContentMode.topLeft, 1, 1), (.top, 8, 1), (.topRight, 15, 1), (.left, 1, 4), (.center, 8, 4), (.right, 15, 4),
        (.bottomLeft, 1, 7), (.bottom, 8, 7), (.bottomRight, 15, 7),
    ])
    func watermarkIsAtItsPosition(_ position: ContentMode, _ left: Int, _ top: Int) async throws {
        let assets = [source: try await Self.file(Bitmap(green, width: 4, height: 2))]
        let marked = try await applied(
            .watermark(Watermark(source: source, position: position, margin: 1)),
            to: Bitmap([9, 9, 9], width: 20, height: 10), assets: assets)
        for y in 0..<10 {
            for x in 0..<20 {
                let isMarked = (left..<left + 4).contains(x) && (top..<top + 2).contains(y)
                #expect(marked[x, y] == (isMarked ? green : [9, 9, 9]), "\(x),\(y)")
            }
        }
    }

    @Test func watermarkScalesWithinTheImage() async throws {
        let assets = [source: try await Self.file(Bitmap(green, width: 40, height: 20))]
        func marked(_ watermark: Watermark) async throws -> Int {
            let marked = try await applied(
                .watermark(watermark), to: Bitmap([9, 9, 9], width: 100, height: 60), assets: assets)
            return (0..<6000).count { marked[$0 % 100, $0 / 100] == green }
        }
        #expect(try await marked(Watermark(source: source)) == 800)
        #expect(try await marked(Watermark(source: source, widthFraction: 0.2)) == 200)
        #expect(try await marked(Watermark(source: source, margin: 10, widthFraction: 1)) == 80 * 40)
        #expect(try await marked(Watermark(source: source, margin: 25)) == 20 * 10)
        #expect(try await marked(Watermark(source: source, margin: 1000)) == 1)
    }

    @Test func watermarkAppliesItsOpacity() async throws {
        let assets = [source: try await Self.file(Bitmap([0, 200, 100], width: 4, height: 2))]
        let mark = Processor.watermark(Watermark(source: source, position: .topLeft, opacity: 0.2))
        let marked = try await applied(mark, to: Bitmap([100, 100, 100], width: 8, height: 4), assets: assets)
        #expect(marked[0, 0] == [80, 120, 100] && marked[4, 0] == [100, 100, 100] && marked.bands == 3)
        let onTransparent = try await applied(mark, to: Bitmap([0, 0, 0, 0], width: 8, height: 4), assets: assets)
        #expect(onTransparent[0, 0] == [0, 200, 100, 51] && onTransparent[5, 3][3] == 0)
    }

    @Test func tilesCoverTheImageFromThePosition() async throws {
        let assets = [source: try await Self.file(Bitmap(green, width: 2, height: 2))]
        let marked = try await applied(
            .watermark(Watermark(source: source, position: .bottomRight, margin: 1, tiled: true)),
            to: Bitmap([9, 9, 9], width: 10, height: 7), assets: assets)
        // The watermark is at 7,4. The step is two pixels and a margin of one.
        for y in 0..<7 {
            for x in 0..<10 {
                let isMarked = (x + 3 - 7 % 3) % 3 < 2 && (y + 3 - 4 % 3) % 3 < 2
                #expect(marked[x, y] == (isMarked ? green : [9, 9, 9]), "\(x),\(y)")
            }
        }
    }

    @Test func appliesTheOrientationOfAssets() async throws {
        // Stored rotated: blue on the left is blue at the top of the upright image.
        var stored = Bitmap([255, 0, 0], width: 20, height: 20)
        for y in 0..<20 { for x in 0..<10 { stored[x, y] = [0, 0, 255] } }
        let jpeg = try await Self.file(stored, as: .jpeg)
        let marked = try await applied(
            overlay(), to: Bitmap([9, 9, 9], width: 20, height: 20),
            assets: [source: withEXIF(jpeg, orientation: 6)])
        #expect(marked[10, 3][2] > 200 && marked[10, 16][0] > 200)
    }

    @Test func planCountsTheLargestDecodingAndEachDecodedImage() async throws {
        let photo = try await Self.file(Bitmap([9, 9, 9], width: 20, height: 20))
        let assets = [source: try await TestImages.noise(.tiff, width: 500, height: 400)]
        func memory(opacities: [Double]) async throws -> Int {
            var variant = filling(20, 20)
            variant.processors = opacities.map { .watermark(Watermark(source: source, margin: 0, opacity: $0)) }
            return try await onRenderThread { [variant] in
                let renderer = Renderer()
                return try renderer.plan(renderer.identify(photo), [variant], assets: assets).memory
            }
        }
        let plain = try await memory(opacities: [])
        let marked = try await memory(opacities: [1])
        // libtiff decodes a whole image, and libvips holds a copy of it.
        #expect(marked - plain >= 500 * 400 * 3 * 2)
        // The image is decoded for two different watermarks, one after the other.
        let twice = try await memory(opacities: [1, 0.5, 1])
        #expect(twice == marked + 20 * 16 * 4)
    }

    @Test func imagesOfDifferentInterpolationsAreNotShared() async throws {
        var picture = Bitmap([0, 0, 0], width: 2, height: 2)
        picture[1, 0] = [255, 255, 255]
        let files = [source: try await Self.file(picture)]
        let processor = overlay()
        let areEqual = try await onRenderThread {
            let assets = ProcessingAssets(files, within: ImageLimits())
            let size = PixelSize(width: 9, height: 9)
            let nearest = try assets.picture(for: processor, on: size, .none).pixels()
            return try assets.picture(for: processor, on: size, .medium).pixels() == nearest
        }
        #expect(!areEqual)
    }

    @Test func failuresNameTheAsset() async throws {
        func failure(
            _ processor: Processor, _ assets: [Source: [UInt8]], _ limits: ImageLimits = ImageLimits()
        ) async -> JobError? {
            do {
                _ = try await applied(
                    processor, to: Bitmap([9, 9, 9], width: 20, height: 20), assets: assets, limits: limits)
                return nil
            } catch {
                return error as? JobError
            }
        }
        let png = try await Self.file(Bitmap(green, width: 400, height: 400))
        let watermark = Processor.watermark(Watermark(source: source))
        let start = "https://example.org/mark.png: "
        let missing = await failure(overlay(), [:])
        #expect(missing?.code == .internal && missing?.message.hasPrefix("overlay: " + start) == true)
        let broken = await failure(watermark, [source: Array(png.prefix(png.count / 2))])
        #expect(broken?.code == .corruptImage && broken?.message.hasPrefix("watermark: " + start) == true)
        let text = await failure(overlay(), [source: Array("<html>".utf8)])
        #expect(text?.code == .unsupportedFormat && text?.message.hasPrefix("overlay: " + start) == true)
        let large = await failure(overlay(), [source: png], ImageLimits(sourcePixels: 159_999))
        #expect(large?.code == .tooManyPixels && large?.message.hasPrefix("overlay: " + start) == true)
        #expect(await failure(overlay(), [source: png], ImageLimits(sourcePixels: 160_000)) == nil)
    }
}
