import Digests
import Glibc
import HostileFiles

/// What fuzzing begins with: jobs of every field, each before small files of every format, good and hostile.
enum Seeds {
    /// A larger file is not worth its time.
    private static let longest = 16 << 10

    static func write(to folder: String) throws {
        mkdir(folder, 0o755)
        let files = (try SmallPictures.all()) + HostileFile.all().map { $0.bytes() }.filter { $0.count <= longest }
        // Every job with every good picture would be thousands: they take turns, and each of them comes up.
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
            #","sizer":{"aspectScaleDownByWidth":20},"format":"webp","lossless":true,"effort":0"#,
            #","sizer":{"aspectScaleDownByHeight":20},"format":"avif","effort":0"#,
            #","sizeForDisplay":false,"cropRect":{"x":0.999,"y":0,"width":1000,"height":1000},"format":"png","effort":9"#,
            #","width":0.000001,"height":65535,"upscale":null,"variants":null,"processors":[],"gravity":"center""#,
        ].map(job)

    /// What stands in jobs and in files: libFuzzer puts it in where it likes.
    private static let words = [
        "source", "width", "height", "screenScale", "sizer", "natural", "aspectScaleDownByWidth",
        "aspectScaleDownByHeight", "sizeForDisplay", "cropRect", "contentMode", "scaleToFill", "scaleAspectFit",
        "scaleAspectFill", "topLeft", "center", "scaleOptions", "fitCropsExcess", "fillLeavesExcess",
        "interpolationQuality", "none", "format", "jpeg", "png", "webp", "avif", "gif", "quality", "lossless", "effort",
        "progressive", "gravity", "background", "transparent", "processors", "variants", "upscale", "frames",
        "stripMetadata", "keepProfile", "true", "false", "null", "1e308", "-1", "0.000001", "65535", #"{"a":"#, "[{",
        "IHDR", "IDAT", "IEND", "PLTE", "tRNS", "iCCP", "eXIf", "acTL", "RIFF", "WEBP", "VP8 ", "VP8L", "VP8X", "ALPH",
        "ANIM", "ANMF", "EXIF", "GIF89a", "NETSCAPE2.0", "ftypavif", "meta", "iloc", "ispe", "av01", "mdat",
        "ICC_PROFILE", "Exif", "II*", "MM",
    ]
}

extension String {
    /// As a dictionary of libFuzzer spells it.
    fileprivate var replacingQuotes: String {
        split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
    }
}
