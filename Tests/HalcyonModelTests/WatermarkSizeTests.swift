import HalcyonModel
import Testing

@Suite struct WatermarkSizeTests {
    private static let mark = PixelSize(width: 1280, height: 720)

    private static func size(_ watermark: Watermark, width: Int, height: Int) -> [Int] {
        let size = watermark.size(of: mark, on: PixelSize(width: width, height: height))
        return [size.width, size.height]
    }

    private static func watermark(
        margin: Int = 0, widthFraction: Double? = nil, scale: Double = 1
    ) throws -> Watermark {
        Watermark(source: try Source("initials:A"), margin: margin, widthFraction: widthFraction, scale: scale)
    }

    /// A width of 56 pixels has a height of exactly 31.5.
    @Test func roundsExactHalvesUp() throws {
        #expect(try Self.size(Self.watermark(widthFraction: 0.5), width: 112, height: 100) == [56, 32])
        #expect(try Self.size(Self.watermark(), width: 56, height: 100) == [56, 32])
        #expect(try Self.size(Self.watermark(margin: 22, widthFraction: 0.9), width: 100, height: 100) == [56, 32])
    }

    @Test func fitsInsideTheMargins() throws {
        #expect(try Self.size(Self.watermark(scale: 0.25), width: 1000, height: 1000) == [320, 180])
        #expect(try Self.size(Self.watermark(), width: 1000, height: 36) == [64, 36])
        #expect(try Self.size(Self.watermark(margin: 10, widthFraction: 1), width: 1000, height: 56) == [64, 36])
        #expect(try Self.size(Self.watermark(margin: 1000), width: 100, height: 100) == [1, 1])
    }
}
