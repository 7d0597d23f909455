import HalcyonModel
import TestSupport
import Testing

@Suite struct GravityTests {
    static func plan(
        _ gravity: Gravity, _ source: PixelSize, width: Double = 100, height: Double = 100, crop: CropRect = .whole,
        focus: UnitPoint? = nil
    ) throws -> SizingPlan {
        try Sizing(goal: .display(Display(width: width, height: height)), cropRect: crop, gravity: gravity)
            .plan(for: source, focus: focus)
    }

    static let wide = PixelSize(width: 400, height: 200)

    @Test(arguments: [
        (0.0, 0), (0.1, 0), (0.25, 0), (0.3, 20), (0.5, 100), (0.7, 180), (0.75, 200), (0.9, 200), (1, 200),
    ])
    func centersFocalPointWithinTheImage(x: Double, left: Int) throws {
        for y in [0, 0.5, 1] {
            let plan = try Self.plan(.focalPoint(UnitPoint(x: x, y: y)), Self.wide)
            #expect(plan.sourceRect == PixelRect(x: left, y: 0, width: 200, height: 200))
            #expect(plan.destRect == PixelRect(PixelSize(width: 100, height: 100)))
        }
        let tall = try Self.plan(.focalPoint(UnitPoint(x: 1, y: x)), PixelSize(width: 200, height: 400))
        #expect(tall.sourceRect == PixelRect(x: 0, y: left, width: 200, height: 200))
    }

    @Test func centeredFocalPointEqualsCenterGravity() throws {
        for width in 1...60 {
            for height in [1, 7, 24, 37] {
                let source = PixelSize(width: width, height: height)
                #expect(try Self.plan(.focalPoint(.center), source) == Self.plan(.center, source))
            }
        }
    }

    @Test func focalPointRefersToTheWholeImage() throws {
        let right = CropRect(x: 0.5, y: 0, width: 0.5, height: 1)
        // The crop is 200×200 from x = 200; a display of 50×100 keeps 100 of its 200 columns.
        func left(_ gravity: Gravity) throws -> Int {
            try Self.plan(gravity, Self.wide, width: 50, crop: right).sourceRect.x
        }
        #expect(try left(.center) == 250)
        #expect(try left(.focalPoint(UnitPoint(x: 0.75, y: 0.5))) == 250)
        #expect(try left(.focalPoint(UnitPoint(x: 0.8, y: 0.5))) == 270)
        // A point outside the crop selects its nearest edge. The image's center is the crop's left edge.
        #expect(try left(.focalPoint(.center)) == 200)
        #expect(try left(.focalPoint(UnitPoint(x: 0, y: 0.5))) == 200)
        #expect(try left(.focalPoint(UnitPoint(x: 1, y: 0.5))) == 300)
    }

    @Test func attentionUsesTheDetectedFocus() throws {
        #expect(try Self.plan(.attention, Self.wide, focus: UnitPoint(x: 0.3, y: 0)).sourceRect.x == 20)
        #expect(try Self.plan(.attention, Self.wide).sourceRect.x == 100)
        #expect([Gravity.attention, .entropy].map(\.needsPixels) == [true, true])
        #expect([Gravity.center, .focalPoint(.center)].map(\.needsPixels) == [false, false])
    }

    @Test func gravityAffectsOnlyCroppingModes() throws {
        let gravity = Gravity.focalPoint(UnitPoint(x: 0, y: 0))
        for mode in ContentMode.allCases {
            for options in ScaleOptions.allCases {
                let display = Display(width: 100, height: 100, contentMode: mode, scaleOptions: options)
                let plain = Sizing(goal: .display(display))
                var pointed = plain
                pointed.gravity = gravity
                #expect(
                    try pointed.isCutByGravity == (pointed.plan(for: Self.wide) != plain.plan(for: Self.wide)),
                    "\(mode) \(options)")
                let texts = [pointed, plain].map { Variant(sizing: $0).canonicalText }
                #expect((texts[0] != texts[1]) == pointed.isCutByGravity)
            }
        }
    }

    @Test func plansStayWithinTheSource() throws {
        var numbers = SeededNumbers(seed: 3)
        for _ in 0..<20_000 {
            let source = PixelSize(
                width: .random(in: 1...3000, using: &numbers), height: .random(in: 1...3000, using: &numbers))
            let crop = CropRect(
                x: .random(in: 0..<1, using: &numbers), y: .random(in: 0..<1, using: &numbers),
                width: .random(in: 0.001...1.5, using: &numbers),
                height: .random(in: 0.001...1.5, using: &numbers))
            let plan = try Self.plan(
                .focalPoint(UnitPoint(x: .random(in: 0...1, using: &numbers), y: .random(in: 0...1, using: &numbers))),
                source,
                width: .random(in: 0.1...2000, using: &numbers), height: .random(in: 0.1...2000, using: &numbers),
                crop: crop)
            #expect(plan.sourceRect.lies(in: source), "\(source) \(crop): \(plan)")
        }
    }
}
