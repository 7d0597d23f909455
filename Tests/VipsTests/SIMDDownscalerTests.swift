import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct SIMDDownscalerTests {
    /// An image of noise, so that every weight affects the result.
    static func noise(_ width: Int, _ height: Int) throws -> Image {
        var state: UInt32 = 7
        let pixels = (0..<width * height * 3).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24)
        }
        return try Image(pixels: pixels, width: width, height: height, bands: 3)
    }

    @Test(arguments: [(200, 160), (201, 101), (640, 30), (64, 63), (1000, 100), (5, 2), (3, 1)])
    func matchesReducehOfLibvips(_ width: Int, _ count: Int) throws {
        let image = try Self.noise(width, 7)
        let scale = Double(count) / Double(width)
        let narrow = try image.narrowed(by: scale)
        let reduced = try Operation.call(
            "reduceh", ["in": .image(image), "hshrink": .double(1 / scale), "kernel": "lanczos3"]
        ).image()
        #expect((narrow.width, narrow.height, narrow.bands) == (count, 7, 3))
        #expect(reduced.width == count)
        let differences = zip(try narrow.pixels(), try reduced.pixels()).map { abs(Int($0) - Int($1)) }
        // libvips uses the weights of the nearest 64th of a pixel, in 12 bits, which on noise is a few steps of 255.
        #expect(differences.max()! <= 6)
        let mean = Double(differences.reduce(0, +)) / Double(differences.count)
        #expect(mean < 1)
    }

    @Test func keepsAUniformColorUpToTheEdges() throws {
        let plain = try Image(color: [0, 128, 255], width: 91, height: 5).inMemory()
        let narrow = try plain.narrowed(by: 0.37)
        #expect(try narrow.pixels() == Array(repeatElement([0, 128, 255], count: 5 * narrow.width).joined()))
    }

    @Test func croppedOutputEqualsThatPartOfTheWhole() throws {
        let narrow = try Self.noise(300, 40).narrowed(by: 0.6)
        let part = try Operation.call(
            "extract_area", ["input": .image(narrow), "left": 31, "top": 9, "width": 50, "height": 22]
        ).image()
        let whole = try narrow.pixels()
        var expected: [UInt8] = []
        for row in 9..<31 {
            let start = (row * 180 + 31) * 3
            expected += whole[start..<start + 50 * 3]
        }
        #expect(try part.pixels() == expected)
    }

    @Test func clampsOvershoot() throws {
        let stripes = (0..<120).flatMap { [UInt8](repeating: $0 / 10 % 2 == 0 ? 0 : 255, count: 3) }
        let pixels = try Image(pixels: stripes, width: 120, height: 1, bands: 3).narrowed(by: 0.9).pixels()
        // Beside an edge, Lanczos exceeds black and white. If samples wrapped around, black would become white.
        for stripe in 0..<12 {
            #expect(abs(Int(pixels[(stripe * 9 + 4) * 3]) - (stripe % 2 == 0 ? 0 : 255)) < 24)
        }
    }

    @Test func resamplingMatchesLibvips() throws {
        let smooth = try Operation.call("gaussblur", ["in": .image(try Self.noise(160, 120)), "sigma": 2]).image()
        let image = try smooth.inMemory()
        for (across, down) in [(0.5, 0.5), (0.8, 0.75), (0.4, 1), (1, 0.4), (0.5, 2), (2, 0.5), (1.5, 1.5)] {
            let ours = try image.resampled(across: across, down: down, kernel: "lanczos3")
            let theirs = try Operation.call(
                "resize",
                ["in": .image(image), "scale": .double(across), "vscale": .double(down), "kernel": "lanczos3"]
            ).image()
            #expect((ours.width, ours.height) == (theirs.width, theirs.height))
            let greatest = zip(try ours.pixels(), try theirs.pixels()).map { abs(Int($0) - Int($1)) }.max()!
            #expect(greatest <= 2, "\(across) by \(down)")
        }
    }

    @Test func throwsWhenCancelled() throws {
        let cancellation = Cancellation()
        let narrow = try Self.noise(90, 40).narrowed(by: 0.5)
        #expect(try narrow.inMemory(cancellation).width == 45)
        cancellation.cancel()
        let error = #expect(throws: VipsError.self) { try narrow.inMemory(cancellation) }
        #expect(error?.code == .cancelled)
    }
}
