/// A reader of big-endian fields within a range of a file. Reading past the end of the range returns nil, and never
/// traps.
struct FieldReader {
    let file: [UInt8]
    private(set) var position: Int
    let end: Int

    /// Creates a reader for a range of the file's indices.
    init(_ file: [UInt8], _ range: Range<Int>) {
        self.file = file
        (position, end) = (range.lowerBound, range.upperBound)
    }

    var isAtEnd: Bool { position == end }

    /// Returns the range of the next `count` bytes.
    mutating func range(of count: Int) -> Range<Int>? {
        guard count >= 0, count <= end - position else { return nil }
        defer { position += count }
        return position..<position + count
    }

    /// Reads an unsigned number of up to 8 bytes. Returns nil if `Int` cannot hold it.
    mutating func number(_ bytes: Int) -> Int? {
        guard let range = range(of: bytes) else { return nil }
        return Int(exactly: file[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    /// Reads a code of four characters, such as the type of a box.
    mutating func code() -> String? {
        range(of: 4).map { String(decoding: file[$0], as: UTF8.self) }
    }

    /// Reads the version and the flags of a full box (ISO/IEC 14496-12, section 4.2).
    mutating func versionAndFlags() -> (version: Int, flags: Int)? {
        guard let version = number(1), let flags = number(3) else { return nil }
        return (version, flags)
    }
}

/// A box of the ISO base media file format (ISO/IEC 14496-12, section 4.2).
struct MediaBox {
    let type: String
    /// The range of the whole box, including its header.
    let range: Range<Int>
    /// The range of the content after the header.
    let content: Range<Int>
}

extension FieldReader {
    /// Reads the boxes that fill the rest of the range.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of boxes.
    ///   - endsOpen: true if the last box may extend to the end without a length, as in a file.
    /// - Returns: the boxes; nil if a box does not fit, or if there are more than `limit`.
    mutating func boxes(upTo limit: Int, endsOpen: Bool = false) -> [MediaBox]? {
        var boxes: [MediaBox] = []
        while !isAtEnd {
            let start = position
            guard boxes.count < limit, var size = number(4), let type = code() else { return nil }
            if size == 1 {
                guard let large = number(8) else { return nil }
                size = large
            } else if size == 0, endsOpen {
                size = end - start
            }
            let header = position - start
            guard size >= header, let content = range(of: size - header) else { return nil }
            boxes.append(MediaBox(type: type, range: start..<content.upperBound, content: content))
        }
        return boxes
    }
}

extension EncodedImage {
    /// True if a JPEG, PNG or GIF file ends before its end marker, or a BMP file before its last row. False for other
    /// formats, and if damage hides the extent of the file.
    public var isTruncated: Bool {
        switch format {
        case .jpeg: JPEGSegments.isTruncated(content)
        case .png: PNGChunks.isTruncated(content)
        case .gif: GIFBlocks.isTruncated(content)
        case .bmp: Bitmap.isTruncated(content)
        default: false
        }
    }
}
