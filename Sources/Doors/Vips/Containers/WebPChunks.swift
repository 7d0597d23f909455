/// The chunks of a WebP file (RFC 9649, section 2).
enum WebPChunks {
    /// The file without the metadata that is not kept. libvips before 8.14.2 writes EXIF, XMP and the profile whatever
    /// its option `strip` says.
    static func keeping(_ kept: MetadataKept, in file: [UInt8]) -> [UInt8] {
        guard file.count >= 12, isTag("RIFF", in: file, at: 0), isTag("WEBP", in: file, at: 8) else { return file }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        output += file[..<12]
        var (place, header) = (12, Int?.none)
        while place + 8 <= file.count {
            let size = (0..<4).reduce(0) { $0 | Int(file[place + 4 + $1]) << (8 * $1) }
            // Chunks are padded to an even length.
            let end = min(place + 8 + size + size % 2, file.count)
            if let chunk = chunks.first(where: { isTag($0.tag, in: file, at: place) }), !kept.contains(chunk.kind) {
                // The flags of the extended header say what the file holds; it comes first.
                if let header { output[header] &= ~chunk.flag }
            } else {
                if isTag("VP8X", in: file, at: place), end > place + 8 { header = output.count + 8 }
                output += file[place..<end]
            }
            place = end
        }
        let length = output.count - 8
        for byte in 0..<4 { output[4 + byte] = UInt8(truncatingIfNeeded: length >> (8 * byte)) }
        return output
    }

    private static let chunks: [(tag: String, flag: UInt8, kind: MetadataKept)] = [
        ("EXIF", 0b1000, .exif), ("XMP ", 0b100, .xmp), ("ICCP", 0b10_0000, .icc),
    ]

    private static func isTag(_ tag: String, in file: [UInt8], at place: Int) -> Bool {
        file[place..<place + 4].elementsEqual(tag.utf8)
    }
}
