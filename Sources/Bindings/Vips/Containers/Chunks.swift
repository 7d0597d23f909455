/// The chunks of a PNG file (W3C PNG, section 5).
enum PNGChunks {
    /// The file without compressed text (zTXt and compressed iTXt) beyond the first 16 KiB of it. Bytes that are not a
    /// PNG are returned unchanged, and so is everything after a damaged chunk.
    ///
    /// libpng decompresses such text into memory as soon as it reads it, up to 8 MB per chunk and 1000 chunks. A file
    /// of 700 KB would take gigabytes before its header is known. 16 KiB expand to at most 17 MB, because the maximum
    /// compression ratio of deflate is 1032. Uncompressed text is not longer than the file, and stays.
    static func withoutCompressedText(_ file: [UInt8]) -> [UInt8] {
        guard file.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) else { return file }
        var kept: [Range<Int>] = []
        var position = 8
        var start = 0
        var room = 16 << 10
        while position + 12 <= file.count {
            let length = file[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let end = position + 12 + length
            guard end <= file.count else { break }
            if isCompressedText(file[position + 4..<end - 4]) {
                room -= length
                if room < 0 {
                    kept.append(start..<position)
                    start = end
                }
            }
            position = end
        }
        guard start > 0 else { return file }
        return (kept + [start..<file.count]).reduce(into: []) { $0 += file[$1] }
    }

    /// A file with a palette without metadata, with its coded pixels unchanged. nil for a file without a palette, an
    /// animation, a damaged file, and for unknown critical chunks.
    static func pixels(of file: [UInt8], keepingProfile: Bool) -> [UInt8]? {
        guard file.count > 33, file[12..<16].elementsEqual("IHDR".utf8), file[25] == 3 else { return nil }
        var kept = Array(file[..<8])
        var position = 8
        while position + 12 <= file.count {
            let length = file[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
            let end = position + 12 + length
            guard end <= file.count else { return nil }
            switch String(decoding: file[position + 4..<position + 8], as: UTF8.self) {
            case "IHDR", "PLTE", "tRNS", "IDAT": kept += file[position..<end]
            case "iCCP", "sRGB", "gAMA", "cHRM", "cICP": if keepingProfile { kept += file[position..<end] }
            case "IEND": return kept + file[position..<end]
            case "acTL", "fcTL", "fdAT": return nil
            // The first letter of chunks without which the picture is incomplete is a capital.
            default: guard file[position + 4] & 0x20 != 0 else { return nil }
            }
            position = end
        }
        return nil
    }

    /// True if the file ends before its last chunk does.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        var position = 8
        while position + 12 <= file.count {
            if file[position + 4..<position + 8].elementsEqual("IEND".utf8) { return false }
            position += 12 + file[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
        }
        return true
    }

    /// True if a chunk, given by its type and data, is compressed text.
    private static func isCompressedText(_ chunk: ArraySlice<UInt8>) -> Bool {
        let data = chunk.dropFirst(4)
        if chunk.starts(with: "zTXt".utf8) { return true }
        guard chunk.starts(with: "iTXt".utf8), let zero = data.firstIndex(of: 0) else { return false }
        // The flag follows the keyword.
        return data.dropFirst(zero + 1 - data.startIndex).first ?? 0 != 0
    }
}

/// The chunks of a WebP file (RFC 9649, section 2).
enum WebPChunks {
    /// The file without the metadata that the policy excludes. libvips before 8.14.2 writes EXIF, XMP and the profile
    /// regardless of its option `strip`.
    static func keeping(_ kept: MetadataPolicy, in file: [UInt8]) -> [UInt8] {
        guard isWebP(file) else { return file }
        return copy(file[...]) { tag in metadata[tag].map { kept.contains($0.kind) } ?? true }
    }

    /// The file with only the chunks that its pixels need, and its color profile if `keepingProfile` is true. Other
    /// chunks and trailing bytes are removed. nil for a file that is shorter than its declared length, or if that is
    /// shorter than the header.
    static func pixels(of file: [UInt8], keepingProfile: Bool) -> [UInt8]? {
        guard isWebP(file), case let end = 8 + number(in: file, at: 4), (12...file.count).contains(end) else {
            return nil
        }
        return copy(file[..<end]) { tag in
            ["VP8X", "VP8 ", "VP8L", "ALPH", "ANIM", "ANMF"].contains(tag) || (keepingProfile && tag == "ICCP")
        }
    }

    private static func copy(_ file: ArraySlice<UInt8>, where isKept: (String) -> Bool) -> [UInt8] {
        var output = Array(file[..<12])
        output.reserveCapacity(file.count)
        var (position, header) = (12, Int?.none)
        while position + 8 <= file.count {
            let tag = String(decoding: file[position..<position + 4], as: UTF8.self)
            let size = number(in: file, at: position + 4)
            // Chunks are padded to an even length.
            let end = min(position + 8 + size + size % 2, file.count)
            if isKept(tag) {
                if tag == "VP8X", end > position + 8 { header = output.count + 8 }
                output += file[position..<end]
            } else if let header, let chunk = metadata[tag] {
                // The flags of the extended header declare the chunks of the file. The header comes first.
                output[header] &= ~chunk.flag
            }
            position = end
        }
        let length = output.count - 8
        for byte in 0..<4 { output[4 + byte] = UInt8(truncatingIfNeeded: length >> (8 * byte)) }
        return output
    }

    private static let metadata: [String: (flag: UInt8, kind: MetadataPolicy)] = [
        "EXIF": (0b1000, .exif), "XMP ": (0b100, .xmp), "ICCP": (0b10_0000, .icc),
    ]

    private static func isWebP(_ file: [UInt8]) -> Bool {
        file.count >= 12 && file.starts(with: "RIFF".utf8) && file[8..<12].elementsEqual("WEBP".utf8)
    }

    private static func number<Bytes: RandomAccessCollection<UInt8>>(
        in file: Bytes, at position: Int
    ) -> Int where Bytes.Index == Int {
        (0..<4).reduce(0) { $0 | Int(file[position + $1]) << (8 * $1) }
    }
}
