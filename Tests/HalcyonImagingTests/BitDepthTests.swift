import Foundation
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Outputs of more than 8 bits per sample.
@Suite(.limitedParallelism) struct BitDepthTests {
    /// Writes a 16-bit gray PNG of 120×80 pixels with gradients finer than 8 bits, and its reduction to 60×40 pixels
    /// by Lanczos3 as little-endian samples.
    private static let reference = """
        import json, sys
        import numpy as np
        from PIL import Image
        folder = sys.argv[1]
        y, x = np.mgrid[0:80, 0:120]
        samples = 20000 + 7.0 * x + 3.0 * y + 900 * np.sin(x / 9) * np.cos(y / 7)
        samples = samples.round().astype(np.uint16)
        Image.fromarray(samples).save(folder + "/gray.png")
        def weights(size):
            out = size // 2
            rows = np.zeros((out, size))
            for i in range(out):
                center = (i + 0.5) * 2 - 0.5
                taps = np.arange(int(np.floor(center - 6)), int(np.ceil(center + 6)) + 1)
                distance = (taps - center) / 2
                values = np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
                values /= values.sum()
                for tap, value in zip(taps, values):
                    rows[i, min(max(tap, 0), size - 1)] += value
            return rows
        small = weights(80) @ samples.astype(float) @ weights(120).T
        np.clip(small.round(), 0, 65535).astype("<u2").tofile(folder + "/small.raw")
        print(json.dumps({}))
        """

    private static func variant(_ width: Double, _ format: ImageFormat, _ bits: Int?) -> Variant {
        Variant(
            sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(width))),
            output: OutputOptions(format: format, lossless: format == .jxl || format == .avif, bitDepth: bits))
    }

    private static func samples(_ image: Image) throws -> [UInt16] {
        try image.pixels().withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) }
    }

    @Test(arguments: [ImageFormat.png, .tiff, .jxl])
    func sizesWithSixteenBits(format: ImageFormat) async throws {
        guard format != .jxl || Format.jxl.canSave else { return }
        let folder = TemporaryFolder("depth")
        _ = try await InfoTests.python(Self.reference, [folder.path])
        let source = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/gray.png")))
        let expected = Array(try Data(contentsOf: URL(filePath: "\(folder.path)/small.raw")))
        await folder.remove()
        let result = try await render(source, Self.variant(60, format, 16))
        let (kind, found) = try await onRenderThread {
            let image = try EncodedImage(result.body).open().inMemory()
            return (image.interpretation, try Self.samples(image.calling("extract_band", ["band": 0])))
        }
        #expect(kind == .grey16 || format == .jxl)
        let samples = expected.withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) }
        try #require(found.count == samples.count && samples.count == 2400)
        // In the middle within 2 of 65535, where 8 bits would be up to 128 apart. Edges are extended differently.
        var worst = 0
        for y in 4..<36 {
            for x in 4..<56 {
                worst = max(worst, abs(Int(found[y * 60 + x]) - Int(samples[y * 60 + x])))
            }
        }
        #expect(worst <= 2, "\(worst)")
        let plain = try await render(source, Self.variant(60, format, nil)).body
        let format = try await onRenderThread { try EncodedImage(plain).open().sampleFormat }
        #expect(format == .uint8)
    }

    @Test func encodesAVIFWithTwelveBits() async throws {
        let source = try await Self.deep()
        let image = try await render(source, Self.variant(100, .avif, 12))
        let (format, samples) = try await onRenderThread {
            let image = try EncodedImage(image.body).open().inMemory()
            return (image.text(of: "heif-bitdepth"), try Self.samples(image))
        }
        #expect(format == "12")
        let expected = try await onRenderThread { try Self.samples(EncodedImage(source).open().inMemory()) }
        // 12 bits are steps of 16, and 8 bits would be of 257. The color model of AVIF adds a step.
        #expect(zip(samples, expected).allSatisfy { abs(Int($0) - Int($1)) <= 32 })
    }

    /// A PNG of 100×60 pixels with 16 bits in three bands.
    private static func deep(
        _ change: @escaping @Sendable (Image) throws -> Image = { $0 }
    ) async throws -> [UInt8] {
        try await onRenderThread {
            let ramp = try Operation.call("xyz", ["width": 100, "height": 60]).image()
                .calling("linear", ["a": [420, 600], "b": [12_000, 14_000]])
            let third = try ramp.calling("extract_band", ["band": 0]).calling("linear", ["a": [-0.7], "b": [60_000]])
            let image = try Operation.call("bandjoin", ["in": .images([ramp, third])]).image()
                .calling("cast", ["format": "ushort"]).calling("copy", ["interpretation": "rgb16"])
            return try change(image).encoded(as: .png)
        }
    }

    @Test func spreadsEightBitsAndPlacesOnBackgrounds() async throws {
        let white = try await onRenderThread {
            try Image(pixels: Array(repeating: 255, count: 40 * 40 * 3), width: 40, height: 40, bands: 3)
                .encoded(as: .png)
        }
        var variant = Variant(
            sizing: Sizing(goal: .display(Display(width: 80, height: 40, contentMode: .scaleAspectFit))),
            background: CSSColor(red: 255, green: 128, blue: 0), output: OutputOptions(format: .png, bitDepth: 16))
        func corners(_ source: [UInt8]) async throws -> [[UInt16]] {
            let file = try await render(source, variant).body
            return try await onRenderThread {
                let image = try EncodedImage(file).open().inMemory()
                let (samples, bands) = (try Self.samples(image), image.bands)
                return [0, 40 * bands].map { Array(samples[$0..<$0 + bands]) }
            }
        }
        #expect(try await corners(white) == [[65_535, 32_896, 0], [65_535, 65_535, 65_535]])
        variant.background = CSSColor(red: 255, green: 128, blue: 0, alpha: 128)
        #expect(try await corners(white) == [[65_535, 32_896, 0, 32_896], [65_535, 65_535, 65_535, 65_535]])
        variant.background = .transparent
        #expect(try await corners(white) == [[0, 0, 0, 0], [65_535, 65_535, 65_535, 65_535]])
        // Gray becomes color where the background has one.
        let gray = try await onRenderThread {
            try Image(pixels: Array(repeating: 51, count: 1600), width: 40, height: 40, bands: 1).encoded(as: .png)
        }
        variant.background = CSSColor(red: 255, green: 128, blue: 0)
        #expect(try await corners(gray) == [[65_535, 32_896, 0], [13_107, 13_107, 13_107]])
    }

    @Test func convertsProfilesWithSixteenBits() async throws {
        let wide = try await Self.deep {
            try $0.calling("icc_transform", ["output-profile": "p3", "input-profile": "srgb", "depth": 16])
        }
        let plain = try await Self.deep()
        for (output, reference) in [
            (OutputOptions(format: .png, bitDepth: 16), plain),
            (OutputOptions(format: .png, keepProfile: true, bitDepth: 16), wide),
            (OutputOptions(format: .png, profile: .p3, bitDepth: 16), wide),
        ] {
            let file = try await render(wide, Variant(sizing: Sizing(goal: .original), output: output)).body
            let (found, expected, hasProfile) = try await onRenderThread {
                let image = try EncodedImage(file).open().inMemory()
                return (
                    try Self.samples(image), try Self.samples(EncodedImage(reference).open().inMemory()),
                    image.bytes(of: "icc-profile-data") != nil
                )
            }
            #expect(hasProfile == (output.keepProfile || output.profile != nil))
            // Colors of sRGB lie inside P3. With libvips, a conversion and its inverse are less than a level of 8 bits
            // apart.
            let worst = zip(found, expected).map { abs(Int($0) - Int($1)) }.max() ?? .max
            #expect(worst < 257, "\(worst)")
        }
    }

    @Test func refusesWhatHasEightBits() async throws {
        let source = try await Self.deep()
        for (format, bits) in [(ImageFormat.jpeg, 16), (.webp, 16), (.gif, 16), (.avif, 16), (.png, 12), (.png, 10)] {
            let error = await #expect(throws: JobError.self) {
                try await render(source, Self.variant(50, format, bits))
            }
            #expect(error?.code == .unsupportedFormat && error?.message.hasPrefix("bitDepth: ") == true)
        }
        var variant = Self.variant(50, .png, 16)
        variant.processors = [.blackWhite]
        let error = await #expect(throws: JobError.self) { try await render(source, variant) }
        #expect(error?.message == "bitDepth: 16 bits cannot be combined with processors")
    }
}
