import HalcyonModel
import MalformedImages
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct AnimationTests {
    static let colors: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0]]

    /// Frames of one color each, with a white square in the upper left corner: by default four of 120×80.
    static func animation(as format: Format, of count: Int = 4, width: Int = 120, height: Int = 80) async throws
        -> [UInt8]
    {
        try await onRenderThread {
            let frames = try (0..<count).map { index in
                let pixels = (0..<width * height).flatMap { (pixel: Int) -> [UInt8] in
                    pixel % width < 20 && pixel / width < 20 ? [255, 255, 255] : colors[index % 4]
                }
                return try Image(pixels: pixels, width: width, height: height, bands: 3)
            }
            let delays = (0..<count).map { 50 + $0 % 4 * 10 }
            return try Image.strip(frames, delays: delays, loop: 3)
                .encoded(as: format, format == .webp ? ["lossless": true] : [:])
        }
    }

    static func strip(_ body: [UInt8]) throws -> Image { try EncodedImage(body).open(["n": -1]) }

    @Test(arguments: [(Format.gif, ImageFormat?.none), (.webp, nil), (.gif, .webp), (.webp, .gif)])
    func keepsAnimations(_ from: Format, _ to: ImageFormat?) async throws {
        let source = try await Self.animation(as: from)
        let image = try await render(source, filling(60, 60, .scaleAspectFit, as: to))
        #expect(image.format == (to ?? (from == .gif ? .gif : .webp)))
        #expect(image.frames == 4 && image.size == PixelSize(width: 60, height: 60))
        let frames = try await onRenderThread { () -> [[Int]] in
            let strip = try Self.strip(image.body)
            #expect(strip.frames == 4 && strip.pageHeight == 60 && strip.height == 240)
            #expect(strip.frameDelays == [50, 60, 70, 80] && strip.loopCount == 3)
            return try (0..<4).map { index in
                let page = try strip.page(index)
                let bytes = try page.pixels()
                let offset = (30 * 60 + 30) * page.bands
                return bytes[offset..<offset + 3].map(Int.init)
            }
        }
        for (frame, color) in zip(frames, Self.colors) {
            #expect(zip(frame, color).allSatisfy { abs($0 - Int($1)) <= 12 }, "\(frame) for \(color)")
        }
    }

    @Test func rendersTheRequestedNumberOfFrames() async throws {
        let source = try await Self.animation(as: .gif)
        var two = filling(30, 20, as: nil)
        two.output.frames = 2
        var one = filling(30, 20, as: nil)
        one.output.frames = 1
        let images = try await render(source, [filling(30, 20, as: .png), two, one, filling(30, 20, as: nil)]).images
        #expect(images.map(\.frames) == [nil, 2, nil, 4])
        #expect(images.map(\.format) == [.png, .gif, .png, .gif])
        #expect(try Pixels(images[0].body)[15, 15].prefix(3) == [255, 0, 0])
    }

    /// Its height is not that of the frames in the file.
    @Test func enlargedFrameIsStill() async throws {
        var variant = filling(240, 160, as: .webp)
        variant.output.frames = 1
        let image = try await render(try await Self.animation(as: .webp), variant)
        let (frames, height) = try await onRenderThread { () -> (Int, Int) in
            let strip = try Self.strip(image.body)
            return (strip.frames, strip.pageHeight)
        }
        #expect(frames == 1 && height == 160)
    }

    /// Checkerboards with squares of 8 and of 12 pixels, as GIFs without a duration.
    static func boards() async throws -> [[UInt8]] {
        try await onRenderThread {
            try [8, 12].map { (side: Int) -> [UInt8] in
                let pixels = (0..<64 * 48).flatMap { (pixel: Int) -> [UInt8] in
                    let isDark = (pixel % 64 / side + pixel / 64 / side) % 2 == 0
                    return [UInt8](repeating: isDark ? 40 : 220, count: 3)
                }
                return try Image(pixels: pixels, width: 64, height: 48, bands: 3).encoded(as: .gif)
            }
        }
    }

    @Test func reportsTheFramesOfTheFile() async throws {
        let boards = try await Self.boards()
        let source = AnimatedGIF.joining([boards[0], boards[0], boards[1], boards[1]])
        let webp = EncodingSearchTests.natural(.webp) { _ in }
        let image = try await render(source, webp)
        let delays = try await onRenderThread { try Self.strip(image.body).frameDelays }
        #expect(delays.count == 2 && delays.first == delays.last)
        #expect(image.frames == 2)
        #expect(try await render(AnimatedGIF.repeating(boards[0], frames: 3), webp).frames == nil)
    }

    @Test func comparesRepeatedFramesWithThoseOfTheFile() async throws {
        let boards = try await Self.boards()
        let source = AnimatedGIF.joining([boards[0], boards[0], boards[1], boards[1]])
        var sizes: [Int] = []
        for format in [ImageFormat.webp, .gif] {
            let image = try await render(source, EncodingSearchTests.natural(format) { $0.similarity = 0.9 })
            #expect(image.encoding?.similarity ?? 0 >= 0.9, "\(format)")
            sizes.append(image.body.count)
        }
        let best = try await render(
            source, EncodingSearchTests.natural(nil) { ($0.choosesFormat, $0.similarity) = (true, 0.9) })
        #expect(best.body.count == sizes.min())
    }

    @Test func enforcesLimitsOnFramesAndPixels() async throws {
        let source = try await Self.animation(as: .gif, of: 12, width: 40, height: 40)
        func code(_ limits: ImageLimits, _ variant: Variant) async -> JobErrorCode? {
            do { _ = try await render(source, variant, limits: limits) } catch { return (error as? JobError)?.code }
            return nil
        }
        let animated = filling(20, 20, as: nil)
        #expect(await code(ImageLimits(frames: 12), animated) == nil)
        #expect(await code(ImageLimits(frames: 11), animated) == .tooManyPixels)
        #expect(await code(ImageLimits(frames: 1), filling(20, 20, as: .png)) == nil)
        #expect(await code(ImageLimits(sourcePixels: 12 * 1600), animated) == nil)
        #expect(await code(ImageLimits(sourcePixels: 12 * 1600 - 1), animated) == .tooManyPixels)
        #expect(await code(ImageLimits(outputPixels: 12 * 400), animated) == nil)
        #expect(await code(ImageLimits(outputPixels: 12 * 400 - 1), animated) == .tooManyPixels)
        #expect(await code(ImageLimits(decodedBytes: 12 * 1600), animated) == .tooManyPixels)
    }

    @Test func reportsMoreThan4096FramesWithoutACount() async throws {
        let source = try #require(MalformedImage.all().first { $0.name == "GIF of 10000 frames" }).bytes()
        for limit in [1000, 65_535] {
            let failure = await InvalidInputTests().failure(source, filling(9, 9, as: nil), ImageLimits(frames: limit))
            #expect(failure?.code == .tooManyPixels)
            #expect(failure?.message.contains("more than 4096 frames") == true, "\(failure?.message ?? "")")
        }
    }
}
