import HalcyonCoding
import HalcyonModel
import Testing

/// Decoding of each processor: parameters and error messages.
@Suite struct ProcessorFieldTests {
    static func processors(_ json: String, scale: Double = 1) throws -> [Processor] {
        try read(#""screenScale":\#(scale),"processors":\#(json)"#).variant.processors
    }

    static let red = CSSColor(red: 255, green: 0, blue: 0)

    static let valid: [(json: String, processor: Processor)] = [
        (#"{"roundCorner":{"radius":8}}"#, .roundCorner(RoundCorner(radius: .pixels(16)))),
        (
            #"{"roundCorner":{"widthFraction":0.5,"corners":["topRight","topLeft"],"background":"red"}}"#,
            .roundCorner(RoundCorner(radius: .widthFraction(0.5), corners: [.topLeft, .topRight], background: red))
        ),
        (
            #"{"roundCorner":{"heightFraction":1,"radius":null,"background":"transparent"}}"#,
            .roundCorner(RoundCorner(radius: .heightFraction(1)))
        ),
        (#"{"resize":{"width":100,"height":0.4}}"#, .resize(PixelSize(width: 200, height: 2), .none)),
        (
            #"{"resize":{"width":100.5,"height":3,"mode":"aspectFill"}}"#,
            .resize(PixelSize(width: 202, height: 6), .aspectFill)
        ),
        (#"{"crop":{"width":10,"height":20}}"#, .crop(PixelSize(width: 20, height: 40), anchor: .center)),
        (
            #"{"crop":{"width":10,"height":20,"anchor":{"x":0,"y":0.3333335}}}"#,
            .crop(PixelSize(width: 20, height: 40), anchor: UnitPoint(x: 0, y: 0.333334))
        ),
        (#"{"blur":{"radius":4.25}}"#, .blur(radius: 8.5)),
        (#"{"blur":{"radius":125}}"#, .blur(radius: 250)),
        (##"{"tint":{"color":"#f008"}}"##, .tint(CSSColor(red: 255, green: 0, blue: 0, alpha: 136))),
        (#"{"overlay":{"color":"red"}}"#, .overlay(.color(red, fraction: 0.5))),
        (#"{"overlay":{"color":"red","fraction":0}}"#, .overlay(.color(red, fraction: 0))),
        (#"{"blend":{"mode":"hardLight","background":"red"}}"#, .blend(Blend(mode: .hardLight, background: red))),
        (
            #"{"blend":{"mode":"normal","opacity":0.25,"background":"red"}}"#,
            .blend(Blend(mode: .normal, opacity: 0.25, background: red))
        ),
        (#""colorControls""#, .colorControls(ColorControls())),
        (
            #"{"colorControls":{"brightness":-1,"contrast":0,"saturation":4,"exposure":10}}"#,
            .colorControls(ColorControls(brightness: -1, contrast: 0, saturation: 4, exposure: 10))
        ),
        (#""blackWhite""#, .blackWhite), (#"{"blackWhite":{}}"#, .blackWhite),
        (#"{"border":{"width":0.75}}"#, .border(Border(width: 1.5, color: .black))),
        (
            #"{"border":{"width":1,"color":"red","radius":3,"corners":["bottomLeft"]}}"#,
            .border(Border(width: 2, color: red, radius: .pixels(6), corners: [.bottomLeft]))
        ),
        (#"{"downsample":{"width":32767,"height":1}}"#, .downsample(PixelSize(width: 65534, height: 2))),
        (#""sharpen""#, .sharpen(Sharpen(radius: 0.5, amount: 1))),
        (#"{"sharpen":{"radius":10,"amount":0}}"#, .sharpen(Sharpen(radius: 10, amount: 0))),
        (#"{"pixelate":{"size":4}}"#, .pixelate(8)), (#"{"pixelate":{"size":0.1}}"#, .pixelate(2)),
        (#""blurFaces""#, .hideFaces(FaceHiding(.blur(amount: 0.15)))),
        (
            #"{"blurFaces":{"amount":0.5,"margin":1,"confidence":0.6}}"#,
            .hideFaces(FaceHiding(.blur(amount: 0.5), margin: 1, confidence: 0.6))
        ),
        (#"{"pixelateFaces":{"cells":4.0}}"#, .hideFaces(FaceHiding(.pixelate(cells: 4)))),
        (#"{"rotate":{"degrees":-90}}"#, .rotate(degrees: 270, background: .transparent)),
        (#"{"rotate":{"degrees":720,"background":"red"}}"#, .rotate(degrees: 0, background: red)),
        (#"{"rotate":{"degrees":359.9999999}}"#, .rotate(degrees: 0, background: .transparent)),
        (#""flip""#, .flip(.horizontal)), (#"{"flip":{"direction":"both"}}"#, .flip(.both)),
    ]

    @Test(arguments: valid)
    func convertsPointsToPixelsAndAddsDefaults(json: String, processor: Processor) throws {
        #expect(try Self.processors("[\(json)]", scale: 2) == [processor])
    }

    @Test func overlaysAndWatermarksAcceptAnySource() throws {
        let web = try Source("https://example.org/logo.png")
        let drawn = try Source("initials:JD")
        let processors = try Self.processors(
            #"""
            [{"overlay":{"source":"https://example.org/logo.png"}},{"overlay":{"source":{"initials":"JD"},"opacity":0.5}},
            {"watermark":{"source":"https://example.org/logo.png"}},
            {"watermark":{"source":"initials:JD","position":"top","margin":2.5,"widthFraction":0.2,"opacity":0,"tiled":true}}]
            """#, scale: 2)
        #expect(
            processors == [
                .overlay(.picture(web, opacity: 1)), .overlay(.picture(drawn, opacity: 0.5)),
                .watermark(Watermark(source: web)),
                .watermark(
                    Watermark(
                        source: drawn, position: .top, margin: 6, widthFraction: 0.2, opacity: 0, tiled: true)),
            ])
        #expect(Variant(sizing: Sizing(goal: .original), processors: processors).assets == [web, drawn])
    }

    @Test func keepsOrder() throws {
        #expect(
            try Self.processors(#"["flip","blackWhite","flip"]"#) == [
                .flip(.horizontal), .blackWhite, .flip(.horizontal),
            ])
        #expect(try Self.processors("[]") == [])
        #expect(try Self.processors("null") == [])
    }

    static let faults: [(json: String, message: String)] = [
        (#"{"blur":{"radius":1}}"#, "processors: expected an array, found an object"),
        (#"[7]"#, "processors[0]: expected a string, found a number"),
        (#"["flip",null]"#, "processors[1]: expected a string, found null"),
        (#"[{}]"#, "processors[0]: expected an object that names a processor"),
        (
            #"[{"flip":{},"blur":{"radius":1}}]"#,
            "processors[0].blur: is a second processor in the same object; expected only one"
        ),
        (#"[{"blurr":{"radius":1}}]"#, "processors[0].blurr: unknown processor; did you mean blur?"),
        (#"["Flip"]"#, "processors[0].Flip: unknown processor; did you mean flip?"),
        (#"["vignette"]"#, "processors[0].vignette: unknown processor; expected one of roundCorner, resize, "),
        (#"[{"flip":{},"flip":{}}]"#, "processors[0].flip: duplicate name"),
        (#"["blur"]"#, "processors[0].blur.radius: is missing"),
        (#"["flip","flip",{"blur":{"radius":0}}]"#, "processors[2].blur.radius: expected a number above 0"),
        (#"[{"blur":{"radius":null}}]"#, "processors[0].blur.radius: is missing"),
        (#"[{"blur":{"radius":250.5}}]"#, "processors[0].blur.radius: expected 0.0 to 250.0, found 250.5"),
        (#"[{"blur":{"raduis":2}}]"#, "processors[0].blur.raduis: unknown parameter of blur; it has radius"),
        (#"[{"blur":{"radius":2,"radius":2}}]"#, "processors[0].blur.radius: duplicate name"),
        (#"[{"blur":4}]"#, "processors[0].blur: expected an object, found a number"),
        (#"[{"blackWhite":{"a":1}}]"#, "processors[0].blackWhite.a: unknown parameter of blackWhite; it has none"),
        (#"[{"roundCorner":{}}]"#, "processors[0].roundCorner: expected one of radius, widthFraction, heightFraction"),
        (
            #"[{"roundCorner":{"radius":1,"widthFraction":0.5}}]"#,
            "processors[0].roundCorner: expected one of radius, widthFraction, heightFraction, found several"
        ),
        (#"[{"roundCorner":{"radius":-1}}]"#, "processors[0].roundCorner.radius: expected 0.0 to 65535.0, found -1.0"),
        (#"[{"roundCorner":{"widthFraction":1.5}}]"#, "processors[0].roundCorner.widthFraction: expected 0.0 to 1.0"),
        (
            #"[{"roundCorner":{"radius":1,"corners":[]}}]"#,
            "processors[0].roundCorner.corners: expected at least one corner"
        ),
        (
            #"[{"roundCorner":{"radius":1,"corners":["topLeft","topLeft"]}}]"#,
            "processors[0].roundCorner.corners[1]: duplicate corner"
        ),
        (
            #"[{"roundCorner":{"radius":1,"corners":["top"]}}]"#,
            "processors[0].roundCorner.corners[0]: expected one of topLeft, topRight, bottomLeft, bottomRight, found"
        ),
        (#"[{"resize":{"width":4}}]"#, "processors[0].resize.height: is missing"),
        (#"[{"resize":{"width":4,"height":65536}}]"#, "processors[0].resize.height: expected 0.0 to 65535.0"),
        (
            #"[{"resize":{"width":4,"height":4,"mode":"fit"}}]"#,
            "processors[0].resize.mode: expected one of none, aspectFit"
        ),
        (
            #"[{"crop":{"width":4,"height":4,"anchor":{"x":2,"y":0}}}]"#,
            "processors[0].crop.anchor.x: expected 0.0 to 1.0"
        ),
        (#"[{"tint":{}}]"#, "processors[0].tint.color: is missing"),
        (#"[{"tint":{"color":"rde"}}]"#, "processors[0].tint.color: expected a CSS color such as white"),
        (#"["overlay"]"#, "processors[0].overlay: expected either color or source"),
        (
            #"[{"overlay":{"color":"red","source":"http://h/a"}}]"#,
            "processors[0].overlay: expected either color or source"
        ),
        (
            #"[{"overlay":{"color":"red","opacity":0.5}}]"#,
            "processors[0].overlay.opacity: belongs to source, not to color"
        ),
        (
            #"[{"overlay":{"source":"http://h/a","fraction":0.5}}]"#,
            "processors[0].overlay.fraction: belongs to color, not to source"
        ),
        (#"[{"overlay":{"source":"cat"}}]"#, "processors[0].overlay.source: expected an absolute URL"),
        (#"[{"blend":{"background":"red"}}]"#, "processors[0].blend.mode: is missing"),
        (#"[{"blend":{"mode":"color-dodge","background":"red"}}]"#, "processors[0].blend.mode: expected one of normal"),
        (#"[{"blend":{"mode":"normal"}}]"#, "processors[0].blend.background: is missing"),
        (#"[{"colorControls":{"exposure":10.5}}]"#, "processors[0].colorControls.exposure: expected -10.0 to 10.0"),
        (#"[{"colorControls":{"contrast":"1"}}]"#, "processors[0].colorControls.contrast: expected a number"),
        (#"[{"border":{"color":"red"}}]"#, "processors[0].border.width: is missing"),
        (#"[{"sharpen":{"radius":0.05}}]"#, "processors[0].sharpen.radius: expected 0.1 to 10.0, found 0.05"),
        (#"[{"pixelate":{"size":0}}]"#, "processors[0].pixelate.size: expected a number above 0"),
        (#"[{"blurFaces":{"amount":0}}]"#, "processors[0].blurFaces.amount: expected 0.05 to 1.0, found 0.0"),
        (#"[{"blurFaces":{"cells":3}}]"#, "processors[0].blurFaces.cells: unknown parameter of blurFaces"),
        (#"[{"pixelateFaces":{"cells":33}}]"#, "processors[0].pixelateFaces.cells: expected"),
        (#"[{"pixelateFaces":{"margin":-0.1}}]"#, "processors[0].pixelateFaces.margin: expected 0.0 to 2.0"),
        (#"[{"watermark":{}}]"#, "processors[0].watermark.source: is missing"),
        (
            #"[{"watermark":{"source":"http://h/a","position":"scaleToFill"}}]"#,
            "processors[0].watermark.position: expected one of center, top"
        ),
        (#"[{"watermark":{"source":"http://h/a","margin":-1}}]"#, "processors[0].watermark.margin: expected 0.0 to"),
        (
            #"[{"watermark":{"source":"http://h/a","widthFraction":0}}]"#,
            "processors[0].watermark.widthFraction: expected a"
        ),
        (
            #"[{"watermark":{"source":"http://h/a","tiled":1}}]"#,
            "processors[0].watermark.tiled: expected true or false"
        ),
        (#"[{"rotate":{}}]"#, "processors[0].rotate.degrees: is missing"),
        (
            #"[{"flip":{"direction":"sideways"}}]"#,
            "processors[0].flip.direction: expected one of horizontal, vertical, both"
        ),
    ]

    @Test(arguments: faults)
    func reportsPathAndExpectedValue(json: String, message: String) throws {
        for isStrict in [true, false] {
            let failure = try #require(rejection(#""processors":\#(json)"#, by: JobDecoder(isStrict: isStrict))).failure
            #expect(failure.code == .invalidJob)
            #expect(failure.message.hasPrefix(message), "\(failure.message)")
        }
    }

    @Test func watermarkWithUnknownSchemeIsAnUnsupportedSource() throws {
        let failure = try #require(rejection(#""processors":[{"watermark":{"source":"ftp://h/a"}}]"#)).failure
        #expect(failure.code == .unsupportedSource)
        #expect(failure.message.hasPrefix("processors[0].watermark.source: no provider for ftp: URLs"))
    }

    @Test(arguments: [
        (#"{"blur":{"radius":126}}"#, "blur.radius: is more than 250 pixels"),
        (#"{"resize":{"width":40000,"height":1}}"#, "resize.width: is more than 65535 pixels"),
        (#"{"pixelate":{"size":32768}}"#, "pixelate.size: is more than 65535 pixels"),
        (#"{"border":{"width":32767.6}}"#, "border.width: is more than 65535 pixels"),
        (#"{"roundCorner":{"radius":65535}}"#, "roundCorner.radius: is more than 65535 pixels"),
        (#"{"watermark":{"source":"http://h/a","margin":65535}}"#, "watermark.margin: is more than 65535 pixels"),
    ])
    func limitsPixelsAfterScaling(json: String, message: String) throws {
        // screenScale comes last, so it is unknown when the processors are read.
        #expect(rejection(#""processors":[\#(json)]"#) == nil)
        let failure = try #require(rejection(#""processors":[\#(json)],"screenScale":2"#)).failure
        #expect(failure.message == "processors[0].\(message)")
    }

    @Test func limitsProcessorsTo32() throws {
        func list(_ count: Int) -> String {
            "[" + Array(repeating: "\"flip\"", count: count).joined(separator: ",") + "]"
        }
        #expect(try Self.processors(list(32)).count == 32)
        let failure = try #require(rejection(#""processors":\#(list(33))"#)).failure
        #expect(failure.message == "processors[32]: is one too many; at most 32 are allowed")
    }
}
