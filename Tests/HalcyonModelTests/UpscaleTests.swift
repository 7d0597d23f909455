import HalcyonModel
import TestSupport
import Testing

@Suite struct UpscaleTests {
    static let small = PixelSize(width: 100, height: 50)

    static func size(_ goal: Sizing.Goal, _ upscale: Bool?, scale: Double = 1, of source: PixelSize = small) throws
        -> [Int]
    {
        try Sizing(goal: goal, screenScale: scale, upscale: upscale).plan(for: source).outputSize.numbers
    }

    @Test func displayEnlargesUnlessUpscaleIsFalse() throws {
        let display = Sizing.Goal.display(Display(width: 400, height: 300))
        #expect(try Self.size(display, nil) == [400, 300])
        #expect(try Self.size(display, true) == [400, 300])
        // 67×50 of the source fill 4:3.
        #expect(try Self.size(display, false) == [67, 50])
        let fit = Sizing.Goal.display(Display(width: 400, height: 300, contentMode: .scaleAspectFit))
        #expect(try Self.size(fit, false) == [100, 75])
        let cropped = Sizing.Goal.display(
            Display(width: 400, height: 300, contentMode: .scaleAspectFit, scaleOptions: .fitCropsExcess))
        #expect(try Self.size(cropped, false) == [100, 50])
        let stretched = Sizing.Goal.display(Display(width: 400, height: 50, contentMode: .scaleToFill))
        #expect(try Self.size(stretched, false) == [100, 13])
    }

    @Test func shrunkDisplayRoundsExactHalvesUp() throws {
        let display = Display(width: 54, height: 65, contentMode: .scaleAspectFit)
        let sizing = Sizing(goal: .display(display), screenScale: 3, upscale: false)
        let plan = try sizing.plan(for: PixelSize(width: 17, height: 96))
        #expect(plan.outputSize.numbers == [77, 92] && plan.destRect.numbers == [30, 0, 17, 92])
    }

    @Test func screenScaleCountsAsEnlargement() throws {
        let display = Sizing.Goal.display(Display(width: 80, height: 40))
        #expect(try Self.size(display, nil, scale: 2) == [160, 80])
        #expect(try Self.size(display, false, scale: 2) == [100, 50])
        #expect(try Self.size(display, false, scale: 1) == [80, 40])
        let unscaled = Sizing.Goal.display(Display(width: 80, height: 40, contentMode: .center))
        #expect(try Self.size(unscaled, false, scale: 2) == [80, 40])
    }

    @Test func sizerEnlargesOnlyIfUpscaleIsTrue() throws {
        let goal = Sizing.Goal.sizer(.aspectScaleDownByWidth(400))
        #expect(try Self.size(goal, nil) == [100, 50])
        #expect(try Self.size(goal, false) == [100, 50])
        #expect(try Self.size(goal, true) == [400, 200])
        #expect(try Self.size(.sizer(.aspectScaleDownByHeight(25)), true) == [50, 25])
        #expect(try Self.size(.sizer(.natural), true) == [100, 50])
        #expect(try Self.size(.original, true) == [100, 50])
    }

    @Test func withoutUpscaleOnlyRoundingEnlarges() throws {
        var numbers = SeededNumbers(seed: 1)
        for _ in 0..<20_000 {
            let source = PixelSize(
                width: .random(in: 1...2000, using: &numbers), height: .random(in: 1...2000, using: &numbers))
            let display = Display(
                width: .random(in: 1...3000, using: &numbers), height: .random(in: 1...3000, using: &numbers),
                contentMode: ContentMode.allCases.randomElement(using: &numbers)!,
                scaleOptions: ScaleOptions.allCases.randomElement(using: &numbers)!)
            let sizing = Sizing(
                goal: .display(display), screenScale: .random(in: 1...4, using: &numbers), upscale: false)
            let plan = try sizing.plan(for: source)
            #expect(plan.destRect.width <= plan.sourceRect.width + 1, "\(sizing) of \(source): \(plan)")
            #expect(plan.destRect.height <= plan.sourceRect.height + 1, "\(sizing) of \(source): \(plan)")
            #expect(plan.destRect.lies(in: plan.outputSize), "\(sizing) of \(source): \(plan)")
        }
    }

    @Test func canonicalTextContainsUpscaleOnlyIfEffective() {
        func text(_ goal: Sizing.Goal, _ upscale: Bool?) -> String {
            Variant(sizing: Sizing(goal: goal, upscale: upscale)).canonicalText
        }
        let display = Sizing.Goal.display(Display(width: 4, height: 3))
        #expect(text(display, true) == text(display, nil))
        #expect(text(display, false) != text(display, nil))
        for goal in [Sizing.Goal.sizer(.aspectScaleDownByWidth(4)), .sizer(.aspectScaleDownByHeight(4))] {
            #expect(text(goal, false) == text(goal, nil))
            #expect(text(goal, true) != text(goal, nil))
        }
        for goal in [Sizing.Goal.original, .sizer(.natural), .custom(CustomExtension(name: "a"))] {
            #expect(text(goal, true) == text(goal, nil) && text(goal, false) == text(goal, nil))
        }
    }
}
