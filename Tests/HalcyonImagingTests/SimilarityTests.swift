import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging
@testable import MalformedImages

/// The structural similarity, compared with the reference in numpy, `scripts/similarity`.
@Suite(.limitedParallelism) struct SimilarityTests {
    struct Scene: Sendable, CustomTestStringConvertible {
        let name: String
        let width: Int
        let height: Int
        let bands: Int
        /// The index that `scripts/similarity` prints.
        let expected: Double

        var testDescription: String { name }

        /// The pattern of `scripts/similarity` with noise of this amplitude.
        func image(noise: Int) throws -> Image {
            var (pixels, state): ([UInt8], Int) = ([], 7)
            for y in 0..<height {
                for x in 0..<width {
                    for band in 0..<bands {
                        state = (state * 1_103_515_245 + 12345) % (1 << 31)
                        let smooth = (x * (3 + band) + y * (5 - band) + (x * y) / 16) % 256
                        pixels.append(UInt8(clamping: smooth + (state >> 16) % (2 * noise + 1) - noise))
                    }
                }
            }
            return try Image(pixels: pixels, width: width, height: height, bands: bands)
        }
    }

    static let scenes = [
        Scene(name: "color", width: 64, height: 48, bands: 3, expected: 0.696018002),
        Scene(name: "reduced", width: 700, height: 520, bands: 3, expected: 0.971113316),
        Scene(name: "gray", width: 40, height: 30, bands: 1, expected: 0.429603395),
        Scene(name: "alpha", width: 90, height: 60, bands: 4, expected: 0.596094692),
        Scene(name: "small", width: 30, height: 9, bands: 3, expected: 0.518599021),
    ]

    /// The tolerance is for alpha, where integer rounding differs by one level between versions of libvips.
    @Test(arguments: scenes) func matchesTheReference(_ scene: Scene) async throws {
        let similarity = try await onRenderThread {
            try Similarity(to: scene.image(noise: 4), nil).similarity(of: scene.image(noise: 40), nil)
        }
        let tolerance = scene.bands == 4 ? 0.001 : 0.000_001
        #expect(abs(similarity - scene.expected) <= tolerance, "\(similarity)")
    }

    @Test(arguments: scenes) func isOneForTheSameImage(_ scene: Scene) async throws {
        let similarity = try await onRenderThread {
            try Similarity(to: scene.image(noise: 4), nil).similarity(of: scene.image(noise: 4), nil)
        }
        #expect(abs(similarity - 1) < 1e-9)
    }
}

/// Searches for the quality, the format and the number of bytes of an output, and the options of encoders.
@Suite(.limitedParallelism) struct EncodingSearchTests {
    static func natural(_ format: ImageFormat? = .jpeg, _ change: (inout OutputOptions) -> Void) -> Variant {
        PassThroughTests.natural { variant in
            variant.output.format = format
            change(&variant.output)
        }
    }

    /// A photograph of 640×427 pixels, without loss.
    static func photo(_ format: Format = .png) async throws -> [UInt8] {
        try await onRenderThread {
            try EncodedImage(SampleImages.bytes()).open().inMemory().encoded(
                as: format, format == .jpeg ? ["Q": 97] : [:], keeping: [])
        }
    }

    static func measured(_ file: [UInt8], _ source: [UInt8]) async throws -> Double {
        try await onRenderThread {
            try Similarity(to: EncodedImage(source).open().inMemory(), nil).similarity(ofFile: file, nil)
        }
    }

    // MARK: Targets

    @Test(arguments: [(ImageFormat.jpeg, 0.9), (.jpeg, 0.98), (.webp, 0.95), (.avif, 0.97)])
    func findsTheLowestQualityThatReachesTheTarget(format: ImageFormat, target: Double) async throws {
        let source = try await Self.photo(.png)
        let image = try await render(source, Self.natural(format) { $0.similarity = target })
        let choice = try #require(image.encoding)
        let quality = try #require(choice.quality)
        #expect(image.format == format && choice.encodings <= 8)
        let similarity = try await Self.measured(image.body, source)
        #expect(similarity >= target && abs(similarity - (choice.similarity ?? 0)) < 0.000_001)
        // The same file results from that quality, and the quality below it is not sufficient.
        #expect(try await render(source, Self.natural(format) { $0.quality = quality }).body == image.body)
        let below = try await render(source, Self.natural(format) { $0.quality = quality - 1 })
        #expect(try await Self.measured(below.body, source) < target)
    }

    @Test func keepsTheMostSimilarFileIfNoneReachesTheTarget() async throws {
        let source = try await Self.photo(.png)
        let limits = ImageLimits(encodings: 2)
        let image = try await render(source, Self.natural { $0.similarity = 0.9999 }, limits: limits)
        #expect(image.encoding?.encodings == 2 && image.encoding?.quality == 90)
        #expect(image.encoding?.similarity ?? 1 < 0.9999)
    }

    @Test func losslessFormatsReachEveryTarget() async throws {
        let source = try await Self.photo(.jpeg)
        for format in [ImageFormat.png, .tiff] {
            let image = try await render(source, Self.natural(format) { $0.similarity = 0.99 })
            #expect(image.encoding == EncodingChoice(encodings: 1))
        }
        // A GIF loses colors, but has no quality to search for.
        let gif = try await render(source, Self.natural(.gif) { $0.similarity = 0.99 })
        #expect(gif.encoding?.colors == 256 && gif.encoding?.encodings == 1 && gif.encoding?.similarity ?? 1 < 1)
    }

    // MARK: Bytes

    @Test(arguments: [(ImageFormat.jpeg, 20_000), (.webp, 15_000), (.avif, 10_000)])
    func findsTheHighestQualityWithinTheBytes(format: ImageFormat, limit: Int) async throws {
        let source = try await Self.photo(.png)
        let image = try await render(source, Self.natural(format) { $0.maximumBytes = limit })
        let choice = try #require(image.encoding)
        let quality = try #require(choice.quality)
        #expect(image.body.count <= limit && choice.encodings <= 8 && choice.similarity == nil)
        #expect(image.size == PixelSize(width: 640, height: 427))
        let above = try await render(source, Self.natural(format) { $0.quality = quality + 2 })
        #expect(above.body.count > limit, "\(quality)")
    }

    @Test func encodesOnceIfTheFirstFileFits() async throws {
        let source = try await Self.photo(.png)
        let image = try await render(source, Self.natural { ($0.maximumBytes, $0.quality) = (1 << 30, 70) })
        #expect(image.encoding == EncodingChoice(quality: 70, encodings: 1))
        #expect(try await render(source, Self.natural { $0.quality = 70 }).body == image.body)
    }

    @Test func explainsThatNoFileFits() async throws {
        let source = try await Self.photo(.png)
        let failure = await InvalidInputTests().failure(source, Self.natural { $0.maximumBytes = 1000 })
        let floor = try await render(source, Self.natural { $0.quality = 10 })
        #expect(failure?.code == .tooLarge && failure?.isRetryable == false)
        #expect(
            failure?.message
                == """
                the smallest jpeg in 2 encodings has \(floor.body.count) bytes (640×427, quality 10); maximumBytes is \
                1000. Increase it or set allowResize
                """)
        let tiff = await InvalidInputTests().failure(source, Self.natural(.tiff) { $0.maximumBytes = 1000 })
        #expect(tiff?.message.contains("in 1 encodings") == true && tiff?.message.contains("lossless") == true)
    }

    @Test(arguments: [ImageFormat.jpeg, .webp, .png, .gif, .tiff], [3000, 20_000])
    func shrinksIfAllowed(format: ImageFormat, limit: Int) async throws {
        let source = try await Self.photo(.png)
        let image = try await render(
            source, Self.natural(format) { ($0.maximumBytes, $0.allowsResizing) = (limit, true) })
        #expect(image.body.count <= limit && image.encoding?.encodings ?? 9 <= 8)
        // The file uses most of what it may have.
        #expect(image.body.count > limit / 2, "\(image.body.count)")
        let pixels = try Pixels(image.body)
        #expect(PixelSize(width: pixels.width, height: pixels.height) == image.size)
        let aspectRatio = Double(image.size.width) / Double(image.size.height)
        #expect(abs(aspectRatio - 640 / 427) < 0.05)
        if limit == 3000 || format == .png || format == .tiff { #expect(image.size.width < 640) }
    }

    @Test func reducesColorsOfLosslessFormats() async throws {
        let source = try await Self.photo(.png)
        let whole = try await render(source, Self.natural(.png) { $0.quality = 80 })
        for format in [ImageFormat.png, .gif] {
            let image = try await render(source, Self.natural(format) { $0.maximumBytes = whole.body.count / 4 })
            #expect(image.body.count <= whole.body.count / 4)
            #expect([2, 4, 16, 256].contains(image.encoding?.colors), "\(String(describing: image.encoding))")
        }
        let kept = try await render(source, Self.natural(.png) { $0.maximumBytes = whole.body.count })
        #expect(kept.body == whole.body && kept.encoding == EncodingChoice(encodings: 1))
    }

    @Test func bytesTakePrecedenceOverTheTarget() async throws {
        let source = try await Self.photo(.png)
        let target = try await render(source, Self.natural { $0.similarity = 0.98 })
        let both = try await render(
            source, Self.natural { ($0.similarity, $0.maximumBytes) = (0.98, target.body.count * 2 / 3) })
        #expect(both.body.count <= target.body.count * 2 / 3)
        #expect(both.encoding?.quality ?? 100 < target.encoding?.quality ?? 0)
        let same = try await render(
            source, Self.natural { ($0.similarity, $0.maximumBytes) = (0.98, target.body.count) })
        #expect(same.body == target.body)
    }

    @Test func passesFilesThatFit() async throws {
        let plain = try await Self.photo(.jpeg)
        let image = try await render(plain, Self.natural(nil) { $0.maximumBytes = plain.count })
        #expect(image.body == plain && image.encoding == EncodingChoice(encodings: 0))
        let less = try await render(plain, Self.natural(nil) { $0.maximumBytes = plain.count - 1 })
        #expect(less.body.count < plain.count && less.encoding?.encodings == 1)
        for change: (inout OutputOptions) -> Void in [
            { $0.similarity = 0.98 }, { $0.chromaSubsampling = .half }, { $0.profile = .p3 },
        ] {
            #expect(try await render(plain, Self.natural(nil, change)).body != plain)
        }
    }

    // MARK: Best

    @Test func keepsTheSmallestFormat() async throws {
        let source = try await Self.photo(.jpeg)
        let best = try await render(source, Self.natural(nil) { $0.choosesFormat = true })
        var sizes: [ImageFormat: Int] = [:]
        for format in [ImageFormat.jpeg, .webp, .avif] where Encoder(format, OutputOptions()) != nil {
            let image = try await render(source, Self.natural(format) { $0.similarity = 0.98 })
            sizes[format] = image.body.count
        }
        #expect(best.body.count == sizes.values.min() && sizes[best.format] == best.body.count)
        #expect(best.encoding?.similarity ?? 0 >= 0.98)
        let small = try await render(
            source, Self.natural(nil) { ($0.choosesFormat, $0.maximumBytes) = (true, best.body.count / 2) })
        #expect(small.body.count <= best.body.count / 2 && small.format == best.format)
    }

    @Test func keepsAlphaAndLosslessness() async throws {
        // Few colors: PNG is smaller than any lossy file that is similar.
        let mark = try await onRenderThread { try GoldenTests.mark() }
        let best = try await render(mark, Self.natural(nil) { $0.choosesFormat = true })
        #expect(best.format != .jpeg)
        #expect(try Pixels(best.body).bands == 4)
        let photo = try await Self.photo(.jpeg)
        let lossless = try await render(
            photo, Self.natural(nil) { ($0.choosesFormat, $0.lossless) = (true, true) })
        #expect([.png, .webp, .avif].contains(lossless.format) && lossless.encoding?.similarity == nil)
        let sizes = try await [ImageFormat.png, .webp, .avif].asyncMap { format in
            try await render(photo, Self.natural(format) { $0.lossless = true }).body.count
        }
        #expect(lossless.body.count == sizes.min())
    }

    // MARK: Options

    @Test func subsamplesColorsAsRequested() async throws {
        let source = try await Self.photo(.png)
        for (sampling, expected) in [(ChromaSubsampling.full, "4:4:4"), (.half, "4:2:0")] {
            let image = try await render(source, Self.natural { ($0.chromaSubsampling, $0.quality) = (sampling, 95) })
            #expect(try EncodedImage(image.body).open().text(of: "jpeg-chroma-subsample") == expected)
        }
        let sizes = try await [ChromaSubsampling.full, .half].asyncMap { sampling in
            try await render(source, Self.natural(.avif) { $0.chromaSubsampling = sampling }).body.count
        }
        #expect(sizes[0] > sizes[1])
        // WebP has only one, and lossless formats have none.
        for format in [ImageFormat.webp, .png] {
            let plain = try await render(source, Self.natural(format) { $0.quality = 80 })
            let image = try await render(
                source, Self.natural(format) { ($0.quality, $0.chromaSubsampling) = (80, ChromaSubsampling.full) })
            #expect(image.body == plain.body)
        }
    }

    @Test func nearLosslessIsSmallerThanLossless() async throws {
        let source = try await Self.photo(.png)
        let lossless = try await render(source, Self.natural(.webp) { $0.lossless = true })
        let near = try await render(source, Self.natural(.webp) { ($0.nearLossless, $0.quality) = (true, 40) })
        #expect(near.body.count < lossless.body.count)
        let differences = zip(try Pixels(near.body).bytes, try Pixels(lossless.body).bytes).map {
            abs(Int($0) - Int($1))
        }
        #expect((1...8).contains(differences.max() ?? 0))
    }

    @Test(arguments: [2, 4, 16, 256]) func quantizesToAPalette(colors: Int) async throws {
        let source = try await Self.photo(.jpeg)
        let plain = try await render(source, Self.natural(.png) { $0.effort = 4 })
        for format in [ImageFormat.png, .gif] {
            let image = try await render(
                source, Self.natural(format) { $0.quantization = Quantization(colors: colors) })
            let pixels = try Pixels(image.body)
            var found: Set<[UInt8]> = []
            for start in stride(from: 0, to: pixels.bytes.count, by: pixels.bands) {
                found.insert(Array(pixels.bytes[start..<start + pixels.bands]))
            }
            #expect(found.count <= colors && found.count > colors / 4)
            #expect(image.body.count < plain.body.count)
        }
        // The file says that it has a palette.
        let image = try await render(
            source, Self.natural(.png) { $0.quantization = Quantization(colors: colors, dither: 0) })
        #expect(image.body[25] == 3)
    }

    /// Encoded without its palette, such a file was 2.9 times as large.
    @Test func passesPNGsWithAPalette() async throws {
        let photo = try await Self.photo(.jpeg)
        let encoded = try await render(photo, Self.natural(.png) { $0.quantization = Quantization() }).body
        // libvips writes the resolution, which is removed.
        let plain = try await render(encoded, Self.natural(nil) { _ in }).body
        #expect(plain.count < encoded.count && plain[25] == 3)
        #expect(try Pixels(plain).bytes == Pixels(encoded).bytes)
        let text = PNGFile.chunk("tEXt", Array("Comment\0a place".utf8))
        let source = Array(plain[..<33]) + text + Array(plain[33...]) + Array("behind".utf8)
        for variant in [Self.natural(nil) { _ in }, Self.natural(.png) { _ in }, filling(640, 427, as: .png)] {
            let image = try await render(source, variant)
            #expect(image.body == plain && image.format == .png)
        }
        let small = try await render(source, filling(320, 213, as: .png))
        #expect(small.body[25] == 2)
        for change: (inout OutputOptions) -> Void in [
            { $0.effort = 4 }, { $0.progressive = true }, { $0.quantization = Quantization(colors: 16) },
            { $0.profile = .p3 },
        ] {
            #expect(try await render(source, Self.natural(nil, change)).body != plain)
        }
        // Other PNGs, animations and damaged files are not passed.
        let trueColor = try await render(photo, Self.natural(.png) { $0.effort = 9 }).body
        #expect(try await render(trueColor, Self.natural(nil) { _ in }).body != trueColor)
        let animated = Array(plain[..<33]) + PNGFile.chunk("acTL", [0, 0, 0, 1, 0, 0, 0, 0]) + Array(plain[33...])
        #expect(try await render(animated, Self.natural(nil) { _ in }).body != plain)
        let cut = await InvalidInputTests().failure(
            Array(source.prefix(plain.count / 2)), Self.natural(nil) { _ in })
        #expect(cut?.code == .corruptImage)
    }

    @Test func convertsToP3() async throws {
        let red = try await onRenderThread {
            try Image(color: [255, 0, 0], width: 40, height: 40).encoded(as: .png, keeping: [])
        }
        for format in [ImageFormat.png, .jpeg, .webp, .avif] {
            let image = try await render(red, Self.natural(format) { ($0.profile, $0.quality) = (.p3, 100) })
            let profile = try #require(try EncodedImage(image.body).open().bytes(of: "icc-profile-data"))
            #expect(!ICCProfile(profile).isSRGB)
            // The red of sRGB in Display P3 (CSS Color 4, section 10.9): 0.9175 0.2003 0.1387.
            let pixel = try Pixels(image.body)[20, 20].prefix(3)
            #expect(zip(pixel, [234, 51, 35]).allSatisfy { abs($0 - $1) <= 4 }, "\(format): \(pixel)")
        }
        // A color outside of sRGB stays.
        let p3 = try await OutputTests.plain([0, 0, 0], in: "p3", as: .png)
        let wide = try await onRenderThread {
            let profile = try EncodedImage(p3).open().bytes(of: "icc-profile-data") ?? []
            return try OutputTests.plain([250, 20, 20]).with(header: ["icc-profile-data": .bytes(profile)])
                .encoded(as: .png)
        }
        let kept = try await render(wide, Self.natural(.png) { $0.profile = .p3 })
        #expect(zip(try Pixels(kept.body)[20, 20], [250, 20, 20]).allSatisfy { abs($0 - $1) <= 1 })
        // Gray has no profile.
        let grey = try await onRenderThread {
            try Image(color: [128], width: 40, height: 40).encoded(as: .png, keeping: [])
        }
        let same = try await render(grey, Self.natural(.png) { $0.profile = .p3 })
        #expect(try Pixels(same.body)[20, 20].first == 128)
        #expect(try EncodedImage(same.body).open().bytes(of: "icc-profile-data") == nil)
        var marked = Self.natural(.png) { $0.profile = .p3 }
        marked.processors = [.overlay(.picture(GoldenCase.mark, opacity: 1))]
        let failure = await InvalidInputTests().failure(red, marked)
        #expect(failure?.code == .unsupportedFormat && failure?.message.contains("p3") == true)
    }

    // MARK: Estimates

    @Test func estimatesCountTheSearch() async throws {
        let jpeg = try await Self.photo(.jpeg)
        func plan(_ change: (inout OutputOptions) -> Void) throws -> RenderPlan {
            try Renderer().plan(EncodedImage(jpeg), [Self.natural(.jpeg, change)])
        }
        let plain = try plan { _ in }
        #expect(plain.unstoppable == .zero)
        #expect(try plan { $0.similarity = 0.98 }.memory > plain.memory)
        // AVIF is one of the candidates.
        #expect(
            try plan {
                $0.format = nil
                $0.choosesFormat = true
            }.unstoppable > .seconds(60))
        #expect(
            try plan {
                $0.format = .png
                $0.quantization = Quantization()
            }.unstoppable > .milliseconds(100))
    }

    @Test func cancellationEndsTheSearch() async throws {
        let source = try await Self.photo(.png)
        let variant = Self.natural(nil) { $0.choosesFormat = true }
        await #expect(throws: CancellationError.self) {
            try await onRenderThread {
                let cancellation = Cancellation()
                cancellation.cancel()
                _ = try Renderer().render(source, [variant], cancellation)
            }
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
