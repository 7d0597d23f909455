import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct AnalysisKindTests {
    static func pixels(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> [Int]) -> [UInt8] {
        (0..<height).flatMap { y in (0..<width).flatMap { x in pixel(x, y).map { UInt8($0) } } }
    }

    /// The expected texts are those of the Python package `blurhash` 1.1.4 for the same pixels.
    @Test func blurHashesMatchThePythonPackage() {
        let slopes = Self.pixels(32, 24) { [$0 * 8, $1 * 10, ($0 + $1) * 4] }
        #expect(
            BlurHash.text(of: slopes, width: 32, height: 24, components: (4, 3)) == "LxH27b2kwzX5mAWYjuf7gKfkfQfj")
        let board = Self.pixels(24, 32) { [($0 / 8 + $1 / 8) % 2 * 255, 40, 200 - $1 * 3] }
        #expect(
            BlurHash.text(of: board, width: 24, height: 32, components: (3, 4)) == "TjLk}LsqfQOKjvFIfTfRfQFfju2E")
        let plain = Self.pixels(60, 40) { _, _ in [200, 100, 50] }
        #expect(BlurHash.text(of: plain, width: 60, height: 40, components: (4, 3)) == "L4M|T9=dfQ=d}Xj@fQj@fQfQfQfQ")
    }

    @Test func dominantColorIsThatOfMostPixels() {
        let mostlyRed = Self.pixels(10, 10) { x, _ in x < 6 ? [200, 16, 31] : [0, 255, 16 * x] }
        #expect(DominantColor.color(of: mostlyRed) == CSSColor(red: 200, green: 16, blue: 31))
        #expect(DominantColor.color(of: [1, 2, 3]) == CSSColor(red: 1, green: 2, blue: 3))
    }

    @Test func reportsAnalysesOnRequest() async throws {
        var variant = filling(60, 40, as: .png)
        for (pixel, color) in [([200, 100, 50], "#c86432"), ([77], "#4d4d4d"), ([9, 9, 9, 0], "#ffffff")] {
            let source = try await OutputTests.plain(pixel.map { UInt8($0) }, as: .png)
            variant.findings = []
            #expect(try await render(source, variant).blurhash == nil)
            #expect(try await render(source, variant).dominantColor == nil)
            variant.findings = [.blurhash, .dominantColor]
            let image = try await render(source, variant)
            #expect(image.dominantColor == color)
            #expect(image.blurhash?.utf8.count == 6 + 2 * 11)
        }
    }
}
