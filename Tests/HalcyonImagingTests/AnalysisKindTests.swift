import Foundation
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
        let colors: [([UInt8], String)] = [
            ([200, 100, 50], "#c86432"), ([77], "#4d4d4d"), ([9, 9, 9, 0], "#ffffff"),
        ]
        for (pixel, color) in colors {
            let source = try await OutputTests.plain(pixel, as: .png)
            variant.findings = []
            #expect(try await render(source, variant).blurhash == nil)
            #expect(try await render(source, variant).dominantColor == nil)
            variant.findings = [.blurhash, .dominantColor]
            let image = try await render(source, variant)
            #expect(image.dominantColor == color)
            #expect(image.blurhash?.utf8.count == 28)
        }
    }

    /// The expected texts are those of the Python package `thumbhash-python` 1.0.1 for the same pixels, which is
    /// independent of this implementation. Where a factor is 0, rounding errors make it 7 or 8 there.
    @Test(arguments: [
        ("XRgODZpwd4eBiIiHiHiIh3iACPeI", 32, 24, 0), ("2qUGNQZ4eIl0iYg4CIeniIdwiAd3", 24, 32, 1),
        ("IAiGE4gWsJiweIuwsAv6WCFUYJiCSlk=", 40, 24, 2), ("XIkJWaiHh4iAiIh4h38HiIc=", 100, 3, 3),
        ("AAiCAwAAAAAAAAAAAAAAAAAAAAAAAAA=", 5, 9, 4), ("HcsCBYB5", 60, 40, 5), ("hecJJwQI", 1, 1, 6),
    ])
    func thumbHashesMatchThePythonPackage(_ text: String, _ width: Int, _ height: Int, _ kind: Int) throws {
        let pixels = Self.pixels(width, height) { x, y in
            switch kind {
            case 0: [x * 8, y * 10, (x + y) * 4, 255]
            case 1: [(x / 8 + y / 8) % 2 * 255, 40, 200 - y * 3, 255]
            case 2: [x * 6, y * 10, 128, (x * y) % 256]
            case 3: [x * 2, 255 - x * 2, y * 80, 255]
            case 4: [7, 8, 9, 0]
            case 5: [200, 100, 50, 255]
            default: [10, 20, 30, 255]
            }
        }
        let expected = Array(try #require(Data(base64Encoded: text)))
        let found = ThumbHash.bytes(of: pixels, width: width, height: height, bands: 4)
        // The constants of a plain image are followed by rounding errors in the package.
        let constants = kind > 4 ? 5 : expected[2] & 0x80 == 0 ? 5 : 6
        #expect(found.prefix(constants) == expected.prefix(constants))
        guard kind < 5 else { return }
        #expect(found.count == expected.count)
        func nibbles(_ bytes: [UInt8]) -> [Int] { bytes.flatMap { [Int($0 & 15), Int($0 >> 4)] } }
        let middles = zip(nibbles(found), nibbles(expected)).allSatisfy { $0 == $1 || ($0, $1) == (8, 7) }
        #expect(middles, "\(found) \(expected)")
        if kind != 2, kind != 4 {
            let opaque = stride(from: 0, to: pixels.count, by: 4).flatMap { pixels[$0..<$0 + 3] }
            #expect(ThumbHash.bytes(of: opaque, width: width, height: height, bands: 3) == found)
        }
    }

    /// Prints for each picture the pHash of the Python package imagehash, computed with numpy, the colors of Pillow's
    /// quantization to 8 colors, and the pixels that were quantized.
    private static let numpy = """
        import base64, json, sys
        import numpy as np
        from PIL import Image
        found = {}
        for path in sys.argv[1:]:
            image = Image.open(path).convert("RGB")
            gray = np.asarray(image.convert("L").resize((32, 32), Image.Resampling.LANCZOS), dtype=float)
            k = np.arange(32)
            dct = np.cos(np.pi * np.outer(k, 2 * k + 1) / 64)
            low = (dct @ gray @ dct.T)[:8, :8]
            bits = "".join("1" if bit else "0" for bit in (low > np.median(low)).flatten())
            small = image.copy()
            small.thumbnail((64, 64))
            palette = small.quantize(8, method=Image.Quantize.MEDIANCUT)
            colors = [(count, palette.getpalette()[3 * index:3 * index + 3]) for count, index in palette.getcolors()]
            found[path] = {
                "phash": f"{int(bits, 2):016x}", "pixels": base64.b64encode(small.tobytes()).decode(),
                "colors": [color for _, color in sorted(colors, reverse=True)],
                "shares": [count / (small.width * small.height) for count, _ in sorted(colors, reverse=True)],
            }
        print(json.dumps(found))
        """

    @Test func perceptualHashesAndPalettesAgreeWithNumpyAndPillow() async throws {
        let names = ["astronaut", "chelsea", "coffee", "hubble", "rocket"]
        let paths = names.map { "\(SampleImages.folder)/\($0).jpg" }
        let expected = try await InfoTests.python(Self.numpy, paths)
        func bits(_ text: Any?) throws -> UInt64 { try #require((text as? String).flatMap { UInt64($0, radix: 16) }) }
        var hashes: [UInt64] = []
        for path in paths {
            let reference = try #require(expected[path] as? NSDictionary)
            let source = Array(try Data(contentsOf: URL(filePath: path)))
            var variant = Variant(
                sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(240))),
                output: OutputOptions(format: .webp, quality: 50), findings: [.phash, .palette])
            let hash = try bits(try await render(source, variant).phash)
            #expect((hash ^ (try bits(reference["phash"]))).nonzeroBitCount <= 4, "\(path)")
            let facts = try await InfoTests.facts(source, InfoTests.variant([.phash, .palette]))
            #expect((hash ^ (try bits(facts["phash"]))).nonzeroBitCount <= 4, "\(path)")
            // Another format, size and quality changes few bits.
            variant.sizing.goal = .sizer(.aspectScaleDownByWidth(90))
            let small = try await render(try await render(source, variant).body, variant)
            #expect((hash ^ (try bits(small.phash))).nonzeroBitCount <= 10, "\(path)")
            hashes.append(hash)

            let pixels = Array(try #require(Data(base64Encoded: reference["pixels"] as? String ?? "")))
            let theirs = try #require(reference["colors"] as? [[Double]]).map { SIMD3($0[0], $0[1], $0[2]) }
            let ours = Palette.colors(of: pixels).map { SIMD3(Double($0.red), Double($0.green), Double($0.blue)) }
            #expect((2...Palette.mostColors).contains(ours.count) && Set(ours).count == ours.count)
            #expect(Self.error(of: pixels, ours) <= Self.error(of: pixels, theirs), "\(path)")
            // Each color of a tenth of the pixels has one of ours nearby.
            for (color, share) in zip(theirs, try #require(reference["shares"] as? [Double])) where share >= 0.1 {
                #expect(Self.distance(color, ours) <= 48, "\(path): \(color) of \(share) is not in \(ours)")
            }
            #expect((facts["palette"] as? [String])?.allSatisfy { $0.wholeMatch(of: /#[0-9a-f]{6}/) != nil } == true)
        }
        for (index, hash) in hashes.enumerated() {
            for other in hashes[..<index] { #expect((hash ^ other).nonzeroBitCount >= 18) }
        }
    }

    private static func distance(_ color: SIMD3<Double>, _ colors: [SIMD3<Double>]) -> Double {
        colors.map { (($0 - color) * ($0 - color)).sum() }.min().map { $0.squareRoot() } ?? .infinity
    }

    /// The mean squared distance of the pixels from the nearest color.
    private static func error(of pixels: [UInt8], _ colors: [SIMD3<Double>]) -> Double {
        let distances = stride(from: 0, to: pixels.count, by: 3).map {
            distance(SIMD3(samples: pixels, at: $0), colors)
        }
        return distances.reduce(0) { $0 + $1 * $1 } / Double(distances.count)
    }

    @Test func palettesAreRankedAndSmallWhereColorsAreFew() {
        let flag = Self.pixels(30, 10) { x, _ in x < 15 ? [0, 0, 255] : x < 25 ? [255, 255, 255] : [255, 0, 0] }
        #expect(Palette.colors(of: flag).map(\.hexadecimal) == ["#0000ffff", "#ffffffff", "#ff0000ff"])
        #expect(Palette.colors(of: [1, 2, 3]).count == 1)
        let noise = Self.pixels(64, 64) { x, y in [x * 4, y * 4, (x * y) % 256] }
        #expect(Palette.colors(of: noise).count == Palette.mostColors)
        #expect(Palette.colors(of: noise) == Palette.colors(of: noise))
    }
}
