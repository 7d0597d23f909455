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
}
