/// The segments of a JPEG file (ITU-T T.81, annex B).
enum JPEGSegments {
    /// The file without the metadata that is not kept. libvips 8.14 makes EXIF where there was none, as soon as anything
    /// is to be kept.
    static func keeping(_ kept: MetadataKept, in file: [UInt8]) -> [UInt8] {
        guard file.starts(with: [0xff, 0xd8]) else { return file }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        output += file[..<2]
        var place = 2
        // Up to the first scan all segments say how long they are; metadata stands before it.
        while place + 4 <= file.count, file[place] == 0xff, file[place + 1] != 0xda {
            let end = place + 2 + Int(file[place + 2]) << 8 + Int(file[place + 3])
            guard end <= file.count else { break }
            let body = file[place + 4..<max(place + 4, end)]
            let isDropped = segments.contains { segment in
                file[place + 1] == segment.marker && !kept.contains(segment.kind)
                    && body.starts(with: segment.start.utf8)
            }
            if !isDropped { output += file[place..<end] }
            place = end
        }
        return output + file[place...]
    }

    private static let segments: [(marker: UInt8, start: String, kind: MetadataKept)] = [
        (0xe1, "Exif\0", .exif), (0xe1, "http://ns.adobe.com/xap/1.0/\0", .xmp), (0xe2, "ICC_PROFILE\0", .icc),
        (0xed, "Photoshop 3.0\0", .iptc),
    ]
}
