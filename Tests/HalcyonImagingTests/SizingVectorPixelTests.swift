import Foundation
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// The published sizing vectors on real pixels: outputs must come from the positions in the vectors.
@Suite(.limitedParallelism) struct SizingVectorPixelTests {
    struct Vector: Decodable {
        struct Expectation: Decodable {
            let sourceRect: [Int]?
            let outputSize: [Int]?
            let destRect: [Int]?
        }
        let id: String
        let source: [Int]
        let display: [Double]
        let screenScale: Double
        let contentMode: String
        let scaleOptions: String
        let cropRect: [Double]?
        let sizeForDisplay: Bool?
        let expect: Expectation

        var variant: Variant {
            let options: ScaleOptions =
                scaleOptions == "both"
                ? .fitCropsExcessAndFillLeavesExcess
                : ScaleOptions(rawValue: scaleOptions) ?? .fitLeavesExcessAndFillCropsExcess
            let display = Display(
                width: display[0], height: display[1], contentMode: ContentMode(name: contentMode)!,
                scaleOptions: options)
            return Variant(
                sizing: Sizing(
                    goal: sizeForDisplay == false ? .original : .display(display),
                    cropRect: cropRect.map { CropRect(x: $0[0], y: $0[1], width: $0[2], height: $0[3]) } ?? .whole,
                    screenScale: screenScale),
                output: OutputOptions(format: .png))
        }

        /// The plan in the vector, not that of the code under test. nil for a rectangle that is rejected.
        var plan: SizingPlan? {
            guard let output = expect.outputSize, let to = expect.destRect else { return nil }
            let from = expect.sourceRect ?? [0, 0, source[0], source[1]]
            return SizingPlan(
                sourceRect: PixelRect(x: from[0], y: from[1], width: from[2], height: from[3]),
                outputSize: PixelSize(width: output[0], height: output[1]),
                destRect: PixelRect(x: to[0], y: to[1], width: to[2], height: to[3]))
        }
    }

    static func vectors() throws -> [Vector] {
        struct File: Decodable { let vectors: [Vector] }
        let file = try Repository.bytes("Tests/HalcyonModelTests/Vectors/sizing.json")
        return try JSONDecoder().decode(File.self, from: Data(file)).vectors
    }

    @Test func losslessImagesMatchTheVectors() async throws {
        var compared = 0
        for vector in try Self.vectors() {
            guard let plan = vector.plan else { continue }
            let pattern = TestPattern(
                size: PixelSize(width: vector.source[0], height: vector.source[1]), part: plan.sourceRect, marked: true)
            let source = try await onRenderThread { try pattern.image().encoded(as: .png, ["compression": 1]) }
            let output = try await renderedPixels(source, vector.variant)
            #expect(PixelSize(width: output.width, height: output.height) == plan.outputSize, "\(vector.id)")
            for (x, y) in plan.samplePositions {
                let (pixel, expected) = (output[x, y], plan.expected(at: x, y)!)
                #expect(abs(Double(pixel[0]) - expected.red) <= expected.half.0 + 1, "\(vector.id) red at \(x),\(y)")
                #expect(
                    abs(Double(pixel[1]) - expected.green) <= expected.half.1 + 1, "\(vector.id) green at \(x),\(y)")
                #expect(pixel[2] == 0, "\(vector.id) at \(x),\(y): pixels from outside the source rectangle")
                #expect(pixel.count == 3 || pixel[3] == 255, "\(vector.id) at \(x),\(y) is not opaque")
            }
            for x in 0..<output.width {
                for y in 0..<output.height where plan.expected(at: x, y) == nil {
                    #expect(output[x, y] == [0, 0, 0, 0], "\(vector.id): excess at \(x),\(y)")
                }
            }
            compared += 1
        }
        #expect(compared >= 45)
    }

    @Test(arguments: [Format.jpeg, .webp])
    func shrinkingOnLoadStaysWithinHalfAnOutputPixel(_ format: Format) async throws {
        for vector in try Self.vectors() {
            guard let plan = vector.plan, plan.destRect.size != plan.sourceRect.size else { continue }
            let pattern = TestPattern(
                size: PixelSize(width: vector.source[0], height: vector.source[1]), part: plan.sourceRect)
            let source = try await onRenderThread {
                try pattern.image()
                    .encoded(
                        as: format,
                        format == .jpeg ? ["Q": 95, "subsample-mode": "off"] : ["lossless": true, "effort": 0])
            }
            let output = try await renderedPixels(source, vector.variant)
            for (x, y) in plan.samplePositions {
                let (pixel, expected) = (output[x, y], plan.expected(at: x, y)!)
                let noise = 3.0
                #expect(
                    abs(Double(pixel[0]) - expected.red) <= expected.half.0 + noise, "\(vector.id) red at \(x),\(y)")
                #expect(
                    abs(Double(pixel[1]) - expected.green) <= expected.half.1 + noise, "\(vector.id) green at \(x),\(y)"
                )
            }
        }
    }
}
