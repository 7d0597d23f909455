/// The segments of a JPEG file (ITU-T T.81, annex B).
enum JPEGSegments {
    /// The file without the metadata that is not kept. libvips 8.14 makes EXIF where there was none, as soon as anything
    /// is to be kept.
    static func keeping(_ kept: MetadataKept, in file: [UInt8]) -> [UInt8] {
        guard file.starts(with: [0xff, 0xd8]) else { return file }
        var dropped: [Range<Int>] = []
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
            if isDropped { dropped.append(place..<end) }
            place = end
        }
        if dropped.isEmpty { return file }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        place = 0
        for range in dropped {
            output += file[place..<range.lowerBound]
            place = range.upperBound
        }
        output += file[place...]
        return output
    }

    /// What the frame's header says that libjpeg does not decode everywhere; nil where it is nothing of the kind, or where
    /// there is no frame.
    static func unsupportedFeature(of file: [UInt8]) -> String? {
        guard let frame = frame(of: file) else { return nil }
        switch frame.marker {
        // Table B.1: 0xc0 to 0xc2 are baseline, extended and progressive, 0xc9 and 0xca the latter two with arithmetic coding.
        case 0xc3: return "lossless coding (SOF3)"
        case 0xcb: return "lossless arithmetic coding (SOF11)"
        case 0xc5...0xc7, 0xcd...0xcf: return "hierarchical coding (SOF\(frame.marker - 0xc0))"
        default: return frame.depth == 8 ? nil : "\(frame.depth) bits a sample"
        }
    }

    /// The file with what its pixels need alone, and with its colour profile where that is kept: no other metadata, comments or
    /// thumbnails, and nothing behind its end. nil for a file that does not follow the format to its end.
    static func pixels(of file: [UInt8], keepingProfile: Bool) -> [UInt8]? {
        guard file.starts(with: [0xff, 0xd8]) else { return nil }
        var output: [UInt8] = [0xff, 0xd8]
        output.reserveCapacity(file.count)
        var place = 2
        while let (marker, range) = segment(at: place, of: file), range.count >= 4, range.upperBound <= file.count,
            marker >= 0xc0
        {
            let body = file[range].dropFirst(4)
            let isKept =
                switch marker {
                case 0xc0...0xdf: true
                // Of 16 bytes: it is longer where it has a thumbnail.
                case 0xe0: body.starts(with: "JFIF\0".utf8) && body.count == 14
                case 0xe2: keepingProfile && body.starts(with: "ICC_PROFILE\0".utf8)
                case 0xee: body.starts(with: "Adobe".utf8)
                default: false
                }
            if isKept { output += file[range] }
            place = range.upperBound
            if marker == 0xda {
                // Samples go on to the next marker that is none of theirs (B.1.1.5): a stuffed byte, or a restart.
                while place + 1 < file.count, file[place] != 0xff || isOfSamples(file[place + 1]) { place += 1 }
                output += file[range.upperBound..<place]
            }
            if place + 1 < file.count, file[place] == 0xff, file[place + 1] == 0xd9 { return output + [0xff, 0xd9] }
        }
        return nil
    }

    /// Whether a byte behind 0xff says that samples go on.
    private static func isOfSamples(_ byte: UInt8) -> Bool { byte == 0 || (0xd0...0xd7).contains(byte) }

    /// Whether there is no mark of the end behind the first scan's beginning: inside of pictures such a mark cannot be.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        var place = 2
        while let (marker, range) = segment(at: place, of: file), marker != 0xda { place = range.upperBound }
        guard place + 4 <= file.count else { return true }
        // As a rule it is the very last.
        return !stride(from: file.count - 2, to: place, by: -1).contains { file[$0] == 0xff && file[$0 + 1] == 0xd9 }
    }

    /// The first frame's marker, and the bits of its samples.
    private static func frame(of file: [UInt8]) -> (marker: UInt8, depth: UInt8)? {
        var place = 2
        while let (marker, range) = segment(at: place, of: file) {
            switch marker {
            case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
                let depth = range.lowerBound + 4
                return depth < file.count ? (marker, file[depth]) : nil
            case 0xd8, 0xd9, 0xda: return nil
            default: place = range.upperBound
            }
        }
        return nil
    }

    /// The segment that begins at a place, behind bytes of filling; its end may lie behind that of the file. nil where none begins.
    private static func segment(at place: Int, of file: [UInt8]) -> (marker: UInt8, range: Range<Int>)? {
        var place = place
        while place + 4 <= file.count, file[place] == 0xff {
            let marker = file[place + 1]
            switch marker {
            case 0xff: place += 1
            case 0x01, 0xd0...0xd9: return (marker, place..<place + 2)  // no length
            default: return (marker, place..<place + 2 + Int(file[place + 2]) << 8 + Int(file[place + 3]))
            }
        }
        return nil
    }

    private static let segments: [(marker: UInt8, start: String, kind: MetadataKept)] = [
        (0xe1, "Exif\0", .exif), (0xe1, "http://ns.adobe.com/xap/1.0/\0", .xmp), (0xe2, "ICC_PROFILE\0", .icc),
        (0xed, "Photoshop 3.0\0", .iptc),
    ]
}
