import Glibc
import HalcyonModel
import JSON
import Vips

/// The facts about a source that its header contains, and the analyses of its pixels that were requested.
struct ImageInfo {
    /// The longer side of the image that is analyzed, in pixels. It is never larger than the source.
    static let analyzedSide = 128

    private let source: SourceImage
    private let options: InfoOptions
    private let findings: ImageAnalysis
    /// The faces in the upright source, if they were requested.
    var faces: [DetectedFace]?

    init(_ source: SourceImage, _ options: InfoOptions, _ findings: ImageAnalysis) {
        (self.source, self.options, self.findings) = (source, options, findings)
    }

    /// The facts as a JSON object: `schemas/event.schema.json`, `$defs/info`. Members that a source does not have are
    /// absent.
    var json: [UInt8] {
        let header = source.header
        let exif = source.file.exifFields ?? header.bytes(of: "exif-data").flatMap(EXIFFields.init)
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("format", source.format.rawValue)
            writer.member("mediaType", source.format.mediaType)
            writer.member("bytes", source.file.fileSize)
            writer.member("width", source.size.width)
            writer.member("height", source.size.height)
            writer.member("orientation", source.orientation.rawValue)
            writePages(to: &writer)
            writer.member("colorSpace", header.colorSpaceName)
            writer.member("bitsPerSample", header.bitsPerSample)
            writer.member("alpha", header.hasAlpha)
            if let profile = header.bytes(of: "icc-profile-data").map(ICCProfile.init) {
                writer.name("profile")
                writer.object { writer in
                    writer.member("name", profile.name)
                    writer.member("colorSpace", profile.colorSpace)
                }
            }
            writeVideo(to: &writer)
            if source.file.isTruncated { writer.member("truncated", true) }
            exif?.writePhoto(to: &writer)
            if options.location { exif?.writeLocation(to: &writer) }
            writer.member("blurhash", findings.blurhash)
            writer.member("dominantColor", findings.dominantColor)
            writer.member("palette", findings.palette)
            writer.member("thumbhash", findings.thumbhash)
            writer.member("phash", findings.phash)
            if let faces { Self.write(faces, to: &writer) }
        }
        return writer.bytes
    }

    private static func write(_ faces: [DetectedFace], to writer: inout JSONWriter) {
        writer.name("faces")
        writer.array { writer in
            for face in faces {
                writer.object { writer in
                    writer.member("x", face.place.x)
                    writer.member("y", face.place.y)
                    writer.member("width", face.place.width)
                    writer.member("height", face.place.height)
                    writer.member("confidence", face.confidence)
                }
            }
        }
    }

    /// Writes the codec and the duration in milliseconds of the video that a frame is from. The text is in the file, so
    /// it may be anything.
    private func writeVideo(to writer: inout JSONWriter) {
        let header = source.header
        guard source.format == .png,
            let field = header.fields.first(where: {
                $0.hasPrefix("png-comment-") && $0.hasSuffix("-\(VideoFacts.keyword)")
            }),
            let facts = header.text(of: field).flatMap(VideoFacts.init(text:))
        else { return }
        writer.name("video")
        writer.object { writer in
            writer.member("codec", facts.codec)
            writer.member("duration", facts.milliseconds)
        }
    }

    /// Writes the frames of an animation with their total duration in milliseconds, or the pages of a document.
    private func writePages(to writer: inout JSONWriter) {
        let pages = source.header.pages
        guard source.format.hasAnimation else {
            if source.format == .pdf || source.format == .tiff { writer.member("pages", pages) }
            return
        }
        guard pages > 1 else { return }
        writer.member("frames", pages)
        let delays = source.header.frameDelays
        if delays.count == pages { writer.member("duration", delays.reduce(0) { $0 + max(0, $1) }) }
        writer.member("loop", source.header.loopCount)
    }
}

extension Image {
    /// The color model of the samples.
    fileprivate var colorSpaceName: String {
        switch interpretation {
        case .sRGB, .rgb16: "rgb"
        case .grey, .grey16: "gray"
        case .cmyk: "cmyk"
        case .other: "other"
        }
    }

    /// The number of bits of a sample; nil if it is not an integer of 8 to 16 bits.
    fileprivate var bitsPerSample: Int? {
        if let depth = text(of: "heif-bitdepth").flatMap({ Int($0) }), (8...16).contains(depth) { return depth }
        return switch sampleFormat {
        case .uint8: 8
        case .uint16: 16
        case .other: nil
        }
    }
}

extension EXIFFields {
    /// Writes the fields about the camera, the exposure and the rights. Serial numbers, names of owners, notes of
    /// makers, comments and thumbnails are left out, and so is the location.
    fileprivate func writePhoto(to writer: inout JSONWriter) {
        let texts: [(String, Int, Directory)] = [
            ("make", 0x010f, .image), ("model", 0x0110, .image), ("lensMake", 0xa433, .photo),
            ("lensModel", 0xa434, .photo), ("software", 0x0131, .image), ("artist", 0x013b, .image),
            ("copyright", 0x8298, .image),
        ]
        let numbers: [(String, Int)] = [
            ("exposureTime", 0x829a), ("fNumber", 0x829d), ("iso", 0x8827), ("exposureBias", 0x9204),
            ("focalLength", 0x920a), ("focalLengthIn35mmFilm", 0xa405),
        ]
        var object = JSONWriter()
        object.object { writer in
            for (name, tag, directory) in texts { writer.member(name, text(tag, in: directory)) }
            writer.member("dateTimeOriginal", dateTimeOriginal)
            for (name, tag) in numbers { writer.member(name, self.numbers(tag, in: .photo).first) }
            writer.member("flash", self.numbers(0x9209, in: .photo).first.map { Int($0) & 1 == 1 })
        }
        guard object.bytes.count > 2 else { return }
        writer.name("exif")
        writer.raw(object.bytes)
    }

    /// Writes the position where the picture was taken, in degrees of WGS 84 and meters.
    fileprivate func writeLocation(to writer: inout JSONWriter) {
        guard let latitude = degrees(1, 2, negative: "S", limit: 90),
            let longitude = degrees(3, 4, negative: "W", limit: 180)
        else { return }
        writer.name("location")
        writer.object { writer in
            writer.member("latitude", latitude)
            writer.member("longitude", longitude)
            let isBelow = numbers(5, in: .location).first == 1
            writer.member("altitude", numbers(6, in: .location).first.map { isBelow ? -$0 : $0 })
        }
    }

    /// Returns an angle of degrees, minutes and seconds, rounded to a ten-millionth; nil if it is out of range.
    private func degrees(_ reference: Int, _ tag: Int, negative: String, limit: Double) -> Double? {
        let parts = numbers(tag, in: .location)
        guard (1...3).contains(parts.count), parts.allSatisfy({ $0 >= 0 }) else { return nil }
        let angle = zip(parts, [1, 60, 3600]).reduce(0) { $0 + $1.0 / $1.1 }
        guard angle <= limit else { return nil }
        let rounded = (angle * 1e7).rounded() / 1e7
        return text(reference, in: .location)?.uppercased() == negative ? -rounded : rounded
    }

    /// The local time of the exposure as in RFC 3339, with its offset if there is one; nil if it is malformed.
    private var dateTimeOriginal: String? {
        guard let text = text(0x9003, in: .photo), let match = text.wholeMatch(of: Self.dateAndTime) else { return nil }
        let offset = self.text(0x9011, in: .photo).flatMap { $0.wholeMatch(of: Self.offset)?.output }
        return "\(match.1)-\(match.2)-\(match.3)T\(match.4)\(offset ?? "")"
    }

    private static var dateAndTime: Regex<(Substring, Substring, Substring, Substring, Substring)> {
        /([0-9]{4}):([0-9]{2}):([0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2})/
    }

    private static var offset: Regex<Substring> { /[+-][0-9]{2}:[0-9]{2}/ }
}

/// A partial parser of ICC profiles (ICC.1:2022), which detects sRGB and reads the name.
///
/// The many sRGB profiles in use differ in name, size and bytes. The three colorants and the tone curve decide instead.
struct ICCProfile {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// True if a conversion from this profile to sRGB would not change 8-bit pixels.
    var isSRGB: Bool {
        guard signature(at: 16) == "RGB ", signature(at: 20) == "XYZ " else { return false }
        // sRGB's primaries, adapted to D50 (IEC 61966-2-1, by the Bradford matrix).
        let colorants = [
            ("rXYZ", [0.4361, 0.2225, 0.0139]), ("gXYZ", [0.3851, 0.7169, 0.0971]), ("bXYZ", [0.1431, 0.0606, 0.7141]),
        ]
        for (tag, expected) in colorants {
            guard let offset = offset(of: tag), let found = xyz(at: offset) else { return false }
            guard zip(found, expected).allSatisfy({ abs($0 - $1) < 0.003 }) else { return false }
        }
        for tag in ["rTRC", "gTRC", "bTRC"] {
            guard let offset = offset(of: tag) else { return false }
            for signal in [0.1, 0.25, 0.5, 0.75, 0.9] {
                guard let light = curve(at: offset, signal), abs(light - SRGB.light(signal)) < 0.008 else {
                    return false
                }
            }
        }
        return true
    }

    /// The maximum length of a name, in characters. Longer names are cut.
    static let longestName = 128

    /// The description of the profile, such as `Display P3`; nil if there is none.
    var name: String? {
        guard let offset = offset(of: "desc") else { return nil }
        let text: String
        switch signature(at: offset) {
        case "desc":
            guard let count = number(at: offset + 8), let ascii = slice(offset + 12, min(count, 512)) else {
                return nil
            }
            text = String(decoding: ascii.prefix { $0 != 0 }, as: UTF8.self)
        case "mluc":
            // The first language.
            guard let count = number(at: offset + 8), count > 0, let length = number(at: offset + 20),
                let start = number(at: offset + 24), let units = slice(offset + start, min(length, 512) & ~1)
            else { return nil }
            let pairs = stride(from: units.startIndex, to: units.endIndex, by: 2)
            text = String(decoding: pairs.map { UInt16(units[$0]) << 8 | UInt16(units[$0 + 1]) }, as: UTF16.self)
        default: return nil
        }
        let shown = text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
        return shown.isEmpty ? nil : String(String.UnicodeScalarView(shown.prefix(Self.longestName)))
    }

    /// The color space of the device: `RGB`, `GRAY`, `CMYK` or another signature of ICC.1, 7.2.6; nil if it is
    /// malformed.
    var colorSpace: String? {
        let name = signature(at: 16).filter { $0 != " " }
        return !name.isEmpty && name.utf8.allSatisfy { (0x30...0x7a).contains($0) } ? name : nil
    }

    private func slice(_ offset: Int, _ count: Int) -> ArraySlice<UInt8>? {
        guard offset >= 0, count >= 0, offset <= bytes.count - count else { return nil }
        return bytes[offset..<offset + count]
    }

    /// Returns the offset of a tag's data (ICC.1, 7.3).
    private func offset(of tag: String) -> Int? {
        guard let count = number(at: 128), count <= 100 else { return nil }
        for index in 0..<count where signature(at: 132 + index * 12) == tag { return number(at: 136 + index * 12) }
        return nil
    }

    /// Reads an XYZType (ICC.1, 10.31).
    private func xyz(at offset: Int) -> [Double]? {
        guard signature(at: offset) == "XYZ ", let x = fixed(at: offset + 8), let y = fixed(at: offset + 12),
            let z = fixed(at: offset + 16)
        else { return nil }
        return [x, y, z]
    }

    /// Evaluates a curveType (ICC.1, 10.6) or parametricCurveType (10.18).
    private func curve(at offset: Int, _ signal: Double) -> Double? {
        switch signature(at: offset) {
        case "curv":
            guard let count = number(at: offset + 8) else { return nil }
            if count == 0 { return signal }
            if count == 1 { return short(at: offset + 12).map { power(signal, Double($0) / 256) } }
            let position = signal * Double(count - 1)
            let index = Int(position)
            guard let low = short(at: offset + 12 + index * 2),
                let high = short(at: offset + 12 + min(index + 1, count - 1) * 2)
            else { return nil }
            return (Double(low) + Double(high - low) * (position - Double(index))) / 65535
        case "para":
            // Type 3 is the form of sRGB's curve; type 0, a plain power, comes near it in some profiles.
            guard let type = short(at: offset + 8), type == 0 || type == 3 else { return nil }
            let values = (0..<(type == 0 ? 1 : 5)).compactMap { fixed(at: offset + 12 + $0 * 4) }
            if type == 0 { return values.first.map { power(signal, $0) } }
            guard values.count == 5 else { return nil }
            return signal >= values[4] ? power(values[1] * signal + values[2], values[0]) : values[3] * signal
        default:
            return nil
        }
    }

    private func signature(at offset: Int) -> String {
        guard offset >= 0, offset + 4 <= bytes.count else { return "" }
        return String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    }

    private func number(at offset: Int) -> Int? {
        guard offset >= 0, offset + 4 <= bytes.count else { return nil }
        return bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    private func short(at offset: Int) -> Int? {
        guard offset >= 0, offset + 2 <= bytes.count else { return nil }
        return Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }

    /// Reads an s15Fixed16Number (ICC.1, 4.6).
    private func fixed(at offset: Int) -> Double? {
        number(at: offset).map { Double(Int32(truncatingIfNeeded: $0)) / 65536 }
    }
}

/// Returns `base` to the power of `exponent`, or 0 for a negative base.
private func power(_ base: Double, _ exponent: Double) -> Double { base <= 0 ? 0 : pow(base, exponent) }
