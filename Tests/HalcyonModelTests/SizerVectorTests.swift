import HalcyonModel
import Testing

@Suite struct SizerVectorTests {
    struct Vector: Decodable {
        let id: String
        let sizer: String
        let image: [Int]
        let limit: Double?
        let target: [Int]?
        let expect: [Int]

        func size() throws -> PixelSize {
            let image = PixelSize(width: image[0], height: image[1])
            switch sizer {
            case "natural": return Sizer.natural.size(of: image)
            case "aspectScaleDownByWidth": return Sizer.aspectScaleDownByWidth(try #require(limit)).size(of: image)
            case "aspectScaleDownByHeight": return Sizer.aspectScaleDownByHeight(try #require(limit)).size(of: image)
            default:
                let mode = try #require(ResizeMode(rawValue: String(sizer.dropFirst("resize:".count))))
                let target = try #require(target)
                return mode.size(of: image, into: PixelSize(width: target[0], height: target[1]))
            }
        }
    }

    @Test func matchesPublishedVectors() throws {
        let vectors = try vectors("sizers", as: Vector.self)
        #expect(vectors.count >= 20)
        for vector in vectors {
            #expect(try vector.size().numbers == vector.expect, "\(vector.id)")
        }
    }

    @Test func roundsExactHalvesUp() {
        let wide = PixelSize(width: 1280, height: 720)
        #expect(Sizer.aspectScaleDownByWidth(56).size(of: wide).numbers == [56, 32])
        #expect(Sizer.aspectScaleDownByHeight(31.5).size(of: wide).numbers == [56, 32])
        let tall = PixelSize(width: 720, height: 1280)
        #expect(Sizer.aspectScaleDownByHeight(56).size(of: tall).numbers == [32, 56])
        let fitting = ResizeMode.aspectFit.size(of: wide, into: PixelSize(width: 56, height: 100))
        #expect(fitting.numbers == [56, 32])
        let filling = ResizeMode.aspectFill.size(of: wide, into: PixelSize(width: 56, height: 1))
        #expect(filling.numbers == [56, 32])
        // The limit itself is rounded, too.
        let large = PixelSize(width: 2294, height: 388)
        #expect(Sizer.aspectScaleDownByWidth(1669.5).size(of: large).numbers == [1670, 282])
    }
}
