/// The chunks of a WebP file (RFC 9649, section 2).
enum WebPChunks {
    /// The file without the metadata that is not kept. libvips before 8.14.2 writes EXIF, XMP and the profile whatever
    /// its option `strip` says.
    static func keeping(_ kept: MetadataKept, in file: [UInt8]) -> [UInt8] {
        guard isWebP(file) else { return file }
        return copy(file[...]) { tag in metadata[tag].map { kept.contains($0.kind) } ?? true }
    }

    /// The file with what its pixels need alone, and with its colour profile where that is kept: no other chunks, and nothing behind its
    /// end. nil for a file that is shorter than it says.
    static func pixels(of file: [UInt8], keepingProfile: Bool) -> [UInt8]? {
        guard isWebP(file), case let end = 8 + number(in: file, at: 4), end <= file.count else { return nil }
        return copy(file[..<end]) { tag in
            ["VP8X", "VP8 ", "VP8L", "ALPH", "ANIM", "ANMF"].contains(tag) || (keepingProfile && tag == "ICCP")
        }
    }

    private static func copy(_ file: ArraySlice<UInt8>, where isKept: (String) -> Bool) -> [UInt8] {
        var output = Array(file[..<12])
        output.reserveCapacity(file.count)
        var (place, header) = (12, Int?.none)
        while place + 8 <= file.count {
            let tag = String(decoding: file[place..<place + 4], as: UTF8.self)
            let size = number(in: file, at: place + 4)
            // Chunks are padded to an even length.
            let end = min(place + 8 + size + size % 2, file.count)
            if isKept(tag) {
                if tag == "VP8X", end > place + 8 { header = output.count + 8 }
                output += file[place..<end]
            } else if let header, let chunk = metadata[tag] {
                // The flags of the extended header say what the file holds; it comes first.
                output[header] &= ~chunk.flag
            }
            place = end
        }
        let length = output.count - 8
        for byte in 0..<4 { output[4 + byte] = UInt8(truncatingIfNeeded: length >> (8 * byte)) }
        return output
    }

    private static let metadata: [String: (flag: UInt8, kind: MetadataKept)] = [
        "EXIF": (0b1000, .exif), "XMP ": (0b100, .xmp), "ICCP": (0b10_0000, .icc),
    ]

    private static func isWebP(_ file: [UInt8]) -> Bool {
        file.count >= 12 && file.starts(with: "RIFF".utf8) && file[8..<12].elementsEqual("WEBP".utf8)
    }

    private static func number<Bytes: RandomAccessCollection<UInt8>>(
        in file: Bytes, at place: Int
    ) -> Int where Bytes.Index == Int {
        (0..<4).reduce(0) { $0 | Int(file[place + $1]) << (8 * $1) }
    }
}
