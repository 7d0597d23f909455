import Formats
import HalcyonModel
import JSON
import ProgramSettings

/// The options that select the source and the output, and thereby the key of the result. See docs/jobs.md.
enum SizingOptions {
    static let job = Parameter<String?>.option(
        "job", .file, as: "FILE",
        help: """
            A JSON file with a job (- for standard input), optionally with variants. Options and SOURCE \
            override its fields and are the defaults of its variants.
            """)

    private static let source: [FieldOption] =
        [
            FieldOption(
                "preset", .text, as: "NAME",
                help: "The preset of the job, from the settings or registered with `halcyon preset put`.")
        ] + request

    /// The options for loading and reading the source.
    private static let request: [FieldOption] = [
        FieldOption(
            repeatedMember: "header", of: "headers", .header, as: "NAME:VALUE",
            help: "Add a header to the HTTP requests for the source. Repeatable."),
        FieldOption(
            "tolerance", .oneOf(Tolerance.allCases.map(\.rawValue)), as: "TOLERANCE",
            help:
                "Reject damaged sources (strict), or render what there is of a JPEG, PNG, GIF or BMP (truncated)."),
        FieldOption(
            "page", .integer(), as: "N", help: "The page of a PDF or TIFF, or the first animation frame, from 1."),
    ]

    private static let sizing: [FieldOption] = [
        FieldOption(
            "width", .number, as: "POINTS",
            help: "Display width. Without --height, the height follows the aspect ratio."),
        FieldOption(
            "height", .number, as: "POINTS",
            help: "Display height. Without --width, the width follows the aspect ratio."),
        FieldOption("screen-scale", .number, as: "1…4", help: "Pixels per point."),
        FieldOption(
            "content-mode", .oneOf(ContentMode.allCases.map(\.rawValue) + ["fill", "contain", "cover"]), as: "MODE",
            help: "How the image fills the display if width and height are given. Default: scaleAspectFill."),
        FieldOption(
            "scale-options", .oneOf(ScaleOptions.allCases.map(\.rawValue)), as: "OPTIONS",
            help: "What to do with the excess if aspect ratios differ."),
        FieldOption(
            "position", .oneOf(ContentMode.unscaled.map(\.rawValue)), as: "POSITION",
            help: "The position of an image that scaleAspectFit places in the display. Default: center."),
        FieldOption(
            "crop-rect", .rectangle, as: "X,Y,WIDTH,HEIGHT[,pixels]",
            help: "Crop the image first, in fractions of its sides (0.5,0,0.5,1 is the right half) or in pixels."),
        FieldOption(
            "trim", .trim, as: "TRIM",
            help:
                "Remove margins before sizing: true, or JSON such as "
                + #"{"tolerance": 20, "background": "white", "fuzz": 0.01}."#),
        FieldOption(
            "sizer", .sizer, as: "SIZER",
            help:
                "A rule instead of width and height: natural, aspectScaleDownByWidth=PIXELS, …ByHeight=PIXELS or JSON."
        ),
        FieldOption(
            flag: "no-sizing", field: "sizeForDisplay", sets: false, help: "Keep the size of the image."),
        FieldOption(
            "gravity", .gravity, as: "GRAVITY",
            help: "The part that scaleAspectFill retains: a word, or a point such as 0.5,0.2 in fractions."),
        FieldOption(flag: "upscale", help: "Allow a sizer, or a width or height alone, to enlarge the image."),
        FieldOption(
            flag: "no-upscale", field: "upscale", sets: false,
            help: "Never enlarge the image. Shrink the display to the size that the image can fill."),
        FieldOption(
            "interpolation-quality", .oneOf(InterpolationQuality.allCases.map(\.rawValue)), as: "QUALITY",
            help: "The interpolation filter."),
        FieldOption(flag: "linear-light", help: "Average light instead of its sRGB encoding when resizing."),
        FieldOption(
            "background", .color, as: "COLOR",
            help: "The color around and behind the image: a CSS color such as white or #ff8800."),
    ]

    /// The options for analyses of the image.
    private static let findings: [FieldOption] = [
        FieldOption(flag: "blurhash", help: "Compute the BlurHash of the output."),
        FieldOption(flag: "dominant-color", help: "Compute the dominant color of the output."),
        FieldOption(flag: "palette", help: "Compute the most important colors of the output."),
        FieldOption(flag: "thumbhash", help: "Compute the ThumbHash of the output."),
        FieldOption(flag: "phash", help: "Compute the perceptual hash (pHash) of the output."),
        FieldOption(flag: "faces", help: "Find the faces in the output, with the program of images.detector."),
    ]

    /// The options of `info`.
    static let facts =
        request + findings + [
            FieldOption(
                flag: "location", field: "info", member: "location",
                help: "Include the location where the picture was taken.")
        ]

    private static let output: [FieldOption] = [
        FieldOption(
            repeated: "before", field: "before", .processor, as: "PROCESSOR",
            help: "Apply a processor before cropping and sizing. Repeatable, in order."),
        FieldOption(
            repeated: "processor", field: "processors", .processor, as: "PROCESSOR",
            help:
                "Apply a processor: a name such as blackWhite, or JSON such as "
                + #"{"roundCorner": {"radius": 12}}. Repeatable, in order. See docs/jobs.md."#),
        FieldOption(
            "format", .oneOf(["auto", "best"] + ImageFormat.writable.map(\.rawValue)), as: "FORMAT",
            help: "The output format. auto keeps the kind of the source, best keeps the smallest of several."),
        FieldOption(
            "quality", .quality, as: "1…100|target=S",
            help:
                "The quality of lossy formats, or the similarity that the lowest quality must reach, such as target=0.98."
        ),
        FieldOption(
            "maximum-bytes", .integer(), as: "N", help: "Lower the quality until the file has at most N bytes."),
        FieldOption(flag: "allow-resize", help: "Shrink the image if no quality reaches --maximum-bytes."),
        FieldOption(flag: "lossless", help: "Encode without loss if the format supports it."),
        FieldOption(flag: "near-lossless", help: "Encode WebP without loss after a slight preprocessing."),
        FieldOption(
            "chroma-subsampling", .oneOf(["auto"] + ChromaSubsampling.allCases.map(\.rawValue)), as: "RATIO",
            help: "The resolution of colors in JPEG and AVIF: 4:4:4 (full) or 4:2:0 (half)."),
        FieldOption(
            "bit-depth", .integer(), as: "BITS",
            help: "The number of bits per sample: 16 for PNG, TIFF and JPEG XL, 12 for AVIF, or 8."),
        FieldOption(
            "quantize", .integer(), as: "COLORS", help: "Encode PNG and GIF with a palette of 2, 4, 16 or 256 colors."),
        FieldOption("effort", .integer(), as: "0…9", help: "The encoder effort, from fast (0) to small (9)."),
        FieldOption(flag: "progressive", help: "Write a progressive JPEG or an interlaced PNG."),
        FieldOption(
            flag: "keep-metadata", field: "stripMetadata", sets: false,
            help: "Keep EXIF, XMP and IPTC of the source."),
        FieldOption(
            flag: "keep-profile", help: "Keep the colors and ICC profile of the source instead of sRGB."),
        FieldOption(
            "profile", .oneOf(["srgb"] + OutputProfile.allCases.map(\.rawValue)), as: "PROFILE",
            help: "The color space of the output: srgb, or p3 with its profile."),
        FieldOption(
            "frames", .integer(), as: "N", help: "Maximum number of animation frames. 1 makes a still image."),
    ]

    static let groups = [
        FieldOptionGroup("Source", source), FieldOptionGroup("Sizing", sizing),
        FieldOptionGroup(
            "Output",
            output + findings + [
                FieldOption(flag: "info", help: "Report facts about the source as JSON instead of rendering it.")
            ]),
    ]

    static let fields = groups.fields

    /// The options that determine the key of a result, including the tenant.
    static let keyGroups = groups + [FieldOptionGroup("Cache", [JobOptions.tenant])]

    /// The options that the short help of commands shows.
    static let brief: Set = [
        "preset", "width", "height", "content-mode", "crop-rect", "gravity", "processor", "format", "quality",
    ]
    static let keyBrief = brief.union(["tenant"])
}

/// A rectangle within an image, in fractions of its sides or in pixels.
struct RectangleArgument: JSONWritable, Sendable {
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

extension ValueKind<RectangleArgument> {
    static var rectangle: Self {
        ValueKind("four numbers such as 0.5,0,0.5,1, or 10,20,300,200,pixels") { text in
            let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            let isInPixels = parts.count == 5 && parts[4] == "pixels"
            let sides = (isInPixels ? parts.dropLast() : parts).map { Double($0) ?? .nan }
            guard sides.count == 4, sides.allSatisfy(\.isFinite) else { return nil }
            return RectangleArgument(
                x: sides[0], y: sides[1], width: sides[2], height: sides[3], isInPixels: isInPixels)
        }
    }
}

/// The part of the image that cropping retains: a word or a point.
struct GravityArgument: JSONWritable, Sendable {
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

/// The quality of lossy formats: a number, or a similarity to reach.
struct QualityArgument: JSONWritable, Sendable {
    let number: Int
    let target: Double?

    func write(to writer: inout JSONWriter) {
        guard let target else { return number.write(to: &writer) }
        writer.object { $0.member("target", target) }
    }
}

extension ValueKind<QualityArgument> {
    static var quality: Self {
        ValueKind("a whole number, or a similarity such as target=0.98") { text in
            guard text.hasPrefix("target=") else { return Int(text).map { QualityArgument(number: $0, target: nil) } }
            return Double(text.dropFirst(7)).flatMap { $0.isFinite ? QualityArgument(number: 0, target: $0) : nil }
        }
    }
}

extension ValueKind<GravityArgument> {
    static var gravity: Self {
        let words = ["center", "attention", "entropy", "faces", "objects"]
        return ValueKind(
            "\(words.joined(separator: ", ")), or a point such as 0.5,0.2", completion: .words(words)
        ) { text in
            if words.contains(text) { return GravityArgument(word: text, point: nil) }
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
            guard parts.count == 2, parts.allSatisfy(\.isFinite) else { return nil }
            return GravityArgument(word: text, point: (parts[0], parts[1]))
        }
    }
}

extension ValueKind<String> {
    /// A color in CSS notation.
    static var color: Self {
        ValueKind("a CSS color such as white, #ff8800 or rgb(255 136 0 / 50%)") { CSSColor($0) == nil ? nil : $0 }
    }
}

extension ValueKind<JSONArgument> {
    /// A sizer: a name, a name with a number, or JSON with parameters.
    static var sizer: Self {
        let expectation = "natural, aspectScaleDownByWidth=PIXELS, aspectScaleDownByHeight=PIXELS, or JSON"
        return ValueKind(expectation) { text in
            if text == "natural" { return JSONArgument(String(decoding: text.json, as: UTF8.self)) }
            guard text.first != "{" else { return JSONArgument(text) }
            let parts = text.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, ["aspectScaleDownByWidth", "aspectScaleDownByHeight"].contains(parts[0]),
                let limit = Double(parts[1]), limit.isFinite
            else { return nil }
            return JSONArgument(#"{"\#(parts[0])":\#(limit)}"#)
        }
    }

    /// The detection of margins: true or false, or JSON with parameters.
    static var trim: Self {
        ValueKind(#"true, or JSON such as {"tolerance": 20}"#) { text in
            text.first == "{" || ["true", "false"].contains(text) ? JSONArgument(text) : nil
        }
    }

    /// A processor: a name, or JSON with parameters.
    static var processor: Self {
        ValueKind(#"a name such as blackWhite, or JSON such as {"blur": {"radius": 3}}"#) { text in
            guard text.first != "{" else { return JSONArgument(text) }
            return text.isEmpty ? nil : JSONArgument(String(decoding: text.json, as: UTF8.self))
        }
    }
}
