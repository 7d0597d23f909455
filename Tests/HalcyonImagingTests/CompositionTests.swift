import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Trimming, processors before sizing, linear light, and the limits of text.
@Suite(.limitedParallelism) struct CompositionTests {
    /// A file with a rectangle on a background.
    static func framed(
        _ size: PixelSize, _ content: PixelRect, _ background: [UInt8], _ color: [UInt8], as format: Format = .png
    ) async throws -> [UInt8] {
        try await onRenderThread {
            var picture = Bitmap(background, width: size.width, height: size.height)
            for y in content.y..<content.y + content.height {
                for x in content.x..<content.x + content.width { picture[x, y] = color }
            }
            return try picture.image.encoded(as: format, format == .jpeg ? ["Q": 100] : [:])
        }
    }

    static func natural(trim: Trim? = Trim(), _ before: Processor...) -> Variant {
        Variant(
            sizing: Sizing(goal: .original, trim: trim), before: before, output: OutputOptions(format: .png))
    }

    static let content = PixelRect(x: 12, y: 7, width: 40, height: 20)
    static let size = PixelSize(width: 90, height: 60)

    @Test func trimsMarginsAndReportsTheRest() async throws {
        let source = try await Self.framed(Self.size, Self.content, [240, 240, 240], [10, 60, 200])
        let image = try await render(source, Self.natural())
        #expect(image.size == Self.content.size && image.trim == Self.content)
        #expect(try await render(source, Self.natural(trim: nil)).trim == nil)
        // The aspect ratio is that of the content.
        var wide = Self.natural()
        wide.sizing.goal = .sizer(.aspectScaleDownByWidth(20))
        #expect(try await render(source, wide).size == PixelSize(width: 20, height: 10))
        // Nothing but background.
        let white = try await Self.framed(Self.size, PixelRect(x: 0, y: 0, width: 1, height: 1), [9, 9, 9], [9, 9, 9])
        let whole = try await render(white, Self.natural())
        #expect(whole.size == Self.size && whole.trim == PixelRect(Self.size))
    }

    @Test func toleratesTheGivenDistance() async throws {
        let source = try await Self.framed(Self.size, Self.content, [100, 100, 100], [100, 112, 100])
        #expect(try await render(source, Self.natural(trim: Trim(tolerance: 11))).size == Self.content.size)
        #expect(try await render(source, Self.natural(trim: Trim(tolerance: 12))).size == Self.size)
        let background = CSSColor(red: 100, green: 112, blue: 100)
        // With the color of the content as the background, everything else is content.
        let inverse = try await render(source, Self.natural(trim: Trim(tolerance: 3, background: background)))
        #expect(inverse.size == Self.size)
    }

    @Test(arguments: [1, 3, 6, 8]) func trimsUprightAndInsideTheCrop(_ orientation: UInt8) async throws {
        let source = try await Self.framed(Self.size, Self.content, [255, 255, 255], [0, 0, 0], as: .jpeg)
        let turned = withEXIF(source, orientation: orientation)
        let upright = Orientation(exif: Int(orientation)).upright(Self.size)
        let image = try await render(turned, Self.natural(trim: Trim(tolerance: 60)))
        let content = try #require(image.trim)
        #expect(Orientation(exif: Int(orientation)).stored(content, in: upright) == Self.content)
        #expect(image.size == content.size)
        var cropped = Self.natural(trim: Trim(tolerance: 60))
        cropped.sizing.cropRect = CropRect(x: 0.5, y: 0, width: 0.5, height: 1)
        let half = try await render(turned, cropped)
        #expect((half.trim?.x ?? 0) >= upright.width / 2)
    }

    @Test func marginsOfAnAnimationAreThoseOfAllFrames() async throws {
        let source = try await onRenderThread {
            let frames = try [(10, 10), (40, 25)].map { x, y in
                var frame = Bitmap([255, 255, 255], width: 80, height: 50)
                for row in 0..<10 { for column in 0..<10 { frame[x + column, y + row] = [0, 0, 0] } }
                return try frame.image
            }
            return try Image.strip(frames, delays: [50, 50], loop: 0).encoded(as: .gif)
        }
        var variant = Self.natural()
        variant.output.format = .gif
        let image = try await render(source, variant)
        #expect(image.frames == 2 && image.trim == PixelRect(x: 10, y: 10, width: 40, height: 25))
    }

    @Test func trimmingRespectsTheLimitOfTheOutput() async throws {
        let strip = PixelRect(x: 3, y: 3, width: 80, height: 1)
        let source = try await Self.framed(Self.size, strip, [255, 255, 255], [0, 0, 0])
        var variant = Self.natural()
        variant.sizing.goal = .sizer(.aspectScaleDownByHeight(100))
        variant.sizing.upscale = true
        // 8000×100 pixels instead of the 150×100 that the header promises.
        let error = await #expect(throws: JobError.self) {
            try await render(source, variant, limits: ImageLimits(outputPixels: 100_000))
        }
        #expect(error?.code == .tooManyPixels)
    }

    @Test func processorsBeforeSizingChangeTheSource() async throws {
        let source = try await Self.framed(Self.size, Self.content, [240, 240, 240], [10, 60, 200])
        let turned = try await render(source, Self.natural(trim: nil, .rotate(degrees: 90, background: .white)))
        #expect(turned.size == PixelSize(width: 60, height: 90))
        // The crop and the trimming are those of the rotated picture.
        var part = Self.natural(.rotate(degrees: 90, background: .white))
        part.sizing.cropRect = CropRect(x: 30, y: 0, width: 30, height: 90, unit: .pixels)
        let image = try await render(source, part)
        #expect(image.trim == PixelRect(x: 33, y: 12, width: 20, height: 40))
        // Squares of 30 source pixels, which three outputs show at their sizes.
        var large = Self.natural(trim: nil, .pixelate(30))
        large.sizing.goal = .sizer(.aspectScaleDownByWidth(30))
        let pixels = try await renderedPixels(source, large)
        #expect(pixels.width == 30 && pixels.height == 20)
    }

    @Test func sizesAfterProcessorsBeforeSizingAreKnownBeforeDecoding() async throws {
        let source = try await Self.framed(Self.size, Self.content, [240, 240, 240], [10, 60, 200])
        let error = try await onRenderThread {
            let renderer = Renderer(limits: ImageLimits(outputPixels: 10_000))
            return #expect(throws: JobError.self) {
                try renderer.plan(
                    renderer.identify(source),
                    [Self.natural(trim: nil, .resize(PixelSize(width: 500, height: 500), .none))])
            }
        }
        #expect(error?.code == .tooManyPixels && error?.message.contains("resize") == true)
    }

    @Test func linearLightAveragesLight() async throws {
        // Black and white columns.
        let source = try await onRenderThread {
            try Image(
                pixels: (0..<64 * 64).map { $0 % 2 == 0 ? 0 : 255 }, width: 64, height: 64, bands: 1
            ).encoded(as: .png)
        }
        var variant = filling(8, 8, as: .png)
        let encoded = try await renderedPixels(source, variant)
        variant.linearLight = true
        let light = try await renderedPixels(source, variant)
        #expect(abs(encoded[4, 4][0] - 128) < 4)
        // Half of the light is 188 of 255 (IEC 61966-2-1).
        #expect(abs(light[4, 4][0] - 188) < 4)
    }

    @Test func containsAtAPosition() throws {
        let source = PixelSize(width: 200, height: 100)
        func rect(_ position: ContentMode, _ width: Double = 100, _ height: Double = 100) throws -> PixelRect {
            let display = Display(width: width, height: height, contentMode: .scaleAspectFit, position: position)
            return try Sizing(goal: .display(display)).plan(for: source).destRect
        }
        #expect(try rect(.top) == PixelRect(x: 0, y: 0, width: 100, height: 50))
        #expect(try rect(.bottomRight) == PixelRect(x: 0, y: 50, width: 100, height: 50))
        #expect(try rect(.center) == PixelRect(x: 0, y: 25, width: 100, height: 50))
        #expect(try rect(.topLeft, 300, 100) == PixelRect(x: 0, y: 0, width: 200, height: 100))
        #expect(try rect(.right, 300, 100) == PixelRect(x: 100, y: 0, width: 200, height: 100))
    }

    static func text(_ text: String, size: Double? = nil, font: String = "DejaVu Sans") -> TextOverlay {
        TextOverlay(text, font: font, size: size)
    }

    /// The texts that cost most: many lines in the largest font, marks on one letter, and a word without a break.
    @Test(arguments: [
        String(repeating: "W\n", count: 250), "a" + String(repeating: "\u{301}", count: 499),
        String(repeating: "W", count: 500), String(repeating: "\u{fdfd}", count: 500),
    ])
    func textsOfTheGreatestLengthAreDrawnInsideThePicture(_ longest: String) async throws {
        Fonts.use(folder: "/usr/share/fonts")
        for size in [nil, 2000.0] {
            let picture = Bitmap([255, 255, 255], width: 300, height: 200)
            let result = try await applied(.text(Self.text(longest, size: size)), to: picture)
            #expect(result.size == picture.size && result.bytes.contains { $0 < 250 })
        }
    }

    @Test func textHasNoMarkup() async throws {
        Fonts.use(folder: "/usr/share/fonts")
        let picture = Bitmap([255, 255, 255], width: 400, height: 60)
        let plain = try await applied(.text(Self.text("<b>a</b> & &amp;", size: 20)), to: picture)
        let bold = try await applied(.text(Self.text("a & &", size: 20)), to: picture)
        #expect(plain.bytes != bold.bytes)
    }

    @Test func unknownFontsAndTextsWithoutInkAreInvalid() async throws {
        Fonts.use(folder: "/usr/share/fonts")
        let picture = Bitmap([255, 255, 255], width: 40, height: 30)
        let font = await #expect(throws: JobError.self) {
            try await applied(.text(Self.text("a", font: "Comic Sans")), to: picture)
        }
        #expect(font?.code == .invalidJob)
        #expect(font?.message.hasPrefix("text: no font family is named \"Comic Sans\"; there are ") == true)
        let blank = await #expect(throws: JobError.self) {
            try await applied(.text(Self.text("\u{200b}")), to: picture)
        }
        #expect(blank?.code == .invalidJob && blank?.message.hasPrefix("text: ") == true)
        // The worker finds out before it fetches anything.
        let variant = Variant(sizing: Sizing(goal: .original), processors: [.text(Self.text("a", font: "None"))])
        #expect(throws: JobError.self) { try Extensions().validate(variant) }
    }

    @Test func aTextIsAsLargeAsItsBoxAllows() async throws {
        Fonts.use(folder: "/usr/share/fonts")
        for (width, height) in [(200, 40), (50, 150), (300, 200)] {
            var overlay = Self.text("one two three")
            (overlay.width, overlay.height) = (width, height)
            let picture = Bitmap([255, 255, 255], width: 400, height: 300)
            let result = try await applied(.text(overlay), to: picture)
            let ink = (0..<picture.size.pixels).filter { result.bytes[$0 * 3] < 128 }
            let columns = Set(ink.map { $0 % 400 }), rows = Set(ink.map { $0 / 400 })
            #expect(columns.count <= width && rows.count <= height)
            // A larger size would not fit, or would break the lines in another way.
            #expect(columns.count * 100 > width * 60 || rows.count * 100 > height * 60)
        }
    }

    @Test(
        arguments: [BlendMode.normal, .multiply, .luminosity], [PixelOffset(x: -500, y: 0), PixelOffset(x: 0, y: 77)])
    func watermarksAndTextsMayLieBesideThePicture(_ mode: BlendMode, _ offset: PixelOffset) async throws {
        Fonts.use(folder: "/usr/share/fonts")
        let picture = Bitmap([90, 120, 200], width: 60, height: 40)
        let mark = Watermark(source: GoldenCase.mark, position: .center, offset: offset, mode: mode)
        let assets = [GoldenCase.mark: try await onRenderThread { try GoldenTests.mark() }]
        #expect(try await applied(.watermark(mark), to: picture, assets: assets).bytes == picture.bytes)
        var text = Self.text("a", size: 20)
        text.offset = offset
        #expect(try await applied(.text(text), to: picture).bytes == picture.bytes)
    }

    @Test func aFolderWithoutFontsIsReported() {
        #expect(!Fonts.use(folder: "/nonexistent/fonts"))
    }
}
