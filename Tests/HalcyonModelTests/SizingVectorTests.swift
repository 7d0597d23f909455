import HalcyonModel
import TestSupport
import Testing

@Suite struct SizingVectorTests {
    struct Vector: Decodable {
        struct Expectation: Decodable {
            let sourceRect: [Int]?
            let outputSize: [Int]?
            let destRect: [Int]?
            let error: String?
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

        var sizing: Sizing? {
            guard let mode = ContentMode(name: contentMode) else { return nil }
            let options: ScaleOptions? =
                switch scaleOptions {
                case "default": .fitLeavesExcessAndFillCropsExcess
                case "both": .fitCropsExcessAndFillLeavesExcess
                default: ScaleOptions(rawValue: scaleOptions)
                }
            guard let options else { return nil }
            let display = Display(width: display[0], height: display[1], contentMode: mode, scaleOptions: options)
            return Sizing(
                goal: sizeForDisplay == false ? .original : .display(display),
                cropRect: cropRect.map { CropRect(x: $0[0], y: $0[1], width: $0[2], height: $0[3]) } ?? .whole,
                screenScale: screenScale)
        }
    }

    @Test func matchesPublishedVectors() throws {
        let vectors = try vectors("sizing", as: Vector.self)
        #expect(vectors.count >= 50)
        for vector in vectors {
            let sizing = try #require(vector.sizing, "\(vector.id)")
            let source = PixelSize(width: vector.source[0], height: vector.source[1])
            if vector.expect.error != nil {
                // The decoder rejects such a rectangle, so it never reaches the geometry.
                #expect(sizing.cropRect.x >= 1 || sizing.cropRect.y >= 1, "\(vector.id)")
                continue
            }
            let plan = try sizing.plan(for: source)
            #expect(plan.outputSize.numbers == vector.expect.outputSize, "\(vector.id) outputSize")
            #expect(plan.destRect.numbers == vector.expect.destRect, "\(vector.id) destRect")
            let expectedSource = vector.expect.sourceRect ?? PixelRect(source).numbers
            #expect(plan.sourceRect.numbers == expectedSource, "\(vector.id) sourceRect")
        }
    }

    /// Sources, displays of which a side ends in half a point, and the size of the fitted image.
    static let displaysWithHalfPoints: [([Int], [Double], [Int])] = [
        ([1600, 1200], [100.5, 1000.5], [101, 75]), ([1920, 1080], [61.5, 1000], [62, 35]),
        ([1654, 879], [1380.5, 190.5], [358, 191]),
    ]

    @Test(arguments: displaysWithHalfPoints)
    func fittingKeepsTheSideThatDeterminesTheScale(_ image: [Int], _ points: [Double], _ expected: [Int]) throws {
        for options in [ScaleOptions.fitCropsExcess, .fitLeavesExcessAndFillCropsExcess] {
            let display = Display(
                width: points[0], height: points[1], contentMode: .scaleAspectFit, scaleOptions: options)
            let plan = try Sizing(goal: .display(display)).plan(for: PixelSize(width: image[0], height: image[1]))
            #expect(plan.destRect.size.numbers == expected)
            #expect(plan.leavesExcess != options.fitCrops)
        }
    }

    @Test func fillingGrowsTheDisplayByExactHalves() throws {
        let display = Display(width: 56, height: 1, scaleOptions: .fillLeavesExcess)
        let plan = try Sizing(goal: .display(display)).plan(for: PixelSize(width: 1280, height: 720))
        #expect(plan.outputSize.numbers == [56, 32])
    }

    /// Neither side of a display with the aspect ratio of the source changes, although quotients are rounded.
    @Test func displaysOfTheSameAspectRatioAreKept() throws {
        let filled = Display(width: 46.5, height: 32.55, scaleOptions: .fillLeavesExcess)
        let wide = try Sizing(goal: .display(filled)).plan(for: PixelSize(width: 1000, height: 700))
        #expect(wide.outputSize.numbers == [47, 33])
        let fitted = Display(
            width: 1057.424356223176, height: 998.5, contentMode: .scaleAspectFit, scaleOptions: .fitCropsExcess)
        let high = try Sizing(goal: .display(fitted)).plan(for: PixelSize(width: 1974, height: 1864))
        #expect(high.outputSize.numbers == [1057, 999])
    }

    @Test func plansStayWithinSourceAndCanvas() throws {
        var numbers = SeededNumbers(seed: 2)
        for _ in 0..<20_000 {
            let source = PixelSize(
                width: .random(in: 1...3000, using: &numbers), height: .random(in: 1...3000, using: &numbers))
            let display = Display(
                width: .random(in: 0.1...2000, using: &numbers), height: .random(in: 0.1...2000, using: &numbers),
                contentMode: ContentMode.allCases.randomElement(using: &numbers)!,
                scaleOptions: ScaleOptions.allCases.randomElement(using: &numbers)!
            )
            let crop = CropRect(
                x: .random(in: 0..<1, using: &numbers), y: .random(in: 0..<1, using: &numbers),
                width: .random(in: 0.001...1.5, using: &numbers),
                height: .random(in: 0.001...1.5, using: &numbers))
            let sizing = Sizing(
                goal: .display(display), cropRect: crop, screenScale: .random(in: 1...4, using: &numbers))
            let plan = try sizing.plan(for: source)
            #expect(plan.sourceRect.lies(in: source), "\(sizing) of \(source): \(plan)")
            #expect(plan.destRect.lies(in: plan.outputSize), "\(sizing) of \(source): \(plan)")
        }
    }
}

extension PixelRect {
    var numbers: [Int] { [x, y, width, height] }

    func lies(in size: PixelSize) -> Bool {
        x >= 0 && y >= 0 && width >= 1 && height >= 1 && x + width <= size.width && y + height <= size.height
    }
}

extension PixelSize {
    var numbers: [Int] { [width, height] }
}
