/// A reader of big-endian fields within a range of a file. Reading past the end of the range gives nil, never a trap.
struct FieldReader {
    let file: [UInt8]
    private(set) var place: Int
    let end: Int

    /// - Parameter range: a range of the file's indices.
    init(_ file: [UInt8], _ range: Range<Int>) {
        self.file = file
        (place, end) = (range.lowerBound, range.upperBound)
    }

    var isAtEnd: Bool { place == end }

    /// The range of the next bytes.
    mutating func range(of count: Int) -> Range<Int>? {
        guard count >= 0, count <= end - place else { return nil }
        defer { place += count }
        return place..<place + count
    }

    /// An unsigned number of up to 8 bytes; nil for one that `Int` cannot hold.
    mutating func number(_ bytes: Int) -> Int? {
        guard let range = range(of: bytes) else { return nil }
        return Int(exactly: file[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    /// A code of four characters, such as the type of a box.
    mutating func code() -> String? {
        range(of: 4).map { String(decoding: file[$0], as: UTF8.self) }
    }

    /// The version and the flags of a full box (ISO/IEC 14496-12, section 4.2).
    mutating func versionAndFlags() -> (version: Int, flags: Int)? {
        guard let version = number(1), let flags = number(3) else { return nil }
        return (version, flags)
    }
}

/// A box of ISO's base media file format (ISO/IEC 14496-12, section 4.2).
struct MediaBox {
    let type: String
    /// The range of the whole box, with its header.
    let range: Range<Int>
    /// The range of what follows the header.
    let content: Range<Int>
}

extension FieldReader {
    /// The boxes that fill the rest of the range.
    ///
    /// - Parameters:
    ///   - limit: the highest number of boxes.
    ///   - endsOpen: whether the last box may go on to the end without saying how long it is, as in a file.
    /// - Returns: nil where a box does not fit, or where there are more of them.
    mutating func boxes(atMost limit: Int, endsOpen: Bool = false) -> [MediaBox]? {
        var boxes: [MediaBox] = []
        while !isAtEnd {
            let start = place
            guard boxes.count < limit, var size = number(4), let type = code() else { return nil }
            if size == 1 {
                guard let large = number(8) else { return nil }
                size = large
            } else if size == 0, endsOpen {
                size = end - start
            }
            let header = place - start
            guard size >= header, let content = range(of: size - header) else { return nil }
            boxes.append(MediaBox(type: type, range: start..<content.upperBound, content: content))
        }
        return boxes
    }
}

extension EncodedImage {
    /// Whether the file ends before its format's mark of the end: one of JPEG, PNG or GIF. False for other formats, and where damage
    /// hides how far the file goes.
    public var isTruncated: Bool {
        switch format {
        case .jpeg: JPEGSegments.isTruncated(content)
        case .png: PNGChunks.isTruncated(content)
        case .gif: GIFBlocks.isTruncated(content)
        default: false
        }
    }
}
