/// What the first directory of a TIFF file says of its pixels (TIFF 6.0, section 2; BigTIFF). What libvips does not tell.
struct TIFFDirectory {
    private enum Tag: Int {
        case bits = 258, compression = 259, photometric = 262, samples = 277, planes = 284, tile = 322
        case extras = 338, kind = 339, subsampling = 530
    }

    private var fields: [Tag: [Int]] = [:]

    /// nil for bytes that are no TIFF, or whose first directory lies beyond their end.
    init?(_ file: [UInt8]) {
        let isLittle = file.starts(with: "II".utf8)
        guard isLittle || file.starts(with: "MM".utf8) else { return nil }
        func number(_ place: Int, _ count: Int) -> Int? {
            guard place >= 0, place <= file.count - count else { return nil }
            let bytes = file[place..<place + count]
            // What does not fit an Int is no place in a file.
            let value = (isLittle ? Array(bytes.reversed()) : Array(bytes)).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Int(exactly: value)
        }
        // A place is 4 bytes, and 8 in a BigTIFF.
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
            // Whole numbers of 16 and 32 bits; the others say nothing of pixels.
            guard let tag = Tag(rawValue: name), type == 3 || type == 4 else { continue }
            let size = type == 3 ? 2 : 4
            let values = min(count, 16)
            guard let place = count * size <= wide ? entry + 4 + wide : number(entry + 4 + wide, wide) else { continue }
            fields[tag] = (0..<values).compactMap { number(place + $0 * size, size) }
        }
    }

    private func first(_ tag: Tag, otherwise standard: Int) -> Int { fields[tag]?.first ?? standard }

    /// How many of so many samples of a pixel are colour, and alpha where there is one: others may be anything. All of them,
    /// where the file does not tell.
    func meaningfulSamples(of samples: Int) -> Int {
        let colours: Int
        switch first(.photometric, otherwise: -1) {
        case 0, 1: colours = 1
        case 2, 6, 8: colours = 3
        case 5: colours = 4
        default: return samples
        }
        // A single one is alpha, whatever the file calls it: many programs do not say.
        guard samples > colours + 1 else { return samples }
        return [1, 2].contains(first(.extras, otherwise: 0)) ? colours + 1 : colours
    }

    /// What of TIFF the file needs that libvips has not; nil where nothing is known to be missing. It stands behind "has".
    var unsupportedFeature: String? {
        let (bits, samples) = (first(.bits, otherwise: 1), first(.samples, otherwise: 1))
        let (kind, photometric) = (first(.kind, otherwise: 1), first(.photometric, otherwise: 1))
        let compression = first(.compression, otherwise: 1)
        switch compression {
        case 6: return "JPEG compression of the old style (compression 6)"
        // Those that libtiff and libvips know: ITU fax, LZW, JPEG, Deflate, PackBits, WebP and so on.
        case 1...5, 7, 8, 32_766, 32_771, 32_773, 32_809, 32_946, 33_003...33_005, 34_676, 34_677, 34_712, 34_887,
            34_925, 50_000...50_002:
            break
        default: return "an unknown compression (\(compression))"
        }
        if fields[.bits].map({ Set($0).count > 1 }) ?? false { return "samples of different depths" }
        if kind > 3 { return "complex or undefined samples" }
        let depths = kind == 3 ? [32] : samples > 1 ? [8, 16, 32] : [1, 2, 4, 8, 16, 32]
        if !depths.contains(bits) { return "\(bits) bits a sample\(kind == 3 ? ", with fractions" : "")" }
        switch photometric {
        case 6 where compression != 7 && fields[.subsampling] ?? [2, 2] != [1, 1]:
            return "subsampled YCbCr pixels that are not compressed as JPEG"
        case 0...3, 5, 6, 8, 32_803, 34_892: break
        case 32_844, 32_845:
            if ![34_676, 34_677].contains(compression) { return "LogLuv pixels without their compression" }
        default: return "an unknown kind of pixels (photometric interpretation \(photometric))"
        }
        if first(.planes, otherwise: 1) == 2, fields[.tile] != nil { return "tiles with a plane for each colour" }
        return nil
    }
}
