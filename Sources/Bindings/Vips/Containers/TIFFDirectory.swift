/// The pixel format in the first directory of a TIFF file (TIFF 6.0, section 2; BigTIFF), which libvips does not
/// report.
struct TIFFDirectory {
    private enum Tag: Int {
        case bits = 258, compression = 259, photometric = 262, samples = 277, planes = 284, tile = 322
        case extras = 338, kind = 339, subsampling = 530
    }

    private var fields: [Tag: [Int]] = [:]

    /// Parses a file. nil for bytes that are not a TIFF, or if the first directory is beyond their end.
    init?(_ file: [UInt8]) {
        let isLittle = file.starts(with: "II".utf8)
        guard isLittle || file.starts(with: "MM".utf8) else { return nil }
        func number(_ position: Int, _ count: Int) -> Int? {
            guard position >= 0, position <= file.count - count else { return nil }
            let bytes = file[position..<position + count]
            // A value that does not fit into an Int is not a valid position in a file.
            let value = (isLittle ? Array(bytes.reversed()) : Array(bytes)).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Int(exactly: value)
        }
        // A position has 4 bytes, and 8 in a BigTIFF.
        guard let version = number(2, 2), version == 42 || version == 43 else { return nil }
        let wide = version == 43 ? 8 : 4
        guard
            let start = number(version == 43 ? 8 : 4, wide),
            let entries = number(start, wide == 8 ? 8 : 2)
        else { return nil }
        let first = start + (wide == 8 ? 8 : 2)
        for index in 0..<min(entries, 65_535) {
            let entry = first + index * (4 + 2 * wide)
            guard let name = number(entry, 2), let type = number(entry + 2, 2), let count = number(entry + 4, wide)
            else { break }
            // Integers of 16 and 32 bits. Fields of other types do not describe pixels.
            guard let tag = Tag(rawValue: name), type == 3 || type == 4 else { continue }
            let size = type == 3 ? 2 : 4
            // The values themselves if they fit into the entry, otherwise their position, which may be any number.
            guard let position = count <= wide / size ? entry + 4 + wide : number(entry + 4 + wide, wide),
                position < file.count
            else { continue }
            fields[tag] = (0..<min(count, 16)).compactMap { number(position + $0 * size, size) }
        }
    }

    private func first(_ tag: Tag, otherwise standard: Int) -> Int { fields[tag]?.first ?? standard }

    /// The number of samples per pixel that are color, plus alpha if present. Other samples may contain anything.
    /// Equals `samples` if the file does not specify it.
    func meaningfulSamples(of samples: Int) -> Int {
        let colours: Int
        switch first(.photometric, otherwise: -1) {
        case 0, 1: colours = 1
        case 2, 6, 8: colours = 3
        case 5: colours = 4
        default: return samples
        }
        // A single extra sample is alpha, whatever the file declares, because many programs do not declare it.
        guard samples > colours + 1 else { return samples }
        return [1, 2].contains(first(.extras, otherwise: 0)) ? colours + 1 : colours
    }

    /// A TIFF feature that the file needs and libvips lacks; nil if none is known. The text follows the word "has".
    var unsupportedFeature: String? {
        let (bits, samples) = (first(.bits, otherwise: 1), first(.samples, otherwise: 1))
        let (kind, photometric) = (first(.kind, otherwise: 1), first(.photometric, otherwise: 1))
        let compression = first(.compression, otherwise: 1)
        switch compression {
        case 6: return "old-style JPEG compression (compression 6)"
        // The compressions that libtiff and libvips support: ITU fax, LZW, JPEG, Deflate, PackBits, WebP and so on.
        case 1...5, 7, 8, 32_766, 32_771, 32_773, 32_809, 32_946, 33_003...33_005, 34_676, 34_677, 34_712, 34_887,
            34_925, 50_000...50_002:
            break
        default: return "an unknown compression (\(compression))"
        }
        if fields[.bits].map({ Set($0).count > 1 }) ?? false { return "samples of different depths" }
        if kind > 3 { return "complex or undefined samples" }
        let depths = kind == 3 ? [32] : samples > 1 ? [8, 16, 32] : [1, 2, 4, 8, 16, 32]
        if !depths.contains(bits) { return "\(bits) bits per sample\(kind == 3 ? " in floating point" : "")" }
        switch photometric {
        case 6 where compression != 7 && fields[.subsampling] ?? [2, 2] != [1, 1]:
            return "subsampled YCbCr pixels without JPEG compression"
        case 0...3, 5, 6, 8, 32_803, 34_892: break
        case 32_844, 32_845:
            if ![34_676, 34_677].contains(compression) { return "LogLuv pixels without LogLuv compression" }
        default: return "an unknown pixel type (photometric interpretation \(photometric))"
        }
        if first(.planes, otherwise: 1) == 2, fields[.tile] != nil { return "tiles with a plane for each color" }
        return nil
    }
}

/// The fields of EXIF metadata (CIPA DC-008, section 4.6), which is laid out like a TIFF file.
///
/// The bytes may come from anywhere. Each directory has at most 512 entries, and directories are not followed further
/// than from the first to those of the photograph and of the location, so that parsing takes bounded time.
public struct EXIFFields: Sendable {
    /// A directory of fields.
    public enum Directory: Sendable, Hashable, CaseIterable {
        /// The first directory, with the fields of TIFF.
        case image
        /// The fields of the photograph.
        case photo
        /// The fields of the location.
        case location
    }

    /// The maximum length of a text, in bytes. Longer texts are cut.
    public static let longestText = 256
    /// The maximum number of numbers in a field. Others are ignored.
    private static let mostNumbers = 16
    private static let mostEntries = 512

    private struct Entry: Sendable {
        let type: Int
        let count: Int
        let position: Int
    }

    private let bytes: ArraySlice<UInt8>
    private let isLittle: Bool
    private var directories: [Directory: [Int: Entry]] = [:]

    /// Parses the metadata, with or without the prefix `Exif` of a JPEG segment; nil if it is malformed.
    public init?(_ data: [UInt8]) {
        bytes = data.starts(with: Array("Exif\0\0".utf8)) ? data.dropFirst(6) : data[...]
        isLittle = bytes.starts(with: "II".utf8)
        guard isLittle || bytes.starts(with: "MM".utf8), unsigned(2, 2) == 42, let start = unsigned(4, 4) else {
            return nil
        }
        directories[.image] = entries(at: start)
        for (directory, pointer) in [(Directory.photo, 0x8769), (.location, 0x8825)] {
            guard let start = numbers(pointer, in: .image).first, let place = Int(exactly: start) else { continue }
            directories[directory] = entries(at: place)
        }
    }

    /// Returns a text without control characters and surrounding spaces. Bytes that are not UTF-8 are replaced by
    /// U+FFFD. nil for an empty or missing text.
    public func text(_ tag: Int, in directory: Directory) -> String? {
        guard let entry = directories[directory]?[tag], entry.type == 2 || entry.type == 129,
            let range = range(entry.position, min(entry.count, Self.longestText))
        else { return nil }
        var text = String(decoding: bytes[range].prefix { $0 != 0 }, as: UTF8.self)
        // The cut may have been inside a character.
        if entry.count > Self.longestText, text.last == "\u{fffd}" { text.removeLast() }
        let shown = text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
        let trimmed = shown.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        return trimmed.isEmpty ? nil : String(String.UnicodeScalarView(trimmed))
    }

    /// Returns the numbers of a field; empty if it is missing, not numeric, or contains a fraction with the denominator
    /// 0.
    public func numbers(_ tag: Int, in directory: Directory) -> [Double] {
        guard let entry = directories[directory]?[tag], entry.count <= Self.mostNumbers,
            let size = Self.size(entry.type)
        else { return [] }
        var numbers: [Double] = []
        for index in 0..<entry.count {
            guard let number = number(entry.position + index * size, entry.type) else { return [] }
            numbers.append(number)
        }
        return numbers
    }

    private func entries(at start: Int) -> [Int: Entry] {
        var entries: [Int: Entry] = [:]
        guard let count = unsigned(start, 2) else { return [:] }
        for index in 0..<min(count, Self.mostEntries) {
            let entry = start + 2 + index * 12
            guard let tag = unsigned(entry, 2), let type = unsigned(entry + 2, 2), let count = unsigned(entry + 4, 4)
            else { break }
            let size = Self.size(type) ?? 1
            // The value itself if it fits into four bytes, otherwise its position.
            guard let position = count * size <= 4 ? entry + 8 : unsigned(entry + 8, 4) else { continue }
            // Of fields with the same tag, the first one counts.
            if entries[tag] == nil { entries[tag] = Entry(type: type, count: count, position: position) }
        }
        return entries
    }

    /// The size of a number of a type in bytes; nil for other types.
    private static func size(_ type: Int) -> Int? {
        switch type {
        case 1, 6: 1
        case 3, 8: 2
        case 4, 9: 4
        case 5, 10: 8
        default: nil
        }
    }

    private func number(_ position: Int, _ type: Int) -> Double? {
        func integer(_ position: Int) -> Double? {
            let size = type == 5 || type == 10 ? 4 : Self.size(type) ?? 1
            guard let value = unsigned(position, size) else { return nil }
            let isSigned = type == 6 || type >= 8
            return Double(isSigned && value >= 1 << (size * 8 - 1) ? value - 1 << (size * 8) : value)
        }
        guard let first = integer(position) else { return nil }
        guard type == 5 || type == 10 else { return first }
        guard let second = integer(position + 4), second != 0 else { return nil }
        return first / second
    }

    private func range(_ position: Int, _ count: Int) -> Range<Int>? {
        guard position >= 0, count >= 0, position <= bytes.count - count else { return nil }
        return bytes.startIndex + position..<bytes.startIndex + position + count
    }

    private func unsigned(_ position: Int, _ count: Int) -> Int? {
        guard let range = range(position, count) else { return nil }
        let value = bytes[range]
        return isLittle ? value.reversed().reduce(0) { $0 << 8 | Int($1) } : value.reduce(0) { $0 << 8 | Int($1) }
    }
}
