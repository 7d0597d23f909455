import HalcyonCoding
import HalcyonModel
import TestSupport
import Testing

/// Combinations of the sizing fields.
@Suite struct JobSizingTests {
    static func goal(_ members: String) throws -> Sizing.Goal { try read(members).variant.sizing.goal }

    @Test func widthAndHeightSelectDisplay() throws {
        #expect(try Self.goal(#""width":400,"height":300"#) == .display(Display(width: 400, height: 300)))
    }

    @Test func singleSideSelectsScaleDownSizer() throws {
        #expect(try Self.goal(#""width":400"#) == .sizer(.aspectScaleDownByWidth(400)))
        #expect(try Self.goal(#""height":300"#) == .sizer(.aspectScaleDownByHeight(300)))
    }

    @Test func singleSideIsMultipliedByScaleAndRounded() throws {
        #expect(try Self.goal(#""width":100.5,"screenScale":2"#) == .sizer(.aspectScaleDownByWidth(202)))
        #expect(try Self.goal(#""height":100.4,"screenScale":1.5"#) == .sizer(.aspectScaleDownByHeight(150)))
        #expect(try Self.goal(#""width":0.1,"screenScale":3"#) == .sizer(.aspectScaleDownByWidth(3)))
    }

    @Test func defaultsToNaturalSize() throws {
        #expect(try Self.goal("") == .sizer(.natural))
        #expect(try Self.goal(#""contentMode":"center","screenScale":2"#) == .sizer(.natural))
    }

    @Test func sizersUsePixels() throws {
        #expect(try Self.goal(#""sizer":"natural""#) == .sizer(.natural))
        #expect(
            try Self.goal(#""sizer":{"aspectScaleDownByWidth":600},"screenScale":2"#)
                == .sizer(.aspectScaleDownByWidth(600)))
        #expect(try Self.goal(#""sizer":{"aspectScaleDownByHeight":0.5}"#) == .sizer(.aspectScaleDownByHeight(0.5)))
    }

    @Test func sizeForDisplayFalseKeepsTheOriginalSize() throws {
        #expect(try Self.goal(#""sizeForDisplay":false,"width":400,"height":300"#) == .original)
        #expect(try Self.goal(#""sizeForDisplay":false,"sizer":{"aspectScaleDownByWidth":6}"#) == .original)
    }

    @Test func roundsNumbersToSixDecimals() throws {
        #expect(
            try Self.goal(#""width":100.49999996,"height":0.0000015"#)
                == .display(Display(width: 100.5, height: 0.000002)))
        #expect(try Self.goal(#""width":1e-9,"height":3"#) == .display(Display(width: 0.000001, height: 3)))
        #expect(try read(#""screenScale":1.33333333"#).variant.sizing.screenScale == 1.333333)
    }

    @Test func jobsWithEqualKeysHaveEqualPlans() throws {
        // 100.49999996 rounds to 100 and 100.5 to 101 pixels; both are 100.5 in the key.
        let jobs = try [#""width":100.49999996,"height":50"#, #""width":100.5,"height":50"#].map { try read($0) }
        #expect(jobs[0].variant.canonicalText == jobs[1].variant.canonicalText)
        let source = PixelSize(width: 640, height: 480)
        #expect(try jobs[0].variant.sizing.plan(for: source) == jobs[1].variant.sizing.plan(for: source))
    }

    @Test(arguments: [
        (#"{"x":0.5,"y":0,"width":0.5,"height":1}"#, CropRect(x: 0.5, y: 0, width: 0.5, height: 1)),
        (#"{"height":2,"width":1000,"y":0.25,"x":0}"#, CropRect(x: 0, y: 0.25, width: 1000, height: 2)),
        (#"{"x":0,"y":0,"width":1,"height":1}"#, .whole),
    ])
    func cropRectsAreFractionsAndMayExceedTheImage(json: String, rect: CropRect) throws {
        #expect(try read(#""cropRect":\#(json)"#).variant.sizing.cropRect == rect)
    }

    @Test(arguments: [
        #"{"x":0,"y":0,"width":0,"height":0}"#, #"{"x":1,"y":1,"width":0,"height":1}"#,
        #"{"x":0.1,"y":0.1,"width":0.5,"height":-0.0}"#, #"{"x":0,"y":9,"width":0,"height":7,"unit":"pixels"}"#,
    ])
    func emptyCropRectMeansNoCrop(json: String) throws {
        let variant = try read(#""cropRect":\#(json)"#).variant
        let source = PixelSize(width: 640, height: 480)
        #expect(try variant.sizing.plan(for: source) == Sizing(goal: .sizer(.natural)).plan(for: source))
        #expect(variant.canonicalText == "halcyon-variant/1\nsize=natural\n")
    }

    @Test(arguments: [PixelSize(width: 1365, height: 911), PixelSize(width: 99_991, height: 7)])
    func fractionsAndPixelsSelectTheSameCrop(image: PixelSize) throws {
        var generator = SeededNumbers(seed: 40)
        for _ in 0..<500 {
            let x = Int.random(in: 0..<image.width, using: &generator)
            let y = Int.random(in: 0..<image.height, using: &generator)
            let width = Int.random(in: 1...image.width - x, using: &generator)
            let height = Int.random(in: 1...image.height - y, using: &generator)
            let (across, down) = (Double(image.width), Double(image.height))
            let wanted = PixelRect(x: x, y: y, width: width, height: height)
            for json in [
                """
                {"x":\(Double(x) / across),"y":\(Double(y) / down),"width":\(Double(width) / across),\
                "height":\(Double(height) / down)}
                """,
                #"{"x":\#(x),"y":\#(y),"width":\#(width),"height":\#(height).0,"unit":"pixels"}"#,
            ] {
                #expect(try read(#""cropRect":\#(json)"#).variant.sizing.crop(of: image) == wanted, "\(json)")
            }
        }
    }

    @Test func pixelCropIsRoundedClippedOrRejected() throws {
        func crop(_ sides: String, _ width: Int, _ height: Int) throws -> PixelRect {
            try read(#""cropRect":{"unit":"pixels",\#(sides)}"#).variant.sizing
                .crop(of: PixelSize(width: width, height: height))
        }
        let sides = #""x":10.9,"y":19.99999,"width":100,"height":0.5"#
        #expect(try crop(sides, 640, 480) == PixelRect(x: 10, y: 20, width: 100, height: 1))
        #expect(try crop(sides, 50, 21) == PixelRect(x: 10, y: 20, width: 40, height: 1))
        for (width, height) in [(10, 480), (640, 20)] {
            let failure = #expect(throws: JobError.self) { try crop(sides, width, height) }
            #expect(failure?.code == .invalidJob)
            #expect(failure?.message == "cropRect: lies outside the image, which has \(width)×\(height) pixels")
        }
    }

    @Test(arguments: [
        (#""cropRect":{"x":0,"y":0,"width":1,"height":1,"unit":"points"}"#, "cropRect.unit: expected one of fractions"),
        (#""cropRect":{"x":0,"y":0,"width":10000001,"height":1,"unit":"pixels"}"#, "cropRect.width: expected 0.0 to"),
        (#""cropRect":{"x":1,"y":0,"width":1,"height":1}"#, "cropRect: lies outside the image"),
        (#""cropRect":{"x":-0.1,"y":0,"width":1,"height":1}"#, "cropRect.x: expected 0.0 to 1.0, found -0.1"),
        (#""cropRect":{"x":0,"y":0,"width":1001,"height":1}"#, "cropRect.width: expected 0.0 to 1000.0"),
        (#""cropRect":{"x":0,"y":0,"width":1}"#, "cropRect: expected x, y, width and height"),
        (#""cropRect":{"x":0,"y":0,"width":1,"height":1,"z":1}"#, "cropRect.z: unknown member of a rectangle"),
        (#""cropRect":{"x":0,"x":0,"y":0,"width":1,"height":1}"#, "cropRect.x: duplicate name"),
        (#""cropRect":[0,0,1,1]"#, "cropRect: expected an object, found an array"),
        (#""sizer":{}"#, "sizer: expected an object that names a sizer"),
        (#""sizer":"half""#, "sizer: expected \"natural\", {\"aspectScaleDownByWidth\": n}"),
        (#""sizer":{"scale":2}"#, "sizer.scale: unknown sizer; expected one of natural, aspectScaleDownByWidth, "),
        (
            #""sizer":{"aspectScaleDownByWidht":2}"#,
            "sizer.aspectScaleDownByWidht: unknown sizer; did you mean aspectScaleDownByWidth?"
        ),
        (
            #""sizer":{"aspectScaleDownByWidth":1,"aspectScaleDownByHeight":1}"#,
            "sizer.aspectScaleDownByHeight: is a second sizer; expected only one"
        ),
        (#""sizer":{"aspectScaleDownByWidth":0}"#, "sizer.aspectScaleDownByWidth: expected a number above 0"),
        (#""sizer":"natural","width":4"#, "sizer: cannot be combined with width or height"),
        (#""sizer":"natural","height":4"#, "sizer: cannot be combined with width or height"),
    ])
    func rejectsInvalidSizes(members: String, message: String) throws {
        let failure = try #require(rejection(members)).failure
        #expect(failure.code == .invalidJob)
        #expect(failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test(
        arguments: [
            (#""width":65535"#, nil), (#""width":65535,"screenScale":1.00001"#, "width"),
            (#""height":20000,"screenScale":4"#, "height"), (#""width":4,"height":16384,"screenScale":4"#, "height"),
            (#""width":16383.4,"height":16383.4,"screenScale":4"#, nil),
        ] as [(String, String?)])
    func limitsSidesTo65535Pixels(members: String, field: String?) {
        #expect(rejection(members)?.failure.message == field.map { "\($0): is more than 65535 pixels" })
    }
}
