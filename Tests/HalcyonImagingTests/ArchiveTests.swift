import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Archive copies of large sources, and results that are rendered from them.
@Suite(.limitedParallelism) struct ArchiveTests {
    private static let options = ArchiveOptions(minimumPixels: 200_000, pixels: 60_000)

    /// A copy and its original.
    private struct Copy: Sendable {
        let body: [UInt8]
        let original: ArchivedOriginal
    }

    private static func copy(of source: [UInt8], _ options: ArchiveOptions = options) async throws -> Copy? {
        try await onRenderThread {
            let renderer = Renderer()
            let made = try renderer.render(renderer.plan(renderer.identify(source), [], archive: options))
            return made.images.first.map {
                Copy(
                    body: $0.body,
                    original: ArchivedOriginal(
                        format: made.sourceFormat, size: made.sourceSize, bytes: source.count, sha256: ""))
            }
        }
    }

    private static func render(_ copy: Copy, _ variant: Variant) async throws -> RenderResult {
        try await onRenderThread {
            let renderer = Renderer()
            return try renderer.render(
                renderer.plan(renderer.identify(copy.body), [variant], original: copy.original))
        }
    }

    private static func width(
        _ width: Double, crop: CropRect = .whole, _ output: OutputOptions = OutputOptions(format: .png)
    ) -> Variant {
        Variant(sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(width)), cropRect: crop), output: output)
    }

    private static func image(_ name: String, _ change: @escaping @Sendable (Image) throws -> [UInt8]) async throws
        -> [UInt8]
    {
        let bytes = try SampleImages.bytes(name)
        return try await onRenderThread { try change(EncodedImage(bytes).open().inMemory()) }
    }

    /// The distances in CIEDE2000. The copy is compressed, and it has hardly more pixels than some of the outputs. From
    /// the original, most are rendered by the reduction of the JPEG decoder, which alone is up to 0.9 (the worst block
    /// 7.5) away from Lanczos3. Of both, a part may begin inside a pixel, which shifts the output by up to a quarter.
    @Test(arguments: ["rocket.jpg", "coffee.jpg", "astronaut.jpg", "hubble.jpg"])
    func rendersNearlyTheSamePixels(photograph: String) async throws {
        let source = try SampleImages.bytes(photograph)
        let copy = try #require(try await Self.copy(of: source))
        var cases: [(Variant, mean: Double, worstBlock: Double)] = [
            (Self.width(200), 2, 8), (Self.width(90), 2, 12),
            (Self.width(50, crop: CropRect(x: 0.25, y: 0.1, width: 0.5, height: 0.6)), 5, 16),
            (Self.width(20, crop: CropRect(x: 100, y: 40, width: 201, height: 180, unit: .pixels)), 5, 16),
        ]
        let corner = Sizing(
            goal: .display(Display(width: 120, height: 120)), gravity: .focalPoint(UnitPoint(x: 1, y: 0)))
        cases.append((Variant(sizing: corner, output: OutputOptions(format: .png)), 5, 16))
        for (variant, mean, worstBlock) in cases {
            #expect(Self.options.holds(variant, of: copy.original.size, Extensions()))
            let expected = try await HalcyonImagingTests.render(source, variant)
            let found = try await Self.render(copy, variant)
            #expect(found.sourceSize == copy.original.size && found.sourceFormat == .jpeg)
            #expect(found.images[0].size == expected.size)
            let (left, right) = (expected.body, found.images[0].body)
            let distance = try await onRenderThread {
                try PerceptualDistance(EncodedImage(left).open(), EncodedImage(right).open())
            }
            let difference = try #require(distance)
            #expect(difference.mean < mean && difference.worstBlock < worstBlock, "\(photograph): \(difference)")
        }
    }

    /// Stretched gradients show a shift of half a pixel.
    @Test(arguments: 1...8) func geometryIsThatOfTheOriginal(orientation: Int) async throws {
        let pattern = TestPattern(
            size: PixelSize(width: 640, height: 480), part: PixelRect(x: 160, y: 96, width: 320, height: 240))
        let source = try await onRenderThread {
            try pattern.image(orientation: orientation).with(header: ["orientation": .int(orientation)])
                .encoded(as: .jpeg, ["Q": 98, "subsample-mode": "off"])
        }
        let copy = try #require(try await Self.copy(of: source))
        #expect(copy.original.size == pattern.size)
        for rect in [
            CropRect(x: 0.25, y: 0.2, width: 0.5, height: 0.5),
            CropRect(x: 160, y: 96, width: 320, height: 240, unit: .pixels),
        ] {
            let variant = Self.width(60, crop: rect)
            #expect(Self.options.holds(variant, of: pattern.size, Extensions()))
            let found = try await Self.render(copy, variant)
            let pixels = try await onRenderThread { try Pixels(found.images[0].body) }
            let expected = try await renderedPixels(source, variant)
            try #require(pixels.width == 60 && pixels.height == 45 && expected.height == 45)
            var sums = [0.0, 0.0]
            for y in 2..<43 {
                for x in 2..<58 {
                    let ideal = [255 * (Double(x) + 0.5) / 60, 255 * (Double(y) + 0.5) / 45]
                    for band in 0..<2 {
                        let error = Double(pixels[x, y][band]) - ideal[band]
                        sums[band] += error
                        // The compression of the copy, and 4.3 and 5.7 levels for a pixel of the output.
                        #expect(abs(error) < 7, "\(x), \(y) of \(orientation)")
                        #expect(abs(pixels[x, y][band] - expected[x, y][band]) < 8)
                    }
                }
            }
            // A quarter of a pixel.
            let means = sums.map { abs($0) / (56 * 41) }
            #expect(means[0] < 1.1 && means[1] < 1.5, "\(orientation): \(means)")
        }
    }

    @Test func retainsAlphaProfileAndGray() async throws {
        let veiled = try await Self.image("coffee.jpg") { image in
            let ramp = try Operation.call("xyz", ["width": 600, "height": 400]).image().calling(
                "extract_band", ["band": 0]
            ).calling("linear", ["a": [255.0 / 599], "b": [0.5]]).calling("cast", ["format": "uchar"])
            return try image.joined(with: ramp).encoded(as: .webp, ["lossless": true])
        }
        var copy = try #require(try await Self.copy(of: veiled))
        #expect(copy.original.format == .webp && copy.body.starts(with: [0x89, 0x50]))
        // The format follows from the original.
        var found = try await Self.render(copy, Self.width(150, OutputOptions()))
        #expect(found.images[0].format == .webp)
        let (body, expected) = (
            found.images[0].body, try await renderedPixels(veiled, Self.width(150, OutputOptions(format: .png)))
        )
        let pixels = try await onRenderThread { try Pixels(body) }
        #expect(pixels.bands == 4 && abs(pixels[75, 50][3] - expected[75, 50][3]) <= 2)

        let gray = try await Self.image("coffee.jpg") {
            try $0.calling("colourspace", ["space": "b-w"]).encoded(as: .png)
        }
        copy = try #require(try await Self.copy(of: gray))
        found = try await Self.render(copy, Self.width(150, OutputOptions()))
        #expect(found.images[0].format == .png)
        let grayBody = found.images[0].body
        #expect(try await onRenderThread { try Pixels(grayBody).bands } == 1)

        let wide = try await Self.image("coffee.jpg") {
            try $0.calling("icc_transform", ["output-profile": "p3", "input-profile": "srgb"]).encoded(as: .jpeg)
        }
        copy = try #require(try await Self.copy(of: wide))
        for output in [OutputOptions(format: .png), OutputOptions(format: .png, keepProfile: true)] {
            let result = try await Self.render(copy, Self.width(150, output)).images[0].body
            let reference = try await HalcyonImagingTests.render(wide, Self.width(150, output)).body
            let (distance, profiles) = try await onRenderThread {
                let (left, right) = (try EncodedImage(result).open(), try EncodedImage(reference).open())
                return (
                    try PerceptualDistance(left, right),
                    [left, right].map { $0.bytes(of: "icc-profile-data") }
                )
            }
            #expect(try #require(distance).mean < 1 && profiles[0] == profiles[1])
            #expect((profiles[0] != nil) == output.keepProfile)
        }
    }

    @Test func someSourcesHaveNone() async throws {
        let photograph = try SampleImages.bytes("hubble.jpg")
        #expect(try await Self.copy(of: photograph, ArchiveOptions(minimumPixels: 872_000, pixels: 60_000)) == nil)
        #expect(try await Self.copy(of: photograph, ArchiveOptions(minimumPixels: 871_999, pixels: 60_000)) != nil)
        #expect(try await Self.copy(of: Array(photograph.dropLast(2000))) == nil)
        let drawing = #"<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900"><circle r="9"/></svg>"#
        #expect(try await Self.copy(of: Array(drawing.utf8)) == nil)
        let frames = try await onRenderThread {
            let frame = try EncodedImage(photograph).open().inMemory()
            return try Image.strip([frame, frame.calling("invert")]).encoded(as: .webp)
        }
        #expect(try await Self.copy(of: frames) == nil)
    }

    @Test func holdsWhatNeedsNoMorePixels() throws {
        let (archive, size) = (
            ArchiveOptions(minimumPixels: 8_000_000, pixels: 3_000_000), PixelSize(width: 6000, height: 4000)
        )
        #expect(archive.size(of: size) == PixelSize(width: 2121, height: 1414))
        func holds(_ variant: Variant) -> Bool { archive.holds(variant, of: size, Extensions()) }
        #expect(holds(Self.width(2121)) && !holds(Self.width(2122)) && !holds(Self.width(6000)))
        let half = CropRect(x: 0.5, y: 0, width: 0.5, height: 1)
        #expect(holds(Self.width(1000, crop: half)) && !holds(Self.width(1062, crop: half)))
        let pixels = CropRect(x: 10, y: 20, width: 600, height: 400, unit: .pixels)
        #expect(holds(Self.width(100, crop: pixels)) && !holds(Self.width(213, crop: pixels)))
        // Enough pixels, but it would be shifted by 0.42 pixels.
        #expect(!holds(Self.width(212, crop: pixels)))
        // Outside of the image: the original reports it.
        #expect(!holds(Self.width(9, crop: CropRect(x: 6000, y: 0, width: 9, height: 9, unit: .pixels))))
        #expect(!holds(Variant(sizing: Sizing(goal: .original))))
        let fill = Variant(sizing: Sizing(goal: .display(Display(width: 700, height: 700))))
        #expect(holds(fill))
        func attention(_ side: Double) -> Variant {
            Variant(sizing: Sizing(goal: .display(Display(width: side, height: side)), gravity: .attention))
        }
        #expect(holds(attention(707)) && !holds(attention(708)))
        let changes: [(inout Variant) -> Void] = [
            { $0.info = InfoOptions() }, { $0.output.stripMetadata = false }, { $0.interpolationQuality = .none },
            { $0.linearLight = true }, { $0.sizing.trim = Trim() }, { $0.before = [.blackWhite] },
            { ($0.output.format, $0.output.bitDepth) = (.png, 16) },
        ]
        for change in changes {
            var variant = Self.width(100)
            change(&variant)
            #expect(!holds(variant))
        }
        var processed = Self.width(100)
        processed.processors = [.blackWhite]
        #expect(holds(processed))
    }
}
