import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct BackgroundTests {
    static func fitting(_ color: CSSColor, as format: ImageFormat? = nil) -> Variant {
        var variant = filling(100, 100, .scaleAspectFit, as: format)
        variant.background = color
        return variant
    }

    @Test func fillsExcessAndNeedsAlphaOnlyIfTranslucent() async throws {
        let source = try await OutputTests.plain([10, 20, 30], as: .jpeg)
        let image = try await render(source, Self.fitting(CSSColor(red: 255, green: 0, blue: 0)))
        #expect(image.format == .jpeg)
        let pixels = try Pixels(image.body)
        #expect(zip(pixels[50, 3], [254, 0, 0]).allSatisfy { abs($0 - $1) <= 4 }, "\(pixels[50, 3])")
        #expect(zip(pixels[50, 50], [10, 20, 30]).allSatisfy { abs($0 - $1) <= 6 }, "\(pixels[50, 50])")

        let half = try await render(source, Self.fitting(CSSColor(red: 255, green: 0, blue: 0, alpha: 128)))
        #expect(half.format == .png)
        #expect(try Pixels(half.body)[50, 3] == [255, 0, 0, 128])
    }

    @Test func coloredBackgroundConvertsGrayToColor() async throws {
        let source = try await OutputTests.plain([77], as: .jpeg)
        let red = try await renderedPixels(source, Self.fitting(CSSColor(red: 200, green: 0, blue: 0), as: .png))
        #expect(red[50, 3] == [200, 0, 0] && red[50, 50] == [77, 77, 77])
        let grey = try await renderedPixels(source, Self.fitting(CSSColor(red: 9, green: 9, blue: 9), as: .png))
        #expect(grey[50, 3] == [9] && grey[50, 50] == [77])
    }

    @Test func flattensFormatsWithoutAlphaOntoTheBackground() async throws {
        let source = try await OutputTests.plain([200, 100, 50, 0], as: .png)
        var variant = filling(60, 40, as: .jpeg)
        variant.background = CSSColor(red: 0, green: 0, blue: 255)
        let blue = try await renderedPixels(source, variant)[20, 20]
        #expect(zip(blue, [0, 0, 254]).allSatisfy { abs($0 - $1) <= 3 }, "\(blue)")
        // Half of the color over white.
        variant.background.alpha = 128
        let half = try await renderedPixels(source, variant)[20, 20]
        #expect(zip(half, [127, 127, 255]).allSatisfy { abs($0 - $1) <= 3 }, "\(half)")
        // In formats with alpha only the excess is filled. Transparent pixels of the image stay transparent.
        #expect(try await renderedPixels(source, Self.fitting(.white, as: .png))[50, 50][3] == 0)
    }
}
