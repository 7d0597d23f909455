import Glibc
import HalcyonCoding
import Hashing
import MalformedImages

/// The seed corpus: jobs that cover all fields, combined with small valid and malformed files of all formats.
enum Seeds {
    /// The maximum size of a file in bytes. Larger files are too slow.
    private static let longest = 16 << 10

    /// Malformed files, without slow ones that only the limits of a child process stop. The fuzzer has no child
    /// processes.
    static var malformed: [[UInt8]] {
        MalformedImage.all().filter { $0.time > .seconds(2) && !$0.isBoundByChild }.map { $0.bytes() }
            .filter { $0.count <= longest }
    }

    static func write(to folder: String) throws {
        mkdir(folder, 0o755)
        // All seeds must be valid jobs.
        for job in jobs { _ = try JobDecoder().read(Array(job.utf8), defaultID: "seed") }
        let files = try SmallPictures.all() + malformed
        // Combines each file with two jobs, because all combinations would be thousands. Each job is used.
        for (index, file) in files.enumerated() {
            for job in [jobs[index % jobs.count], jobs[(index * 7 + 3) % jobs.count]] {
                let seed = Array(job.utf8) + [0] + file
                try write(seed, "\(folder)/\(SHA256.hash(seed))")
            }
        }
        let lines = words.map { "\"\($0.replacingQuotes)\"\n" }.joined()
        try write(Array(lines.utf8), "\(folder).dict")
    }

    private static func write(_ bytes: [UInt8], _ path: String) throws {
        guard let stream = fopen(path, "w") else { fatalError("cannot write \(path): errno \(errno)") }
        defer { fclose(stream) }
        guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else { fatalError("cannot write \(path)") }
    }

    private static func job(_ fields: String) -> String { #"{"source":"https://a.example/b"\#(fields)}"# }

    private static let jobs =
        [
            "", #","width":40"#, #","height":30,"format":"webp","quality":1"#,
            #","width":40,"height":30,"contentMode":"scaleAspectFit","format":"png","progressive":true"#,
            #","width":40,"height":30,"contentMode":"scaleToFill","screenScale":3,"format":"jpeg","progressive":true"#,
            #","width":99,"height":9,"contentMode":"bottomRight","interpolationQuality":"none""#,
            #","width":9,"height":99,"contentMode":"center","interpolationQuality":"low","scaleOptions":"fillLeavesExcess""#,
            #","width":9,"height":99,"scaleOptions":"fitCropsExcessAndFillLeavesExcess","interpolationQuality":"medium""#,
            #","sizer":"natural","cropRect":{"x":0.5,"y":0.25,"width":0.001,"height":1}"#,
            #","sizer":"natural","format":"gif","keepProfile":true"#, #","sizer":"natural","format":"avif""#,
            #","sizer":"natural","format":"avif","keepProfile":true"#, #","sizer":"natural","format":"webp""#,
            #","sizer":{"aspectScaleDownByWidth":20},"format":"webp","lossless":true,"effort":0"#,
            #","width":40,"format":"jpeg","maximumBytes":600,"allowResize":true,"chromaSubsampling":"4:4:4""#,
            #","width":40,"format":"best","quality":{"target":0.9}"#,
            #","width":40,"height":30,"contentMode":"contain","background":"red","format":"png","bitDepth":16"#,
            #","width":30,"format":"avif","bitDepth":12,"effort":0"#, #","width":30,"format":"tiff","bitDepth":16"#,
            #","width":30,"format":"webp","nearLossless":true"#,
            #","width":40,"format":"png","quantize":{"colors":16,"dither":0},"maximumBytes":400"#,
            #","sizer":"natural","format":"jpeg","profile":"p3","quality":{"target":0.99},"maximumBytes":900"#,
            #","sizer":{"aspectScaleDownByHeight":20},"format":"avif","effort":0"#,
            #","sizeForDisplay":false,"cropRect":{"x":0.999,"y":0,"width":1000,"height":1000},"format":"png","effort":9"#,
            #","width":0.000001,"height":65535,"upscale":null,"variants":null,"processors":[],"gravity":"center""#,
            #","width":30,"height":9,"gravity":"attention","blurhash":true,"dominantColor":true"#,
            #","info":{"location":true},"palette":true,"thumbhash":true,"phash":true,"variants":[{},{"info":false}]"#,
            #","width":9,"height":30,"gravity":"faces","variants":[{},{"gravity":{"detect":"objects","fallback":{"x":0,"y":1},"confidence":0.3}}]"#,
            #","width":40,"faces":true,"before":["blurFaces"],"processors":[{"pixelateFaces":{"cells":4,"margin":0,"confidence":1}}]"#,
            ##","width":9,"height":30,"gravity":"entropy","background":"#ff880080","upscale":true,"page":2,"frames":2"##,
            #","width":9,"height":30,"gravity":{"x":0.3,"y":1},"keepProfile":true,"stripMetadata":false,"format":"tiff""#,
            #","width":40,"variants":[{"width":20},{"height":9,"format":"webp"},{"sizer":"natural","format":"gif"}]"#,
            #","frames":3,"processors":["blackWhite"],"variants":[{"width":20,"processors":[]},{"height":9}]"#,
            #","width":30,"processors":[{"roundCorner":{"widthFraction":0.5,"corners":["topLeft"],"background":"red"}}]"#,
            #","width":30,"processors":[{"resize":{"width":20,"height":50,"mode":"aspectFill"}},{"crop":{"width":9,"height":9,"anchor":{"x":0,"y":1}}}]"#,
            #","width":30,"processors":[{"blur":{"radius":4}},{"sharpen":{"radius":1.5,"amount":3}},{"pixelate":{"size":3}}]"#,
            ##","width":30,"processors":[{"tint":{"color":"#ff880040"}},{"overlay":{"color":"navy","fraction":0.7}},{"blend":{"mode":"colorBurn","background":"gold"}}]"##,
            ##","width":30,"processors":[{"colorControls":{"brightness":-1,"contrast":4,"saturation":0,"exposure":10}},{"border":{"width":2,"color":"#333","radius":12}}]"##,
            #","width":30,"processors":[{"rotate":{"degrees":-7.5,"background":"white"}},{"rotate":{"degrees":90}},{"flip":{"direction":"both"}},{"downsample":{"width":9,"height":9}}]"#,
            #","width":30,"processors":[{"overlay":{"source":"https://a.example/c","opacity":0.8}}]"#,
            #","width":30,"processors":[{"watermark":{"source":"initials:JD","position":"topLeft","margin":3,"widthFraction":0.5,"opacity":0.6}}]"#,
            #","width":30,"format":"avif","effort":0,"processors":[{"watermark":{"source":"https://a.example/c","tiled":true}}],"variants":[{},{"format":"png"}]"#,
            ##","width":30,"trim":{"tolerance":3,"background":"#fff","fuzz":0.1},"processors":[{"pad":{"all":3,"left":9,"fill":"mirror"}},{"mask":{"shape":"star"}}]"##,
            #","width":30,"height":40,"contentMode":"contain","position":"topLeft","linearLight":true,"processors":["normalize",{"gamma":{"gamma":0.5}},{"hue":{"degrees":-30}}]"#,
            #","width":30,"before":[{"rotate":{"degrees":30}},{"pad":{"top":2,"fill":"blur"}},"normalize"],"processors":[{"duotone":{"dark":"navy","light":"gold"}}]"#,
            #","width":60,"processors":[{"text":{"text":"ab\ncd","font":"DejaVu Sans","bold":true,"width":30,"height":20,"align":"right","outlineWidth":2,"offset":{"x":-3,"y":4}}}]"#,
            #","width":30,"processors":[{"watermark":{"source":"https://a.example/c","scale":2,"mode":"luminosity","offset":{"x":-9,"y":9}}},{"overlay":{"source":"https://a.example/c","mode":"hue"}},{"mask":{"source":"https://a.example/c"}}]"#,
        ].map(job)

    /// Dictionary entries from jobs and files, which libFuzzer inserts into inputs.
    private static let words = [
        "source", "width", "height", "screenScale", "sizer", "natural", "aspectScaleDownByWidth",
        "aspectScaleDownByHeight", "sizeForDisplay", "cropRect", "contentMode", "scaleToFill", "scaleAspectFit",
        "scaleAspectFill", "topLeft", "center", "scaleOptions", "fitCropsExcess", "fillLeavesExcess",
        "interpolationQuality", "none", "format", "jpeg", "png", "webp", "avif", "gif", "quality", "lossless", "effort",
        "progressive", "gravity", "background", "transparent", "processors", "variants", "upscale", "frames", "page",
        "stripMetadata", "keepProfile", "attention", "entropy", "blurhash", "dominantColor", "info", "location",
        "palette", "phash", "roundCorner", "resize", "faces", "objects", "detect", "fallback", "confidence",
        "blurFaces",
        "pixelateFaces", "cells",
        "stripMetadata", "keepProfile", "best", "target", "maximumBytes", "allowResize", "nearLossless",
        "chromaSubsampling", "4:4:4", "bitDepth", "quantize", "colors", "dither", "profile", "p3", "attention",
        "entropy",
        "blurhash", "dominantColor", "roundCorner", "resize",
        "crop", "anchor", "blur", "radius", "sharpen", "amount", "pixelate", "size", "tint", "color", "overlay",
        "fraction", "opacity", "blend", "mode", "colorBurn", "colorControls", "brightness", "exposure", "border",
        "rotate", "degrees", "downsample", "watermark", "position", "margin", "widthFraction", "heightFraction",
        "trim", "tolerance", "fuzz", "linearLight", "before", "pad", "mirror", "edge", "text", "font", "DejaVu Sans",
        "bold", "italic", "align", "outlineWidth", "offset", "mask", "shape", "star", "heart", "hue", "luminosity",
        "gamma", "normalize", "lower", "upper", "duotone", "dark", "light", "scale", "initials:JD", "true", "false",
        "null", "1e308", "-1", "0.000001", "65535", #"{"a":"#, "[{",
        "IHDR", "IDAT", "IEND", "PLTE", "tRNS", "iCCP", "eXIf", "acTL", "RIFF", "WEBP", "VP8 ", "VP8L", "VP8X", "ALPH",
        "ANIM", "ANMF", "EXIF", "GIF89a", "NETSCAPE2.0", "ftypavif", "meta", "iloc", "ispe", "av01", "mdat",
        "pitm", "iinf", "infe", "mime", "iref", "auxl", "dimg", "cdsc", "idat", "iprp", "ipco", "ipma", "colr", "nclx",
        "prof",
        "ICC_PROFILE", "Exif", "II*", "MM",
        "<svg xmlns='http://www.w3.org/2000/svg'", "viewBox='", "<rect ", "<use href='#", "<image href='", "<!ENTITY ",
        "%PDF-1.4", " 0 obj", "endobj", "stream", "/MediaBox", "xref", "trailer",
    ]
}

extension String {
    /// The text with quotation marks escaped for libFuzzer's dictionary.
    fileprivate var replacingQuotes: String {
        split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
    }
}
