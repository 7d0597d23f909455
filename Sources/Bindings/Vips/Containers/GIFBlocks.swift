/// The blocks of a GIF file (GIF89a specification).
enum GIFBlocks {
    /// True if the file ends before its trailer.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        guard file.count >= 13 else { return true }
        var position = 13 + table(file[10])
        while position < file.count {
            switch file[position] {
            case 0x3b: return false  // the trailer
            case 0x21: position += 2  // an extension
            case 0x2c:  // an image: its descriptor, its colors, the size of its codes
                guard position + 9 < file.count else { return true }
                position += 10 + table(file[position + 9]) + 1
            default: return false
            }
            while position < file.count, file[position] > 0 { position += 1 + Int(file[position]) }
            position += 1
        }
        return true
    }

    /// The file with only its frames and its loop count, without comments, other extensions and trailing bytes.
    ///
    /// - Parameters:
    ///   - width: the width of the decoded picture. Decoders do not trust every canvas size.
    ///   - height: the height of the decoded picture.
    ///   - frames: the number of decoded frames.
    ///   - keepingProfile: true if the color profile is retained.
    /// - Returns: the file; nil if it violates the format, if it has plain text extensions, which decoders ignore, or
    ///   if its size or number of frames differs.
    static func pixels(
        of file: [UInt8], width: Int, height: Int, frames: Int, keepingProfile: Bool
    ) -> [UInt8]? {
        guard file.count >= 13, file.starts(with: "GIF87a".utf8) || file.starts(with: "GIF89a".utf8),
            number(in: file, at: 6) == width, number(in: file, at: 8) == height
        else { return nil }
        var (position, found) = (13 + table(file[10]), 0)
        guard position <= file.count else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        output += file[..<position]
        while position < file.count {
            let start = position
            switch file[start] {
            case 0x3b: return found == frames ? output + [0x3b] : nil
            case 0x2c:
                guard start + 9 < file.count, case let blocks = start + 10 + table(file[start + 9]) + 1,
                    // Some decoders enlarge the canvas for a frame that extends beyond it.
                    number(in: file, at: start + 1) + number(in: file, at: start + 5) <= width,
                    number(in: file, at: start + 3) + number(in: file, at: start + 7) <= height,
                    let end = endOfBlocks(at: blocks, of: file)
                else { return nil }
                output += file[start..<end]
                found += 1
                position = end
            case 0x21:
                guard start + 1 < file.count, let end = endOfBlocks(at: start + 2, of: file) else { return nil }
                switch file[start + 1] {
                case 0x01: return nil
                case 0xf9:
                    guard end == start + 8, file[start + 2] == 4 else { return nil }
                    output += file[start..<end]
                case 0xff: output += application(file[start..<end], keepingProfile: keepingProfile)
                default: break
                }
                position = end
            default: return nil
            }
        }
        return nil
    }

    /// The part of an application extension that is retained: the loop count, and the color profile if `keepingProfile`
    /// is true.
    private static func application(_ block: ArraySlice<UInt8>, keepingProfile: Bool) -> ArraySlice<UInt8> {
        let head = block.prefix(14)
        guard head.count == 14, block[block.startIndex + 2] == 11 else { return [] }
        let name = head.dropFirst(3)
        if name.elementsEqual("ICCRGBG1012".utf8) { return keepingProfile ? block : [] }
        guard name.elementsEqual("NETSCAPE2.0".utf8) || name.elementsEqual("ANIMEXTS1.0".utf8) else { return [] }
        var rest = block.dropFirst(14)
        while let size = rest.first, size > 0 {
            // 1 introduces the number of repetitions.
            if size == 3, rest[rest.startIndex + 1] == 1 { return head + rest.prefix(4) + [0] }
            rest = rest.dropFirst(1 + Int(size))
        }
        return []
    }

    /// The size of a color table in bytes, according to the flags before it.
    private static func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

    /// The position after a sequence of sub-blocks; nil if the file ends before it.
    private static func endOfBlocks(at position: Int, of file: [UInt8]) -> Int? {
        var position = position
        while position < file.count, file[position] > 0 { position += 1 + Int(file[position]) }
        return position < file.count ? position + 1 : nil
    }

    private static func number(in file: [UInt8], at position: Int) -> Int {
        Int(file[position]) | Int(file[position + 1]) << 8
    }
}
