import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct OperationTests {
    @Test func callsOperationsByName() throws {
        let black = try Operation.call("black", ["width": 40, "height": 30, "bands": 3]).image()
        #expect((black.width, black.height, black.bands) == (40, 30, 3))
        let lighter = try Operation.call("linear", ["in": .image(black), "a": [1], "b": [10, 20, 30], "uchar": true])
            .image()
        #expect(try lighter.pixels().prefix(3) == [10, 20, 30])
        let average = try Operation.call("avg", ["in": .image(lighter)]).double()
        #expect(average == 20)
        let joined = try Operation.call("bandjoin", ["in": .images([lighter, lighter])]).image()
        #expect(joined.bands == 6)
        let small = try Operation.call(
            "resize", ["in": .image(lighter), "scale": 0.5, "kernel": "nearest"]
        ).image()
        #expect((small.width, small.height) == (20, 15))
    }

    @Test func distinguishesMisuseFromFailures() throws {
        let black = try Operation.call("black", ["width": 4, "height": 4]).image()
        func code(_ name: String, _ arguments: [String: Value]) -> VipsError.Code? {
            do {
                _ = try Operation.call(name, arguments).image()
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code("no_such_operation", [:]) == .misuse)
        #expect(code("resize", ["in": .image(black), "no-such": 1]) == .misuse)
        #expect(code("resize", ["in": .image(black), "scale": "half"]) == .misuse)
        #expect(code("resize", ["in": .image(black), "scale": 1, "kernel": "no-such"]) == .misuse)
        #expect(code("resize", ["in": 5, "scale": 1]) == .misuse)
        #expect(code("avg", ["in": .image(black)]) == .misuse)
        #expect(code("resize", ["scale": 1]) == .failed)
        #expect(
            code("extract_area", ["input": .image(black), "left": 3, "top": 0, "width": 2, "height": 1]) == .failed)
        #expect(code("resize", ["in": .image(black), "scale": 1]) == nil)
    }

    @Test func failuresNameTheOperationAndTheReason() throws {
        let black = try Operation.call("black", ["width": 4, "height": 4]).image()
        let error = try #require(throws: VipsError.self) {
            try Operation.call("extract_area", ["input": .image(black), "left": 9, "top": 0, "width": 2, "height": 1])
        }
        #expect(error.operation == "extract_area")
        #expect(!error.message.isEmpty && !error.message.contains("\n"))
        #expect(!error.isRetriable)
    }

    @Test func readsResultsOfEveryType() throws {
        let image = try EncodedImageTests.testImage()
        let point = try Operation.call("getpoint", ["in": .image(image), "x": 2, "y": 3])
        #expect(try point.doubles("out-array") == [2, 3, 77])
        #expect(throws: VipsError.self) { try point.double("out-array") }
        let trimmed = try Operation.call(
            "find_trim",
            [
                "in": .image(
                    Operation.call(
                        "embed",
                        [
                            "in": .image(Image(color: [200, 0, 0], width: 8, height: 6)), "x": 5, "y": 4, "width": 40,
                            "height": 30,
                        ]
                    ).image()),
                "background": [0],
            ])
        #expect(
            try (trimmed.int("left"), trimmed.int("top"), trimmed.int("width"), trimmed.int("height")) == (5, 4, 8, 6))
        let turned = try Operation.call("autorot", ["in": .image(image.with(header: ["orientation": 2]))])
        #expect(try turned.bool("flip"))
        #expect(try !Operation.call("autorot", ["in": .image(image)]).bool("flip"))
        #expect(throws: VipsError.self) { try turned.bool("out") }
    }

    @Test func rendersText() throws {
        let drawn = try Operation.call("text", ["text": "Hg", "font": "DejaVu Sans 40", "dpi": 144])
        let mask = try drawn.image()
        #expect(mask.bands == 1 && mask.width > 40 && mask.height > 40)
        // Black and white pixels: neither a blank image nor the box of a missing glyph.
        let ink = try mask.averages()[0]
        #expect(ink > 30 && ink < 200)
        let other = try Operation.call("text", ["text": "Il", "font": "DejaVu Sans 40", "dpi": 144]).image()
        #expect(other.width < mask.width)
        let colored = try Operation.call(
            "text", ["text": "<span foreground='#ff0000'>Hg</span>", "font": "DejaVu Sans 40", "rgba": true]
        ).image()
        #expect(colored.bands == 4 && colored.hasAlpha)
    }
}
