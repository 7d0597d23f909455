import TestSupport
import Testing

@testable import Vips

@Suite(.takesTurns) struct HalvingTests {
    @Test(arguments: [1, 3])
    func eachPixelOfAHalfIsTheAverageOfFour(_ bands: Int) throws {
        let pixels = (0..<6 * 4 * bands).map { UInt8(($0 * 37) % 256) }
        let half = try Image(pixels: pixels, width: 6, height: 4, bands: bands).halved()
        #expect((half.width, half.height, half.bands) == (3, 2, bands))
        func sample(_ x: Int, _ y: Int, _ band: Int) -> Int { Int(pixels[(y * 6 + x) * bands + band]) }
        var expected: [UInt8] = []
        for y in 0..<2 {
            for x in 0..<3 {
                for band in 0..<bands {
                    let sum =
                        sample(2 * x, 2 * y, band) + sample(2 * x + 1, 2 * y, band) + sample(2 * x, 2 * y + 1, band)
                        + sample(2 * x + 1, 2 * y + 1, band)
                    expected.append(UInt8((sum + 2) / 4))
                }
            }
        }
        #expect(try half.pixels() == expected)
    }

    @Test func anOddLastRowAndColumnAreAveragedWithThemselves() throws {
        let grey = try Image(pixels: [10, 20, 30, 50, 60, 70, 90, 100, 111], width: 3, height: 3, bands: 1)
        #expect(try grey.halved().pixels() == [35, 50, 95, 111])
        #expect(try Image(pixels: [1, 2, 3, 4], width: 1, height: 1, bands: 4).halved().pixels() == [1, 2, 3, 4])
    }

    @Test func coloursCountByTheirAlpha() throws {
        let pixels: [UInt8] = [200, 0, 0, 255, 0, 9, 9, 0, 100, 0, 0, 255, 0, 9, 9, 0]
        let half = try Image(pixels: pixels, width: 2, height: 2, bands: 4).halved()
        #expect(try half.pixels() == [150, 0, 0, 128])
        #expect(try Image(pixels: [7, 0, 8, 0], width: 2, height: 1, bands: 2).halved().pixels() == [0, 0])
    }

    @Test func sixteenBitsKeepThem() throws {
        let card = try EncodedImageTests.card()
        let deep = try Operation.call("colourspace", ["in": .image(card), "space": "rgb16"]).image()
        let half = try deep.halved()
        #expect(half.sampleFormat == .uint16)
        #expect(half.interpretation == .rgb16)
        let corners = try [(0, 0), (1, 0), (0, 1), (1, 1)].map { try deep.samples(x: $0.0, y: $0.1) }
        let expected = (0..<3).map { band in ((corners.reduce(0) { $0 + $1[band] } + 2) / 4).rounded(.down) }
        #expect(try half.samples(x: 0, y: 0) == expected)
    }

    @Test func samplesWithFractionsAreHalvedToo() throws {
        let card = try EncodedImageTests.card()
        let fractions = try Operation.call("linear", ["in": .image(card), "a": [0.5], "b": [0.25]]).image()
        let half = try fractions.halved()
        #expect((half.width, half.height) == ((card.width + 1) / 2, (card.height + 1) / 2))
        #expect(half.sampleFormat == .other)
        #expect(try half.averages()[2] == 38.75)
    }

    @Test func theHeaderGoesWithIt() throws {
        let card = try EncodedImageTests.card().with(header: ["orientation": .int(6)])
        let half = try card.halved()
        #expect(half.orientation == 6)
        #expect(half.interpretation == .sRGB)
    }

    @Test func aCancelledHalvingThrows() throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        let lazy = try Image(color: [1, 2, 3], width: 50, height: 50)
        let error = #expect(throws: VipsError.self) { try lazy.halved(cancellation) }
        #expect(error?.code == .cancelled)
    }
}
