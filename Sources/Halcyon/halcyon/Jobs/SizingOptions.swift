import Arguments
import HalcyonModel
import JSON

/// The options that say what is made of a source, and so under which key it lies. docs/jobs.md explains the fields.
enum SizingOptions {
    static let job = Parameter<String?>.option(
        "job", .file, as: "FILE",
        help: "A job as JSON (- for standard input); options, and then SOURCE, stand over its fields.")

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
            "crop-rect", .rectangle, as: "X,Y,WIDTH,HEIGHT",
            help: "The part of the image used at all, in fractions of its sides: 0.5,0,0.5,1 is the right half."),
        FieldOption(
            "sizer", .sizer, as: "SIZER",
            help:
                "A rule in place of width and height: natural, aspectScaleDownByWidth=PIXELS or …Height=PIXELS."
        ),
        FieldOption(flag: "no-sizing", field: "sizeForDisplay", sets: false, help: "Keep the image's own size."),
        FieldOption(
            "interpolation-quality", .oneOf(InterpolationQuality.allCases.map(\.rawValue)), as: "QUALITY",
            help: "How pixels are interpolated."),
        FieldOption(
            "format", .oneOf(["auto"] + ImageFormat.writable.map(\.rawValue)), as: "FORMAT",
            help: "The output's format; auto keeps the kind of the source."),
        FieldOption("quality", .integer(), as: "1…100", help: "Of lossy formats."),
        FieldOption(flag: "lossless", help: "Without loss, where the format can."),
        FieldOption("effort", .integer(), as: "0…9", help: "How hard the encoder tries: fast to small."),
        FieldOption(flag: "progressive", help: "A progressive JPEG or an interlaced PNG."),
    ]

    static let all: [any AnyParameter] = fields.map(\.parameter) + [job]
}

/// A part of an image in fractions of its sides.
struct GivenRectangle: JSONWritable, Sendable {
    let x, y, width, height: Double

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("x", x)
            writer.member("y", y)
            writer.member("width", width)
            writer.member("height", height)
        }
    }
}

extension ArgumentKind<GivenRectangle> {
    static var rectangle: Self {
        ArgumentKind("four numbers such as 0.5,0,0.5,1") { text in
            let sides = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
            guard sides.count == 4, sides.allSatisfy(\.isFinite) else { return nil }
            return GivenRectangle(x: sides[0], y: sides[1], width: sides[2], height: sides[3])
        }
    }
}

/// A sizer: a word, or a word with a number.
struct GivenSizer: JSONWritable, Sendable {
    let name: String
    let limit: Double?

    func write(to writer: inout JSONWriter) {
        guard let limit else { return writer.value(name) }
        writer.object { $0.member(name, limit) }
    }
}

extension ArgumentKind<GivenSizer> {
    static var sizer: Self {
        let expectation = "natural, aspectScaleDownByWidth=PIXELS or aspectScaleDownByHeight=PIXELS"
        return ArgumentKind(expectation) { text in
            if text == "natural" { return GivenSizer(name: text, limit: nil) }
            let parts = text.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, ["aspectScaleDownByWidth", "aspectScaleDownByHeight"].contains(parts[0]),
                let limit = Double(parts[1]), limit.isFinite
            else { return nil }
            return GivenSizer(name: String(parts[0]), limit: limit)
        }
    }
}
