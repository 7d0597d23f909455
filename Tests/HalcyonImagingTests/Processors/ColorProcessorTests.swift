import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonImaging

/// Processors of single pixels, whose results can be computed by hand.
@Suite(.limitedParallelism) struct ColorProcessorTests {
    static let red = CSSColor(red: 255, green: 0, blue: 0)
    static let halfRed = CSSColor(red: 255, green: 0, blue: 0, alpha: 51)

    /// Returns a pixel after a processor.
    func pixel(_ pixel: [UInt8], _ processor: Processor) async throws -> [UInt8] {
        try await applied(processor, to: Bitmap(pixel, width: 3, height: 2))[1, 1]
    }

    @Test func tintIsMixedByItsOpacity() async throws {
        // 51/255 is a fifth.
        #expect(try await pixel([100, 200, 50], .tint(Self.halfRed)) == [131, 160, 40])
        #expect(try await pixel([100, 200, 50], .tint(Self.red)) == [255, 0, 0])
        #expect(try await pixel([100, 200, 50], .tint(.transparent)) == [100, 200, 50])
    }

    @Test func tintKeepsTheAlpha() async throws {
        #expect(try await pixel([100, 200, 50, 0], .tint(Self.red)) == [255, 0, 0, 0])
        #expect(try await pixel([100, 200, 50, 128], .tint(Self.halfRed)) == [131, 160, 40, 128])
    }

    @Test func grayBecomesColoredOnlyByColors() async throws {
        let grey = CSSColor(red: 50, green: 50, blue: 50)
        #expect(try await pixel([100], .tint(Self.halfRed)) == [131, 80, 80])
        #expect(try await pixel([100, 7], .tint(Self.halfRed)) == [131, 80, 80, 7])
        #expect(try await pixel([100], .tint(grey)) == [50])
        #expect(try await pixel([100], .blend(Blend(mode: .multiply, background: grey))) == [20])
        #expect(try await pixel([100], .blackWhite).count == 1)
        #expect(try await pixel([100], .colorControls(ColorControls(saturation: 2))) == [100])
    }

    @Test func overlayKeepsItsFractionOfTheImage() async throws {
        #expect(try await pixel([100, 200, 50], .overlay(.color(Self.red, fraction: 0.8))) == [131, 160, 40])
        #expect(try await pixel([100, 200, 50], .overlay(.color(Self.red, fraction: 1))) == [100, 200, 50])
        #expect(try await pixel([100, 200, 50, 9], .overlay(.color(Self.red, fraction: 0))) == [255, 0, 0, 9])
        // A fifth of a half.
        let half = CSSColor(red: 255, green: 0, blue: 0, alpha: 128)
        let mixed = try await pixel([100, 200, 50], .overlay(.color(half, fraction: 0.8)))
        #expect(mixed == [116, 180, 45])
    }

    /// Values of the formulas of Compositing and Blending 1, computed by hand for cb = 51/255 and cs = 102/255, and for
    /// cb = 204/255 and cs = 153/255.
    @Test(arguments: [
        (BlendMode.normal, UInt8(102), UInt8(153)), (.multiply, 20, 122), (.screen, 133, 235), (.overlay, 41, 214),
        (.darken, 51, 153), (.lighten, 102, 204), (.colorDodge, 85, 255), (.colorBurn, 0, 170), (.hardLight, 41, 214),
        (.softLight, 43, 209), (.difference, 51, 51), (.exclusion, 112, 112),
    ])
    func blendModesMatchCSS(_ mode: BlendMode, _ dark: UInt8, _ light: UInt8) async throws {
        func blended(_ background: UInt8, _ sample: UInt8) async throws -> UInt8 {
            let color = CSSColor(red: background, green: background, blue: background)
            return try await pixel([sample], .blend(Blend(mode: mode, background: color)))[0]
        }
        #expect(try await blended(51, 102) == dark)
        #expect(try await blended(204, 153) == light)
    }

    /// Values of the formulas of Compositing and Blending 1, section 10.2, computed by hand: the backdrop has the
    /// luminosity 0.3 · 0.8 + 0.59 · 0.4 + 0.11 · 0.2 = 0.498 and the saturation 0.6, the source 0.3 · 0.2 + 0.59 · 0.2 +
    /// 0.11 · 0.7 = 0.255 and 0.5.
    @Test(arguments: [
        // SetSat gives (0, 0, 0.6) of luminosity 0.066; adding 0.432 gives a blue of 1.032, which is clipped towards
        // the luminosity: 0.498 + (c − 0.498) · 0.502 / 0.534.
        (BlendMode.hue, SIMD3(0.435955, 0.435955, 1)),
        // (0.6, 0.2, 0) · 0.5 / 0.6 has the luminosity 0.2483…; 0.2496… is added.
        (.saturation, SIMD3(0.749667, 0.416333, 0.249667)),
        (.color, SIMD3(0.443, 0.443, 0.943)),
        // 0.243 is subtracted, and a blue of −0.043 is clipped: 0.255 + (c − 0.255) · 0.255 / 0.298.
        (.luminosity, SIMD3(0.513423, 0.171141, 0)),
    ])
    func nonSeparableModesMatchCSS(_ mode: BlendMode, _ expected: SIMD3<Double>) {
        let mixed = mode.mixing(SIMD3(0.8, 0.4, 0.2), SIMD3(0.2, 0.2, 0.7))
        for channel in 0..<3 { #expect(abs(mixed[channel] - expected[channel]) < 0.000_01, "\(mode): \(mixed)") }
    }

    @Test func blendModesStayInRange() async throws {
        for mode in BlendMode.allCases where mode.isSeparable {
            for backdrop in [0.0, 0.25, 0.5, 1] {
                for source in [0.0, 0.5, 1] {
                    let mixed = mode.mixing(backdrop, source)
                    #expect((0...1).contains(mixed), "\(mode) of \(backdrop), \(source): \(mixed)")
                }
            }
        }
    }

    @Test func blendShowsTheBackgroundThroughTheImage() async throws {
        let white = CSSColor.white
        func blend(_ opacity: Double, _ background: CSSColor) -> Processor {
            .blend(Blend(mode: .multiply, opacity: opacity, background: background))
        }
        // A quarter of the darkness of the image, and no alpha on an opaque background.
        #expect(try await pixel([100, 200, 0], blend(0.25, white)) == [216, 241, 191])
        let throughAlpha = try await pixel([100, 200, 0, 64], blend(1, white))
        #expect(zip(throughAlpha, [216, 241, 191]).allSatisfy { abs(Int($0) - $1) <= 1 } && throughAlpha.count == 3)
        // On a half-transparent background multiplication has half its effect, and opaque pixels stay opaque.
        let half = CSSColor(red: 255, green: 0, blue: 0, alpha: 128)
        #expect(try await pixel([100, 200, 40], blend(1, half)) == [100, 100, 20])
        // 0.5 of the image over a half-transparent background: 0.5 + 0.5 · 0.5.
        let both = try await pixel([100, 200, 40], blend(0.5, half))
        #expect(both.count == 4 && abs(Int(both[3]) - 191) <= 1, "\(both)")
    }

    @Test func contrastAndBrightnessAreLinearInTheEncodedSamples() async throws {
        #expect(
            try await pixel([100, 200, 10], .colorControls(ColorControls(brightness: 0.2))) == [151, 251, 61])
        #expect(
            try await pixel([100, 200, 120], .colorControls(ColorControls(contrast: 3))) == [45, 255, 105])
        #expect(try await pixel([100, 200, 10], .colorControls(ColorControls())) == [100, 200, 10])
        #expect(try await pixel([9], .colorControls(ColorControls(contrast: 0))) == [128])
    }

    @Test func saturationMovesChannelsFromTheirLuma() async throws {
        // 0.2126 · 100 + 0.7152 · 200 + 0.0722 · 50 = 167.91
        #expect(try await pixel([100, 200, 50], .colorControls(ColorControls(saturation: 0))) == [168, 168, 168])
        #expect(
            try await pixel([100, 200, 50, 77], .colorControls(ColorControls(saturation: 0.5))) == [134, 184, 109, 77])
        #expect(try await pixel([100, 200, 50], .colorControls(ColorControls(saturation: 4))) == [0, 255, 0])
    }

    @Test func exposureMultipliesLight() async throws {
        // 188 encodes half of the light of 255 (0.5029), 137 a quarter (0.2502).
        #expect(try await pixel([255, 188, 137], .colorControls(ColorControls(exposure: -1))) == [188, 137, 99])
        #expect(try await pixel([188, 137, 0], .colorControls(ColorControls(exposure: 1))) == [255, 188, 0])
        #expect(try await pixel([1, 2, 3], .colorControls(ColorControls(exposure: 10))) == [151, 207, 247])
    }

    @Test func contrastComesBeforeExposureAndSaturationBeforeBoth() async throws {
        let all = ColorControls(brightness: -0.2, contrast: 1.5, saturation: 0.5, exposure: 1)
        let parts: [ColorControls] = [
            ColorControls(saturation: 0.5), ColorControls(brightness: -0.2, contrast: 1.5), ColorControls(exposure: 1),
        ]
        let once = try await pixel([100, 200, 50], .colorControls(all))
        var stepwise: [UInt8] = [100, 200, 50]
        for part in parts { stepwise = try await pixel(stepwise, .colorControls(part)) }
        #expect(zip(once, stepwise).allSatisfy { abs(Int($0) - Int($1)) <= 2 }, "\(once) \(stepwise)")
        var backwards: [UInt8] = [100, 200, 50]
        for part in parts.reversed() { backwards = try await pixel(backwards, .colorControls(part)) }
        #expect(zip(once, backwards).contains { abs(Int($0) - Int($1)) > 10 })
    }

    @Test func blackWhiteIsGrayAndLighter() async throws {
        #expect(
            try await pixel([100, 200, 50], .blackWhite)
                == pixel([100, 200, 50], .colorControls(ColorControls(saturation: 0, exposure: 0.7))))
        let grey = try await pixel([100, 200, 50, 3], .blackWhite)
        #expect(grey[0] == grey[1] && grey[1] == grey[2] && grey[0] > 168 && grey[3] == 3)
    }
}
