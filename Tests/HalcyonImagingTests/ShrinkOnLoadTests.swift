import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct ShrinkOnLoadTests {
    /// Sizes and crops that do not divide evenly, in every orientation: each pixel of the output must show its position
    /// in the source to within half an output pixel.
    @Test(arguments: 1...8)
    func mapsPositionsInEveryOrientationAtAnySize(_ orientation: Int) async throws {
        var generator = SeededNumbers(seed: UInt64(orientation))
        for round in 0..<24 {
            let size = PixelSize(
                width: .random(in: 301...700, using: &generator), height: .random(in: 301...700, using: &generator))
            let crop = CropRect(
                x: .random(in: 0...0.4, using: &generator), y: .random(in: 0...0.4, using: &generator),
                width: .random(in: 0.3...0.6, using: &generator), height: .random(in: 0.3...0.6, using: &generator))
            let display = Display(
                width: .random(in: 11...55, using: &generator).rounded(),
                height: .random(in: 11...55, using: &generator).rounded(),
                contentMode: [.scaleToFill, .scaleAspectFill, .scaleAspectFit][round % 3])
            let variant = Variant(
                sizing: Sizing(goal: .display(display), cropRect: round % 4 == 0 ? .whole : crop),
                output: OutputOptions(format: .png))
            let plan = try variant.sizing.plan(for: size)
            let pattern = TestPattern(size: size, part: plan.sourceRect)
            let jpeg = try await onRenderThread {
                try pattern.image(orientation: orientation)
                    .encoded(as: .jpeg, ["Q": 96, "subsample-mode": "off"], keeping: [])
            }
            let output = try await renderedPixels(withEXIF(jpeg, orientation: UInt8(orientation)), variant)
            #expect(PixelSize(width: output.width, height: output.height) == plan.outputSize)
            for (x, y) in plan.samplePositions {
                let (pixel, expected) = (output[x, y], plan.expected(at: x, y)!)
                let context: Comment = "round \(round), \(size), \(plan), at \(x),\(y)"
                #expect(abs(Double(pixel[0]) - expected.red) <= expected.half.0 + 2, context)
                #expect(abs(Double(pixel[1]) - expected.green) <= expected.half.1 + 2, context)
            }
        }
    }

    @Test func shrinksOnLoadAsFarAsTheOutputAllows() {
        func reduction(
            _ format: ImageFormat, _ part: (Int, Int), _ target: (Int, Int), _ quality: InterpolationQuality = .default
        ) -> LoadPlan.Reduction {
            let spare = min(Double(part.0) / Double(target.0), Double(part.1) / Double(target.1))
            return LoadPlan.Reduction(of: format, spare: spare, quality: quality)
        }
        #expect(reduction(.jpeg, (1600, 1200), (400, 300)) == .shrink(4))
        #expect(reduction(.jpeg, (1600, 1199), (400, 300)) == .shrink(2))
        #expect(reduction(.jpeg, (799, 600), (400, 300)) == .none)
        #expect(reduction(.jpeg, (9000, 9000), (10, 10)) == .shrink(8))
        #expect(reduction(.webp, (1600, 1200), (500, 300)) == .scale(500.0 / 1600))
        #expect(reduction(.webp, (100, 100), (100, 200)) == .none)
        #expect(reduction(.png, (1600, 1200), (400, 300)) == .none)
        #expect(reduction(.svg, (100, 100), (200, 400)) == .scale(4))
        #expect(reduction(.pdf, (100, 100), (100, 100)) == .none)
        // High quality leaves at least a factor of two.
        #expect(reduction(.jpeg, (1600, 1200), (400, 300), .high) == .shrink(2))
        #expect(reduction(.jpeg, (1600, 1200), (401, 300), .high) == .none)
        #expect(reduction(.webp, (1600, 1200), (400, 300), .high) == .scale(0.5))
        #expect(reduction(.webp, (1600, 1200), (800, 600), .high) == .none)
        #expect(reduction(.jpeg, (1600, 1200), (400, 300), .none) == .none)
    }

    @Test func nearestNeighborUsesOnlyPixelsOfTheSource() async throws {
        // Black and white columns: any average would be gray.
        let pixels = (0..<64 * 64).flatMap { [UInt8](repeating: $0 % 2 == 0 ? 0 : 255, count: 3) }
        let source = try await onRenderThread {
            try Image(pixels: pixels, width: 64, height: 64, bands: 3).encoded(as: .png)
        }
        var variant = filling(20, 20)
        variant.interpolationQuality = .none
        let output = try await renderedPixels(source, variant)
        #expect(output.bytes.allSatisfy { $0 == 0 || $0 == 255 })
        variant.interpolationQuality = .default
        #expect(try await renderedPixels(source, variant).bytes.contains { $0 > 0 && $0 < 255 })
    }

    @Test func rendersExactlyTheRequestedSize() async throws {
        var generator = SeededNumbers(seed: 3)
        for _ in 0..<400 {
            let (width, height) = (Int.random(in: 1...90, using: &generator), Int.random(in: 1...90, using: &generator))
            let size = PixelSize(width: width, height: height)
            let format = [Format.png, .jpeg, .webp].randomElement(using: &generator)!
            let source = try await onRenderThread {
                try TestPattern(size: size, part: PixelRect(size)).image().encoded(as: format)
            }
            let target = PixelSize(
                width: .random(in: 1...150, using: &generator), height: .random(in: 1...150, using: &generator))
            var variant = filling(Double(target.width), Double(target.height), .scaleToFill)
            variant.interpolationQuality = InterpolationQuality.allCases.randomElement(using: &generator)!
            let image = try await render(source, variant)
            #expect(image.size == target, "\(size) as \(format), \(variant.interpolationQuality)")
        }
    }

    @Test func resamplesSpansToExactlyTheTarget() {
        var generator = SeededNumbers(seed: 7)
        for _ in 0..<50_000 {
            let count = Int.random(in: 1...3000, using: &generator)
            let start = Double.random(in: 0..<Double(count), using: &generator)
            let end = min(Double(count) + 0.8, start + .random(in: 0.2...Double(count), using: &generator))
            let target = Int.random(in: 1...3000, using: &generator)
            let resampling = ResamplePlan(start..<end, of: count, to: target)
            #expect(resampling.start >= 0 && resampling.length >= 1)
            #expect(resampling.start + resampling.length <= count)
            #expect(Int((Double(resampling.length) * resampling.scale).rounded()) == target)
        }
    }
}
