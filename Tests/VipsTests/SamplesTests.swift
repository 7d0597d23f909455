import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct SamplesTests {
    @Test(arguments: [[7], [7, 128], [10, 20, 30], [10, 20, 30, 40]])
    func fillsAnImageWithAColor(_ color: [Double]) throws {
        let image = try Image(color: color, width: 50, height: 3)
        #expect((image.width, image.height, image.bands) == (50, 3, color.count))
        #expect(image.sampleFormat == .uint8)
        #expect(image.interpretation == (color.count < 3 ? .grey : .sRGB))
        #expect(image.hasAlpha == (color.count % 2 == 0))
        #expect(try image.pixels() == (0..<150).flatMap { _ in color.map { UInt8($0) } })
        #expect(try image.samples(x: 49, y: 2) == color)
        #expect(try image.averages() == color)
    }

    @Test func uniformImageAllocatesNoPixels() throws {
        let vast = try Image(color: [1, 2, 3], width: 1_000_000, height: 1_000_000)
        #expect(try vast.samples(x: 999_999, y: 500_000) == [1, 2, 3])
    }

    @Test func rejectsInvalidColorsAndSizes() {
        for color: [Double] in [[], [1, 2, 3, 4, 5]] {
            let error = #expect(throws: VipsError.self) { try Image(color: color, width: 5, height: 5) }
            #expect(error?.code == .misuse)
        }
        #expect(throws: VipsError.self) { try Image(color: [0], width: 0, height: 5) }
    }

    @Test func readsSamplesAndAverages() throws {
        let image = try EncodedImageTests.testImage()
        #expect(try image.samples(x: 13, y: 31) == [13, 31, 77])
        #expect(try image.averages() == [29.5, 19.5, 77])
        #expect(throws: VipsError.self) { try image.samples(x: 60, y: 0) }
        let cancellation = Cancellation()
        cancellation.cancel()
        let error = #expect(throws: VipsError.self) { try image.averages(cancellation) }
        #expect(error?.code == .cancelled)
    }
}
