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
            let values = min(count, 16)
            guard let position = count * size <= wide ? entry + 4 + wide : number(entry + 4 + wide, wide) else {
                continue
            }
            fields[tag] = (0..<values).compactMap { number(position + $0 * size, size) }
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
