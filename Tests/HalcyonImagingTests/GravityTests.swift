import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct GravityTests {
    /// A gray image with a colorful, detailed patch of 80×80 pixels at a position.
    static func patched(_ size: PixelSize, at x: Int, _ y: Int, as format: Format = .png) async throws -> [UInt8] {
        var generator = SeededNumbers(seed: 5)
        var pixels = [UInt8](repeating: 128, count: size.pixels * 3)
        for row in y..<y + 80 {
            for column in x..<x + 80 {
                let offset = (row * size.width + column) * 3
                let bright = (row / 8 + column / 8) % 2 == 0
                pixels[offset] = bright ? 255 : .random(in: 120...160, using: &generator)
                pixels[offset + 1] = bright ? .random(in: 40...90, using: &generator) : 20
                pixels[offset + 2] = 30
            }
        }
        return try await onRenderThread { [pixels] in
            try Image(pixels: pixels, width: size.width, height: size.height, bands: 3)
                .encoded(as: format, format == .jpeg ? ["Q": 95] : [:])
        }
    }

    static func square(_ gravity: Gravity, crop: CropRect = .whole) -> Variant {
        var variant = filling(100, 100)
        variant.sizing.gravity = gravity
        variant.sizing.cropRect = crop
        return variant
    }

    /// The fraction of pixels that belong to the patch.
    static func patchFraction(_ body: [UInt8]) throws -> Double {
        let pixels = try Pixels(body)
        let positions = (0..<pixels.height).flatMap { y in (0..<pixels.width).map { ($0, y) } }
        return Double(positions.count { abs(pixels[$0, $1][2] - 128) > 40 }) / Double(positions.count)
    }

    @Test(arguments: [Gravity.attention, .entropy], [Format.png, .jpeg])
    func keepsTheDetailedPatch(_ gravity: Gravity, _ format: Format) async throws {
        // A square crop has 400×400 pixels, of which the whole patch is 4 %.
        let wide = PixelSize(width: 1200, height: 400)
        for x in [30, 560, 1090] {
            let source = try await Self.patched(wide, at: x, 150, as: format)
            #expect(try Self.patchFraction(try await render(source, Self.square(gravity)).body) > 0.035, "at \(x)")
        }
        let tall = try await Self.patched(PixelSize(width: 300, height: 900), at: 110, 780, as: format)
        #expect(try Self.patchFraction(try await render(tall, Self.square(gravity)).body) > 0.06)
        #expect(try Self.patchFraction(try await render(tall, Self.square(.center)).body) == 0)
    }

    @Test func respectsTheCropAndTheOrientation() async throws {
        let source = try await Self.patched(PixelSize(width: 1200, height: 400), at: 1090, 150, as: .jpeg)
        let left = CropRect(x: 0, y: 0, width: 0.5, height: 1)
        #expect(try Self.patchFraction(try await render(source, Self.square(.attention, crop: left)).body) == 0)
        let right = CropRect(x: 0.5, y: 0, width: 0.5, height: 1)
        #expect(try Self.patchFraction(try await render(source, Self.square(.attention, crop: right)).body) > 0.035)
        for orientation in 1...8 {
            let turned = withEXIF(source, orientation: UInt8(orientation))
            let image = try await render(turned, [Self.square(.attention), Self.square(.center)])
            #expect(try Self.patchFraction(image.images[0].body) > 0.035, "orientation \(orientation)")
            #expect(try Self.patchFraction(image.images[1].body) == 0)
        }
    }

    /// Detections are positions in the source, and crops in pixels those in the picture after `before`.
    @Test func detectionsRespectCropsInPixels() async throws {
        let source = try await Self.patched(PixelSize(width: 1200, height: 400), at: 1090, 150)
        func right(_ gravity: Gravity) -> Variant {
            var variant = Self.square(gravity, crop: CropRect(x: 300, y: 0, width: 300, height: 200, unit: .pixels))
            variant.before = [.resize(PixelSize(width: 600, height: 200), .none)]
            return variant
        }
        let variants = [right(.detected(DetectedGravity(.faces, fallback: .center))), right(.center)]
        let command = DetectorTests.command("boxes", DetectorTests.boxes([DetectorTests.place]))
        try await DetectorTests.with(command) { fixture in
            let images = try await fixture.render(source, variants)
            #expect(try Self.patchFraction(images[0].body) > 0.035)
            #expect(try Self.patchFraction(images[1].body) < 0.01)
        }
        // Without a detector, the fallback applies.
        try await RenderFixture.with { fixture in
            let images = try await fixture.service.render(source, variants).images
            #expect(images[0].sha256 == images[1].sha256)
        }
    }

    @Test func centersTheFocalPointAsFarAsPossible() async throws {
        let size = PixelSize(width: 1200, height: 400)
        let pattern = TestPattern(size: size, part: PixelRect(size))
        let source = try await onRenderThread { try pattern.image().encoded(as: .png) }
        for (x, middle) in [(0.0, 200.0), (0.1, 200), (0.3, 360), (0.5, 600), (0.8, 960), (1, 1000)] {
            let point = Gravity.focalPoint(UnitPoint(x: x, y: 0.5))
            let pixels = try await renderedPixels(source, Self.square(point))
            #expect(abs(Double(pixels[50, 50][0]) - 255 * middle / 1200) < 3, "focus at \(x)")
        }
    }
}
