/// The chunks of a WebP file (RFC 9649, section 2).
enum WebPContainer {
    /// The file without EXIF, XMP and colour profile. Bytes that are no WebP come back as they are.
    ///
    /// libvips before 8.14.2 writes an EXIF chunk whatever its option `strip` says.
    static func withoutMetadata(_ file: [UInt8]) -> [UInt8] {
        guard file.count >= 12, isTag("RIFF", in: file, at: 0), isTag("WEBP", in: file, at: 8) else { return file }
        var output = Array(file[..<12])
        output.reserveCapacity(file.count)
        var place = 12
        while place + 8 <= file.count {
            let size = (0..<4).reduce(0) { $0 | Int(file[place + 4 + $1]) << (8 * $1) }
            // Chunks are padded to an even length.
            let end = min(place + 8 + size + size % 2, file.count)
            if !["EXIF", "XMP ", "ICCP"].contains(where: { isTag($0, in: file, at: place) }) {
                let start = output.count
                output += file[place..<end]
                // The flags of the extended header say what the file holds: alpha and animation are left.
                if isTag("VP8X", in: file, at: place), end > place + 8 { output[start + 8] &= 0b0001_0010 }
            }
            place = end
        }
        let length = output.count - 8
        for byte in 0..<4 { output[4 + byte] = UInt8(truncatingIfNeeded: length >> (8 * byte)) }
        return output
    }

    private static func isTag(_ tag: String, in file: [UInt8], at place: Int) -> Bool {
        file[place..<place + 4].elementsEqual(tag.utf8)
    }
}
