import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct InvalidInputTests {
    /// 640×480 pixels of noise, so that the file is long and truncation falls into the pixels.
    static func photo(_ format: Format, progressive: Bool = false) async throws -> [UInt8] {
        var generator = SeededNumbers(seed: 1)
        let pixels = (0..<640 * 480 * 3 / 8).flatMap { _ in
            withUnsafeBytes(of: UInt64.random(in: 0...UInt64.max, using: &generator)) { Array($0) }
        }
        return try await onRenderThread {
            try Image(pixels: pixels, width: 640, height: 480, bands: 3)
                .encoded(as: format, progressive ? ["interlace": true] : [:])
        }
    }

    func failure(
        _ bytes: [UInt8], _ variant: Variant = filling(100, 100), _ limits: ImageLimits = ImageLimits()
    ) async -> JobError? {
        do {
            _ = try await render(bytes, variant, limits: limits)
            return nil
        } catch {
            return error as? JobError ?? JobError(.poison, "not a JobError: \(error)")
        }
    }

    @Test(arguments: [Format.jpeg, .png, .webp, .gif, .tiff])
    func rejectsTruncatedImages(_ format: Format) async throws {
        let whole = try await Self.photo(format)
        #expect(await failure(whole) == nil)
        for fraction in [0.3, 0.6, 0.9] {
            let cut = Array(whole.prefix(Int(Double(whole.count) * fraction)))
            #expect(await failure(cut)?.code == .corruptImage, "\(fraction) of a \(format)")
        }
    }

    /// The variant of a job that tolerates truncated files.
    static func tolerant(_ variant: Variant) -> Variant {
        var variant = variant
        variant.tolerance = .truncated
        return variant
    }

    @Test func toleratesAMissingEndOfImageMarker() async throws {
        let photo = try await Self.photo(.jpeg)
        let wanted = try await render(photo, [filling(100, 100)])
        let cut = Array(photo.dropLast(2))
        let tolerated = try await render(cut, [Self.tolerant(filling(100, 100))])
        #expect(tolerated.images[0].sha256 == wanted.images[0].sha256)
        #expect(tolerated.sourceIsTruncated && !wanted.sourceIsTruncated)
        let intact = try await render(photo, [Self.tolerant(filling(100, 100))])
        #expect(intact.images[0].sha256 == wanted.images[0].sha256 && !intact.sourceIsTruncated)
    }

    @Test(arguments: [Format.jpeg, .png, .gif])
    func rendersTheIntactPartOfATruncatedFile(_ format: Format) async throws {
        let whole = try await Self.photo(format)
        for progressive in format == .jpeg ? [false, true] : [false] {
            let whole = progressive ? try await Self.photo(.jpeg, progressive: true) : whole
            let cut = Array(whole.prefix(whole.count * 3 / 4))
            let rendering = try await render(cut, [Self.tolerant(filling(640, 480)), Self.tolerant(filling(64, 48))])
            #expect(rendering.sourceIsTruncated)
            let (found, wanted) = (
                try Pixels(rendering.images[0].body), try await renderedPixels(whole, filling(640, 480))
            )
            if !progressive {
                for y in [0, 100, 300] { #expect(found[320, y].prefix(3) == wanted[320, y].prefix(3), "row \(y)") }
            }
            // The limits set the default, which a job can override.
            let limits = ImageLimits(tolerance: .truncated)
            #expect(await failure(cut, filling(64, 48), limits) == nil)
            var strict = filling(64, 48)
            strict.tolerance = .strict
            #expect(await failure(cut, strict, limits)?.code == .corruptImage)
            await #expect(throws: JobError.self) {
                try await render(cut, [Self.tolerant(filling(64, 48)), filling(9, 9)])
            }
        }
    }

    @Test func doesNotTolerateOtherDamage() async throws {
        var png = try await Self.photo(.png)
        for index in png.count / 2..<png.count / 2 + 40 { png[index] ^= 0x55 }
        #expect(await failure(png, Self.tolerant(filling(100, 100)))?.code == .corruptImage)
        for format in [Format.webp, .tiff] {
            let whole = try await Self.photo(format)
            let cut = Array(whole.prefix(whole.count / 2))
            #expect(await failure(cut, Self.tolerant(filling(100, 100)))?.code == .corruptImage, "\(format)")
        }
        for format in [Format.jpeg, .png, .gif] {
            let bytes = try await Self.photo(format)
            #expect(await failure(Array(bytes.prefix(24)), Self.tolerant(filling(9, 9)))?.code == .corruptImage)
        }
    }

    @Test func rejectsTruncatedProgressiveJPEGs() async throws {
        let whole = try await Self.photo(.jpeg, progressive: true)
        #expect(await failure(Array(whole.prefix(whole.count / 2)))?.code == .corruptImage)
        #expect(await failure(whole) == nil)
    }

    @Test func rejectsDamagedPNGs() async throws {
        var bytes = try await Self.photo(.png)
        for index in bytes.count / 2..<bytes.count / 2 + 40 { bytes[index] ^= 0x55 }
        #expect(await failure(bytes)?.code == .corruptImage)
    }

    @Test(arguments: [
        ("", "empty"), ("<!DOCTYPE html><html><body>Not found</body></html>", "HTML"),
        ("{\"error\":\"no such image\"}", "JSON"), ("P6 1 1 255 abc", "not in a supported image format"),
        ("\u{1}\u{2}\u{3}\u{4}\u{5}", "not in a supported image format"),
    ])
    func namesTheTypeOfNonImages(_ text: String, _ word: String) async {
        let failure = await self.failure(Array(text.utf8))
        #expect(failure?.code == .unsupportedFormat)
        #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "")")
        #expect(failure?.isRetryable == false)
    }

    @Test func unsupportedJPEGsAreNotCorrupt() async throws {
        let photo = try await Self.photo(.jpeg)
        let frame = try #require(photo.indices.dropLast().first { photo[$0] == 0xff && photo[$0 + 1] == 0xc0 })
        for (offset, byte, word): (Int, UInt8, String) in [
            (1, 0xc3, "lossless coding (SOF3)"), (1, 0xc5, "hierarchical coding (SOF5)"),
            (1, 0xcb, "lossless arithmetic coding (SOF11)"), (4, 12, "12 bits per sample"),
        ] {
            var bytes = photo
            bytes[frame + offset] = byte
            let failure = await self.failure(bytes)
            #expect(failure?.code == .unsupportedFormat)
            #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "")")
        }
    }

    @Test func rejectsFilesWithOnlyAHeader() async throws {
        for format in [Format.jpeg, .png, .webp, .gif, .tiff] {
            let bytes = try await Self.photo(format)
            #expect(await failure(Array(bytes.prefix(24)))?.code == .corruptImage, "\(format)")
        }
    }

    @Test func randomDamageFailsOrRenders() async throws {
        var generator = SeededNumbers(seed: 11)
        for format in [Format.jpeg, .png, .webp, .gif, .tiff] {
            let whole = try await Self.photo(format)
            for _ in 0..<60 {
                var bytes = whole
                for _ in 0..<Int.random(in: 1...20, using: &generator) {
                    bytes[Int.random(in: 0..<min(bytes.count, 4000), using: &generator)] = .random(
                        in: 0...255, using: &generator)
                }
                let code = await failure(bytes, filling(50, 50))?.code
                #expect([nil, .corruptImage, .unsupportedFormat, .tooManyPixels].contains(code))
            }
        }
    }

    @Test func enforcesLimitsOnHeadersAndPlans() async throws {
        let photo = try await Self.photo(.jpeg)
        #expect(await failure(photo, filling(100, 100), ImageLimits(sourcePixels: 640 * 480)) == nil)
        #expect(
            await failure(photo, filling(100, 100), ImageLimits(sourcePixels: 640 * 480 - 1))?.code == .tooManyPixels)
        #expect(await failure(photo, filling(100, 100), ImageLimits(outputPixels: 10_000)) == nil)
        #expect(await failure(photo, filling(101, 100), ImageLimits(outputPixels: 10_000))?.code == .tooManyPixels)
        #expect(await failure(photo, filling(20_000, 10, .scaleToFill, as: .webp))?.code == .tooManyPixels)
        #expect(await failure(photo, filling(1e9, 1e9))?.code == .tooManyPixels)

        let progressive = try await Self.photo(.jpeg, progressive: true)
        let tight = ImageLimits(decodedBytes: 640 * 480 * 3)
        #expect(await failure(photo, filling(100, 100), tight) == nil)
        #expect(await failure(progressive, filling(100, 100), tight)?.code == .tooManyPixels)

        // Intermediate results of processors count too, even if the output is small.
        var enlarged = filling(100, 100)
        let large = PixelSize(width: 1000, height: 1000)
        enlarged.processors = [.resize(large, .none), .resize(PixelSize(width: 9, height: 9), .none)]
        #expect(await failure(photo, enlarged, tight)?.code == .tooManyPixels)
        #expect(await failure(photo, enlarged, ImageLimits(decodedBytes: 64 << 20)) == nil)
    }

    @Test func rejectsADecompressionBombByItsHeader() async throws {
        // 30000×30000 pixels of one color: a few hundred kilobytes that would decode to 0.9 GB.
        let bomb = try await onRenderThread {
            try Operation.call("black", ["width": 30_000, "height": 30_000]).image().encoded(
                as: .png, ["compression": 1])
        }
        let failure = await self.failure(bomb)
        #expect(failure?.code == .tooManyPixels)
        #expect(failure?.message.contains("30000×30000") == true)
    }

    @Test func rejectsOutputFormatsThatCannotBeWritten() async throws {
        let photo = try await Self.photo(.jpeg)
        for format in ImageFormat.allCases where !ImageFormat.writable.contains(format) {
            #expect(await failure(photo, filling(10, 10, as: format))?.code == .unsupportedFormat)
        }
    }
}
