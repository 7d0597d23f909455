/// The segments of a JPEG file (ITU-T T.81, annex B).
enum JPEGSegments {
    /// The file without the metadata that the policy excludes. libvips 8.14 adds EXIF to files without it whenever any
    /// metadata is retained.
    static func keeping(_ kept: MetadataPolicy, in file: [UInt8]) -> [UInt8] {
        guard file.starts(with: [0xff, 0xd8]) else { return file }
        var dropped: [Range<Int>] = []
        var position = 2
        // All segments before the first scan have a length, and all metadata is there.
        while position + 4 <= file.count, file[position] == 0xff, file[position + 1] != 0xda {
            let end = position + 2 + Int(file[position + 2]) << 8 + Int(file[position + 3])
            guard end <= file.count else { break }
            let body = file[position + 4..<max(position + 4, end)]
            let isDropped = segments.contains { segment in
                file[position + 1] == segment.marker && !kept.contains(segment.kind)
                    && body.starts(with: segment.start.utf8)
            }
            if isDropped { dropped.append(position..<end) }
            position = end
        }
        if dropped.isEmpty { return file }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        position = 0
        for range in dropped {
            output += file[position..<range.lowerBound]
            position = range.upperBound
        }
        output += file[position...]
        return output
    }

    /// The feature in the frame header that libjpeg does not always support; nil if there is none, or if there is no
    /// frame.
    static func unsupportedFeature(of file: [UInt8]) -> String? {
        guard let frame = frame(of: file) else { return nil }
        switch frame.marker {
        // Table B.1: 0xc0 to 0xc2 are baseline, extended and progressive; 0xc9 and 0xca are the latter two with
        // arithmetic coding.
        case 0xc3: return "lossless coding (SOF3)"
        case 0xcb: return "lossless arithmetic coding (SOF11)"
        case 0xc5...0xc7, 0xcd...0xcf: return "hierarchical coding (SOF\(frame.marker - 0xc0))"
        default: return frame.depth == 8 ? nil : "\(frame.depth) bits per sample"
        }
    }

    /// The file with only the segments that its pixels need, and its color profile if `keepingProfile` is true. Other
    /// metadata, comments, thumbnails and trailing bytes are removed. nil for a file that violates the format.
    static func pixels(of file: [UInt8], keepingProfile: Bool) -> [UInt8]? {
        guard file.starts(with: [0xff, 0xd8]) else { return nil }
        var output: [UInt8] = [0xff, 0xd8]
        output.reserveCapacity(file.count)
        var position = 2
        while let (marker, range) = segment(at: position, of: file), range.count >= 4, range.upperBound <= file.count,
            marker >= 0xc0
        {
            let body = file[range].dropFirst(4)
            let isKept =
                switch marker {
                case 0xc0...0xdf: true
                // The length of a JFIF segment is 16 bytes. It is longer if it has a thumbnail.
                case 0xe0: body.starts(with: "JFIF\0".utf8) && body.count == 14
                case 0xe2: keepingProfile && body.starts(with: "ICC_PROFILE\0".utf8)
                case 0xee: body.starts(with: "Adobe".utf8)
                default: false
                }
            if isKept { output += file[range] }
            position = range.upperBound
            if marker == 0xda {
                // Samples extend to the next marker that is neither a stuffed byte nor a restart (B.1.1.5).
                while position + 1 < file.count, file[position] != 0xff || isOfSamples(file[position + 1]) {
                    position += 1
                }
                output += file[range.upperBound..<position]
            }
            if position + 1 < file.count, file[position] == 0xff, file[position + 1] == 0xd9 {
                return output + [0xff, 0xd9]
            }
        }
        return nil
    }

    /// True if a byte after 0xff belongs to the samples.
    private static func isOfSamples(_ byte: UInt8) -> Bool { byte == 0 || (0xd0...0xd7).contains(byte) }

    /// True if there is no end marker after the beginning of the first scan. Samples cannot contain such a marker.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        var position = 2
        while let (marker, range) = segment(at: position, of: file), marker != 0xda { position = range.upperBound }
        guard position + 4 <= file.count else { return true }
        // It usually is at the very end.
        return !stride(from: file.count - 2, to: position, by: -1).contains { file[$0] == 0xff && file[$0 + 1] == 0xd9 }
    }

    /// The marker of the first frame, and its bits per sample.
    private static func frame(of file: [UInt8]) -> (marker: UInt8, depth: UInt8)? {
        var position = 2
        while let (marker, range) = segment(at: position, of: file) {
            switch marker {
            case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
                let depth = range.lowerBound + 4
                return depth < file.count ? (marker, file[depth]) : nil
            case 0xd8, 0xd9, 0xda: return nil
            default: position = range.upperBound
            }
        }
        return nil
    }

    /// The segment at a position, after any fill bytes. Its end may lie beyond that of the file. nil if no segment
    /// begins there.
    private static func segment(at position: Int, of file: [UInt8]) -> (marker: UInt8, range: Range<Int>)? {
        var position = position
        while position + 4 <= file.count, file[position] == 0xff {
            let marker = file[position + 1]
            switch marker {
            case 0xff: position += 1
            case 0x01, 0xd0...0xd9: return (marker, position..<position + 2)  // no length
            default: return (marker, position..<position + 2 + Int(file[position + 2]) << 8 + Int(file[position + 3]))
            }
        }
        return nil
    }

    private static let segments: [(marker: UInt8, start: String, kind: MetadataPolicy)] = [
        (0xe1, "Exif\0", .exif), (0xe1, "http://ns.adobe.com/xap/1.0/\0", .xmp), (0xe2, "ICC_PROFILE\0", .icc),
        (0xed, "Photoshop 3.0\0", .iptc),
    ]
}
