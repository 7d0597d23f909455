import Formats
import HalcyonModel
import JSON
import ProgramSettings

/// The options that say what is made of which source, and so under which key it lies. docs/jobs.md explains the fields.
enum SizingOptions {
    static let job = Parameter<String?>.option(
        "job", .file, as: "FILE",
        help: """
            A job as JSON (- for standard input), perhaps with variants; options, and then SOURCE, stand over its fields, and \
            are the defaults of its variants.
            """)

    static let fields: [FieldOption] = [
        FieldOption("width", .number, as: "POINTS", help: "Width of the display; alone, the height follows."),
        FieldOption("height", .number, as: "POINTS", help: "Height of the display; alone, the width follows."),
        FieldOption("screen-scale", .number, as: "1…4", help: "Pixels a point."),
        FieldOption(
            "content-mode", .oneOf(ContentMode.allCases.map(\.rawValue) + ["fill", "contain", "cover"]), as: "MODE",
            help: "How the image is placed when width and height are given; scaleAspectFill by default."),
        FieldOption(
            "scale-options", .oneOf(ScaleOptions.allCases.map(\.rawValue)), as: "OPTIONS",
            help: "What becomes of excess when aspect ratios differ."),
        FieldOption(
            "crop-rect", .rectangle, as: "X,Y,WIDTH,HEIGHT[,pixels]",
            help:
                "The part of the image used at all, in fractions of its sides (0.5,0,0.5,1 is the right half) or in pixels."
        ),
        FieldOption(
            "sizer", .sizer, as: "SIZER",
            help:
                "A rule in place of width and height: natural, aspectScaleDownByWidth=PIXELS or …Height=PIXELS, or JSON."
        ),
        FieldOption(flag: "no-sizing", field: "sizeForDisplay", sets: false, help: "Keep the image's own size."),
        FieldOption(
            "gravity", .gravity, as: "GRAVITY",
            help:
                "What scaleAspectFill keeps when it has to cut: a word, or a point in fractions of the image such as 0.5,0.2."
        ),
        FieldOption(flag: "upscale", help: "Let a sizer, or a width or height alone, enlarge the image."),
        FieldOption(
            flag: "no-upscale", field: "upscale", sets: false,
            help: "Never enlarge: a display shrinks to what the image can fill."),
        FieldOption(
            "interpolation-quality", .oneOf(InterpolationQuality.allCases.map(\.rawValue)), as: "QUALITY",
            help: "How pixels are interpolated."),
        FieldOption(
            "background", .color, as: "COLOR",
            help:
                "What is seen where the image does not reach, and behind it in JPEG: a CSS colour such as white or #ff8800."
        ),
        FieldOption(
            repeated: "processor", field: "processors", .processor, as: "PROCESSOR",
            help:
                "A step of processing, in the order given: a name such as blackWhite, or JSON such as "
                + #"{"roundCorner": {"radius": 12}}. docs/jobs.md has them all."#),
        FieldOption(
            "format", .oneOf(["auto"] + ImageFormat.writable.map(\.rawValue)), as: "FORMAT",
            help: "The output's format; auto keeps the kind of the source."),
        FieldOption("quality", .integer(), as: "1…100", help: "Of lossy formats."),
        FieldOption(flag: "lossless", help: "Without loss, where the format can."),
        FieldOption("effort", .integer(), as: "0…9", help: "How hard the encoder tries: fast to small."),
        FieldOption(flag: "progressive", help: "A progressive JPEG or an interlaced PNG."),
        FieldOption(
            flag: "keep-metadata", field: "stripMetadata", sets: false, help: "Keep EXIF, XMP and IPTC of the source."),
        FieldOption(flag: "keep-profile", help: "Keep the source's colours and ICC profile; else it is made sRGB."),
        FieldOption("frames", .integer(), as: "N", help: "Frames kept of an animation; 1 for a still image."),
        FieldOption(
            "tolerance", .oneOf(Tolerance.allCases.map(\.rawValue)), as: "TOLERANCE",
            help: "What of a damaged source is rendered: nothing, or what there is of a truncated JPEG, PNG or GIF."),
        FieldOption(flag: "blurhash", help: "Find the image's BlurHash."),
        FieldOption(flag: "dominant-color", help: "Find the colour that most of the image has."),
        FieldOption(
            repeatedMember: "header", of: "headers", .header, as: "NAME:VALUE",
            help: "A header for the requests for the source, over http or https; may be given again."),
    ]

    static let all: [any AnyParameter] = fields.map(\.parameter) + [job]

    /// What decides a result's key: with these goes who asks for it.
    static let keyFields = fields + [JobOptions.tenant]
    static let allOfKeys: [any AnyParameter] = keyFields.map(\.parameter) + [job]
}

/// A part of an image, in fractions of its sides or in pixels.
struct GivenRectangle: JSONWritable, Sendable {
    let x, y, width, height: Double
    let isInPixels: Bool

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("x", x)
            writer.member("y", y)
            writer.member("width", width)
            writer.member("height", height)
            if isInPixels { writer.member("unit", "pixels") }
        }
    }
}

extension ValueKind<GivenRectangle> {
    static var rectangle: Self {
        ValueKind("four numbers such as 0.5,0,0.5,1, or 10,20,300,200,pixels") { text in
            let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            let isInPixels = parts.count == 5 && parts[4] == "pixels"
            let sides = (isInPixels ? parts.dropLast() : parts).map { Double($0) ?? .nan }
            guard sides.count == 4, sides.allSatisfy(\.isFinite) else { return nil }
            return GivenRectangle(x: sides[0], y: sides[1], width: sides[2], height: sides[3], isInPixels: isInPixels)
        }
    }
}

/// Which part is kept: a word, or a point.
struct GivenGravity: JSONWritable, Sendable {
    let word: String
    let point: (x: Double, y: Double)?

    func write(to writer: inout JSONWriter) {
        guard let point else { return writer.value(word) }
        writer.object { writer in
            writer.member("x", point.x)
            writer.member("y", point.y)
        }
    }
}

extension ValueKind<GivenGravity> {
    static var gravity: Self {
        let words = ["center", "attention", "entropy"]
        return ValueKind(
            "\(words.joined(separator: ", ")), or a point such as 0.5,0.2", completion: .words(words)
        ) { text in
            if words.contains(text) { return GivenGravity(word: text, point: nil) }
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
            guard parts.count == 2, parts.allSatisfy(\.isFinite) else { return nil }
            return GivenGravity(word: text, point: (parts[0], parts[1]))
        }
    }
}

extension ValueKind<String> {
    /// A colour, as CSS writes it.
    static var color: Self {
        ValueKind("a CSS colour such as white, #ff8800 or rgb(255 136 0 / 50%)") { CSSColor($0) == nil ? nil : $0 }
    }
}

extension ValueKind<GivenJSON> {
    /// A sizer: a word, a word with a number, or JSON with its parameters.
    static var sizer: Self {
        let expectation = "natural, aspectScaleDownByWidth=PIXELS, aspectScaleDownByHeight=PIXELS, or JSON"
        return ValueKind(expectation) { text in
            if text == "natural" { return GivenJSON(String(decoding: text.json, as: UTF8.self)) }
            guard text.first != "{" else { return GivenJSON(text) }
            let parts = text.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, ["aspectScaleDownByWidth", "aspectScaleDownByHeight"].contains(parts[0]),
                let limit = Double(parts[1]), limit.isFinite
            else { return nil }
            return GivenJSON(#"{"\#(parts[0])":\#(limit)}"#)
        }
    }

    /// A processor: a name, or JSON with its parameters.
    static var processor: Self {
        ValueKind(#"a name such as blackWhite, or JSON such as {"blur": {"radius": 3}}"#) { text in
            guard text.first != "{" else { return GivenJSON(text) }
            return text.isEmpty ? nil : GivenJSON(String(decoding: text.json, as: UTF8.self))
        }
    }
}
