import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Several outputs of one source.
@Suite(.limitedParallelism) struct VariantTests {
    static let size = PixelSize(width: 1201, height: 803)

    /// The test pattern as a file with an EXIF orientation.
    static func pattern(as format: Format, orientation: Int) async throws -> [UInt8] {
        let pattern = TestPattern(size: size, part: PixelRect(size))
        return try await onRenderThread {
            let image = try pattern.image(orientation: orientation)
            guard format == .jpeg else { return try image.encoded(as: format, format == .webp ? ["Q": 98] : [:]) }
            let jpeg = try image.encoded(as: .jpeg, ["Q": 96, "subsample-mode": "off"], keeping: [])
            return withEXIF(jpeg, orientation: UInt8(orientation))
        }
    }

    static func variants() -> [Variant] {
        var crop = filling(150, 200)
        crop.sizing.cropRect = CropRect(x: 0.25, y: 0.5, width: 0.5, height: 0.5)
        var nearest = filling(61, 40, .scaleToFill)
        nearest.interpolationQuality = .none
        return [
            filling(600, 400), filling(300, 300, .scaleAspectFit), filling(75, 50), crop, filling(9, 6), nearest,
            filling(200, 100, .bottomRight),
            Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png)),
        ]
    }

    @Test(arguments: [(Format.jpeg, 1), (.jpeg, 6), (.jpeg, 7), (.png, 1), (.webp, 1), (.tiff, 1)])
    func eachOutputShowsItsPartOfTheSource(_ format: Format, _ orientation: Int) async throws {
        let source = try await Self.pattern(as: format, orientation: orientation)
        let variants = Self.variants()
        let rendering = try await render(source, variants)
        #expect(rendering.images.count == variants.count && rendering.sourceSize == Self.size)
        for (variant, image) in zip(variants, rendering.images) {
            let plan = try variant.sizing.plan(for: Self.size)
            #expect(image.size == plan.outputSize)
            let pixels = try Pixels(image.body)
            let whole = SizingPlan(
                sourceRect: plan.sourceRect, outputSize: plan.outputSize, destRect: plan.destRect)
            for (x, y) in plan.samplePositions {
                // The ramps of the pattern cover the whole source, so colors follow from positions in the source.
                let column = (Double(x - whole.destRect.x) + 0.5) / Double(whole.destRect.width)
                let row = (Double(y - whole.destRect.y) + 0.5) / Double(whole.destRect.height)
                let red =
                    255 * (Double(plan.sourceRect.x) + column * Double(plan.sourceRect.width)) / Double(Self.size.width)
                let green =
                    255 * (Double(plan.sourceRect.y) + row * Double(plan.sourceRect.height)) / Double(Self.size.height)
                let half = 128.0 / Double(min(whole.destRect.width, whole.destRect.height)) + 5
                let pixel = pixels[x, y]
                #expect(abs(Double(pixel[0]) - red) <= half, "\(plan) at \(x),\(y) of a \(format)")
                #expect(abs(Double(pixel[1]) - green) <= half, "\(plan) at \(x),\(y) of a \(format)")
            }
        }
    }

    @Test(arguments: [Format.jpeg, .png, .webp, .tiff, .gif])
    func outputBytesDoNotDependOnOtherOutputs(_ format: Format) async throws {
        let source = try await Self.pattern(as: format, orientation: 1)
        let qualities = InterpolationQuality.allCases.map { quality in
            // Exactly half, so that decoders can shrink to the final size.
            var variant = filling(600, 401, .scaleToFill)
            variant.interpolationQuality = quality
            return variant
        }
        var focus = filling(80, 80)
        focus.sizing.gravity = .attention
        let variants = Self.variants() + qualities + [focus]
        let together = try await render(source, variants)
        for (index, variant) in variants.enumerated() {
            let alone = try await render(source, variant)
            #expect(alone.sha256 == together.images[index].sha256, "\(variant) of a \(format)")
        }
    }

    @Test func distinguishesOutputsOfTheSameSize() async throws {
        let source = try await Self.pattern(as: .png, orientation: 1)
        var crop = filling(90, 60)
        crop.sizing.cropRect = CropRect(x: 0.5, y: 0, width: 0.5, height: 0.5)
        var linear = filling(90, 60)
        linear.interpolationQuality = .low
        var tiff = filling(90, 60)
        tiff.output.format = .tiff
        let variants = [filling(90, 60), tiff, crop, filling(90, 60), linear, tiff]
        let images = try await render(source, variants).images.map { try Pixels($0.body).bytes }
        #expect(images[0] == images[1] && images[0] == images[3] && images[0] == images[5])
        for (index, variant) in [(2, crop), (4, linear)] {
            #expect(images[index] != images[0])
            #expect(
                try await render(source, [variant, filling(9, 6)]).images.map { try Pixels($0.body).bytes }[0]
                    == images[index])
        }
    }

    @Test func nearestNeighborBesideOthersUsesOnlySourcePixels() async throws {
        let pixels = (0..<64 * 64).flatMap { [UInt8](repeating: $0 % 2 == 0 ? 0 : 255, count: 3) }
        let source = try await onRenderThread {
            try Image(pixels: pixels, width: 64, height: 64, bands: 3).encoded(as: .png)
        }
        var nearest = filling(20, 20)
        nearest.interpolationQuality = .none
        let images = try await render(source, [filling(16, 16), nearest]).images
        #expect(try Pixels(images[0].body).bytes.contains { $0 > 0 && $0 < 255 })
        #expect(try Pixels(images[1].body).bytes.allSatisfy { $0 == 0 || $0 == 255 })
    }

    @Test func oneInvalidOutputFailsAll() async throws {
        let source = try await Self.pattern(as: .jpeg, orientation: 1)
        await #expect(throws: JobError.self) {
            try await render(
                source, [filling(30, 20), filling(300, 200)], limits: ImageLimits(outputPixels: 10_000))
        }
        // The decoded image in memory counts. A single output is rendered in one pass.
        let tight = ImageLimits(decodedBytes: 4_000_000)
        #expect(try await render(source, filling(601, 401), limits: tight).size.width == 601)
        await #expect(throws: JobError.self) {
            try await render(source, [filling(601, 401), filling(602, 402)], limits: tight)
        }
    }
}
