import HalcyonModel
import TestSupport
import Testing

/// The geometry of detections.
@Suite struct DetectionTests {
    static let wide = PixelSize(width: 400, height: 200)

    static func sizing(_ width: Double, _ height: Double, _ gravity: DetectedGravity, crop: CropRect = .whole) -> Sizing
    {
        Sizing(goal: .display(Display(width: width, height: height)), cropRect: crop, gravity: .detected(gravity))
    }

    /// The part of a source that is kept.
    static func part(
        _ boxes: [DetectedBox], of source: PixelSize = wide, _ width: Double = 100, _ height: Double = 100,
        crop: CropRect = .whole, confidence: Double = 0.5
    ) throws -> PixelRect {
        let gravity = DetectedGravity(.faces, fallback: .focalPoint(UnitPoint(x: 0, y: 0)), confidence: confidence)
        return try sizing(width, height, gravity, crop: crop).resolved(boxes, of: source).plan(for: source).sourceRect
    }

    static func box(_ x: Double, _ width: Double, y: Double = 0.4, height: Double = 0.2, confidence: Double = 0.9)
        -> DetectedBox
    {
        DetectedBox(x: x, y: y, width: width, height: height, confidence: confidence)
    }

    @Test func centersASingleFaceAsFarAsTheEdgesAllow() throws {
        #expect(try Self.part([Self.box(0.45, 0.1)]) == PixelRect(x: 100, y: 0, width: 200, height: 200))
        #expect(try Self.part([Self.box(0.05, 0.1)]).x == 0)
        #expect(try Self.part([Self.box(0.85, 0.1)]).x == 200)
        #expect(try Self.part([Self.box(0.3, 0.1)]).x == 40)
        let tall = try Self.part([Self.box(0.4, 0.2, y: 0.7, height: 0.1)], of: PixelSize(width: 200, height: 400))
        #expect(tall == PixelRect(x: 0, y: 200, width: 200, height: 200))
    }

    @Test func keepsAllFacesThatFitTogether() throws {
        let part = try Self.part([Self.box(0.2, 0.1), Self.box(0.5, 0.1)])
        #expect(part.x == 60, "their middle is at 160 of 400 pixels")
    }

    @Test func prefersLargerAndSurerFacesIfNotAllFit() throws {
        let large = Self.box(0.05, 0.2, y: 0.3, height: 0.4)
        #expect(try Self.part([Self.box(0.9, 0.08), large]).x == 0)
        #expect(try Self.part([Self.box(0.02, 0.1, confidence: 0.55), Self.box(0.85, 0.1, confidence: 0.95)]).x == 200)
        // A group outweighs a single face of the same size.
        let group = [Self.box(0.7, 0.1), Self.box(0.85, 0.1)]
        #expect(try Self.part([Self.box(0.05, 0.1)] + group).x == 200)
    }

    @Test func centersAFaceThatIsLargerThanThePart() throws {
        let part = try Self.part([Self.box(0.3, 0.6, y: 0.1, height: 0.8)], of: Self.wide, 50, 100)
        #expect(part == PixelRect(x: 190, y: 0, width: 100, height: 200))
    }

    @Test func usesTheFallbackWithoutSureDetections() throws {
        #expect(try Self.part([]).x == 0)
        #expect(try Self.part([Self.box(0.85, 0.1, confidence: 0.4)]).x == 0)
        #expect(try Self.part([Self.box(0.85, 0.1, confidence: 0.4)], confidence: 0.4).x == 200)
        for fallback in [Gravity.attention, .entropy, .center] {
            let sizing = Self.sizing(9, 9, DetectedGravity(.objects, fallback: fallback))
            #expect(try sizing.resolved([], of: Self.wide).gravity == fallback)
        }
        let fitted = Sizing(goal: .sizer(.natural), gravity: .detected(DetectedGravity(.faces)))
        #expect(try fitted.resolved([Self.box(0.1, 0.1)], of: Self.wide).gravity == .attention)
    }

    /// Without a detector, the size is unknown.
    @Test func fallbackDoesNotDependOnTheSize() throws {
        let crop = CropRect(x: 200, y: 50, width: 100, height: 100, unit: .pixels)
        let sizing = Self.sizing(9, 9, DetectedGravity(.faces, fallback: .center), crop: crop)
        let resolved = try sizing.resolved([], of: PixelSize(width: 1, height: 1))
        #expect(resolved.gravity == .center && resolved.cropRect == crop)
    }

    @Test func considersTheCropOnly() throws {
        let right = CropRect(x: 0.5, y: 0, width: 0.5, height: 1)
        // The larger face is outside of the crop, and the other is in the right quarter of the source.
        let boxes = [Self.box(0.1, 0.3, y: 0.2, height: 0.6), Self.box(0.85, 0.1)]
        let part = try Self.part(boxes, of: Self.wide, 50, 100, crop: right)
        #expect(part == PixelRect(x: 300, y: 0, width: 100, height: 200))
        #expect(try Self.part([boxes[0]], of: Self.wide, 50, 100, crop: right).x == 200, "the fallback")
        #expect(throws: JobError.self) {
            try Self.part(boxes, crop: CropRect(x: 500, y: 0, width: 9, height: 9, unit: .pixels))
        }
    }

    @Test func partIsAlwaysInsideTheSource() throws {
        var generator = SeededNumbers(seed: 7)
        for _ in 0..<3000 {
            let source = PixelSize(
                width: .random(in: 1...900, using: &generator), height: .random(in: 1...900, using: &generator))
            let boxes = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                DetectedBox(
                    x: .random(in: -0.9...1, using: &generator), y: .random(in: -0.9...1, using: &generator),
                    width: .random(in: 0.0001...1, using: &generator),
                    height: .random(in: 0.0001...1, using: &generator),
                    confidence: .random(in: 0...1, using: &generator))
            }
            let part = try Self.part(
                boxes, of: source, .random(in: 1...300, using: &generator), .random(in: 1...300, using: &generator))
            #expect(part.x >= 0 && part.x + part.width <= source.width, "\(part) of \(source), \(boxes)")
            #expect(part.y >= 0 && part.y + part.height <= source.height, "\(part) of \(source), \(boxes)")
        }
    }

    @Test func placesBoxesInTheResult() throws {
        let plan = SizingPlan(
            sourceRect: PixelRect(x: 100, y: 0, width: 200, height: 200), outputSize: PixelSize(width: 120, height: 50),
            destRect: PixelRect(x: 20, y: 0, width: 50, height: 50))
        let placed = Self.box(0.375, 0.125, y: 0.5, height: 0.25).placed(by: plan, of: Self.wide)
        // 150 to 200 of 400 pixels are 50 to 100 of the part, and 12.5 to 25 of the destination.
        #expect(abs(placed.x * 120 - 32.5) < 1e-9 && abs(placed.width * 120 - 12.5) < 1e-9)
        #expect(abs(placed.y * 50 - 25) < 1e-9 && abs(placed.height * 50 - 12.5) < 1e-9)
        let faces = DetectedFace.visible([placed], in: PixelSize(width: 120, height: 50))
        #expect(faces == [DetectedFace(PixelRect(x: 32, y: 25, width: 13, height: 13), confidence: 0.9)])
    }

    @Test func reportsFacesWhoseCenterIsVisible() {
        let size = PixelSize(width: 100, height: 100)
        let faces = DetectedFace.visible(
            [
                Self.box(-0.15, 0.2), Self.box(-0.05, 0.2, confidence: 0.66666), Self.box(0.95, 0.2),
                Self.box(0.5, 0.1, y: -1), Self.box(0.5, 0.1, confidence: 0.99),
            ], in: size)
        #expect(faces.map(\.confidence) == [0.99, 0.6667])
        #expect(faces[1].place == PixelRect(x: 0, y: 40, width: 15, height: 20))
    }

    @Test func growsByTheMarginInsideThePicture() {
        let size = PixelSize(width: 200, height: 100)
        // 40×20 pixels at (80, 40).
        let box = Self.box(0.4, 0.2)
        #expect(box.pixels(in: size) == PixelRect(x: 80, y: 40, width: 40, height: 20))
        #expect(box.pixels(in: size, margin: 0.5) == PixelRect(x: 60, y: 20, width: 80, height: 60))
        #expect(box.pixels(in: size, margin: 2) == PixelRect(x: 0, y: 0, width: 200, height: 100))
        #expect(Self.box(1.5, 0.2).pixels(in: size) == nil && Self.box(-1, 0.5).pixels(in: size) == nil)
        let tiny = Self.box(0.5, 1e-9, height: 1e-9).pixels(in: size)
        #expect(tiny?.width == 1 && tiny?.height == 1)
    }

    @Test func knowsWhatNeedsADetector() {
        func kinds(_ variant: Variant) -> Set<DetectionKind> { variant.detections }
        let filled = Self.sizing(9, 9, DetectedGravity(.objects))
        #expect(kinds(Variant(sizing: filled)) == [.objects])
        #expect(kinds(Variant(sizing: filled, findings: [.faces])) == [.objects, .faces])
        #expect(kinds(Variant(sizing: Sizing(goal: .original, gravity: filled.gravity))).isEmpty)
        for hidden in [FaceHiding(.blur(amount: 0.25)), FaceHiding(.pixelate(cells: 3))] {
            let variant = Variant(sizing: Sizing(goal: .original), before: [.hideFaces(hidden)])
            #expect(kinds(variant) == [.faces] && variant.requiresFaces)
        }
        #expect(!Variant(sizing: Self.sizing(9, 9, DetectedGravity(.faces))).requiresFaces)
    }
}
