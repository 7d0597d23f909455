import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct MatrixTests {
    @Test func mixesBands() throws {
        let pixel = try Image(pixels: [1, 2, 4], width: 1, height: 1, bands: 3)
        let matrix = try Image(matrix: [[1, 10, 100], [0, 0, 1]])
        let mixed = try Operation.call("recomb", ["in": .image(pixel), "m": .image(matrix)]).image()
        #expect(try mixed.samples(x: 0, y: 0) == [421, 4])
    }

    @Test func dividesConvolutionWeightsByTheScale() throws {
        let row = try Image(pixels: [0, 0, 80, 0, 0], width: 5, height: 1, bands: 1)
        let mask = try Image(matrix: [[1, 2, 1]], scale: 4)
        let mixed = try Operation.call(
            "conv", ["in": .image(row), "mask": .image(mask), "precision": "float"]
        ).image()
        #expect(try (0..<5).map { try mixed.samples(x: $0, y: 0)[0] } == [0, 20, 40, 20, 0])
    }

    @Test func rejectsEmptyMatricesAndUnequalRows() {
        #expect(throws: VipsError.self) { try Image(matrix: [[1, 2], [3]]) }
        #expect(throws: VipsError.self) { try Image(matrix: []) }
        #expect(throws: VipsError.self) { try Image(matrix: [[]]) }
    }

    @Test func selectsInterpolatorsByName() throws {
        let pair = try Image(pixels: [0, 100], width: 2, height: 1, bands: 1)
        func enlarged(_ interpolator: String) throws -> [UInt8] {
            try Operation.call(
                "affine",
                [
                    "in": .image(pair), "matrix": [2, 0, 0, 1], "oarea": [0, 0, 3, 1],
                    "interpolate": .string(interpolator), "extend": "copy",
                ]
            ).image().pixels()
        }
        #expect(try enlarged("nearest") == [0, 0, 100])
        #expect(try enlarged("bilinear") == [0, 50, 100])
        #expect(throws: VipsError.self) { try enlarged("no-such") }
    }
}
