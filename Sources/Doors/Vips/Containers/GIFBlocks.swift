/// The blocks of a GIF file (GIF89a specification).
enum GIFBlocks {
    /// Whether the file ends before its trailer.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        guard file.count >= 13 else { return true }
        var place = 13 + table(file[10])
        while place < file.count {
            switch file[place] {
            case 0x3b: return false  // the trailer
            case 0x21: place += 2  // an extension
            case 0x2c:  // an image: its descriptor, its colors, the size of its codes
                guard place + 9 < file.count else { return true }
                place += 10 + table(file[place + 9]) + 1
            default: return false
            }
            while place < file.count, file[place] > 0 { place += 1 + Int(file[place]) }
            place += 1
        }
        return true
    }

    /// The file with what its frames need alone, and with how often it is played: no comments, other extensions, and
    /// nothing behind its end.
    ///
    /// - Parameters:
    ///   - width: of the picture as it is decoded. Decoders do not believe every canvas.
    ///   - height: of the same.
    ///   - frames: in the file as they are decoded.
    ///   - keepingProfile: whether its color profile stays.
    /// - Returns: nil for a file that does not follow the format to its end, for one with text to draw, which decoders
    ///   leave out, and for one of other sides or frames.
    static func pixels(
        of file: [UInt8], width: Int, height: Int, frames: Int, keepingProfile: Bool
    ) -> [UInt8]? {
        guard file.count >= 13, file.starts(with: "GIF87a".utf8) || file.starts(with: "GIF89a".utf8),
            number(in: file, at: 6) == width, number(in: file, at: 8) == height
        else { return nil }
        var (place, found) = (13 + table(file[10]), 0)
        guard place <= file.count else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(file.count)
        output += file[..<place]
        while place < file.count {
            let start = place
            switch file[start] {
            case 0x3b: return found == frames ? output + [0x3b] : nil
            case 0x2c:
                guard start + 9 < file.count, case let blocks = start + 10 + table(file[start + 9]) + 1,
                    // Some decoders enlarge the canvas for a frame that hangs over.
                    number(in: file, at: start + 1) + number(in: file, at: start + 5) <= width,
                    number(in: file, at: start + 3) + number(in: file, at: start + 7) <= height,
                    let end = endOfBlocks(at: blocks, of: file)
                else { return nil }
                output += file[start..<end]
                found += 1
                place = end
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
                place = end
            default: return nil
            }
        }
        return nil
    }

    /// The part of an application's extension that stays: how often an animation is played, and a color profile where
    /// that is kept.
    private static func application(_ block: ArraySlice<UInt8>, keepingProfile: Bool) -> ArraySlice<UInt8> {
        let head = block.prefix(14)
        guard head.count == 14, block[block.startIndex + 2] == 11 else { return [] }
        let name = head.dropFirst(3)
        if name.elementsEqual("ICCRGBG1012".utf8) { return keepingProfile ? block : [] }
        guard name.elementsEqual("NETSCAPE2.0".utf8) || name.elementsEqual("ANIMEXTS1.0".utf8) else { return [] }
        var rest = block.dropFirst(14)
        while let size = rest.first, size > 0 {
            // 1 is the number of repetitions.
            if size == 3, rest[rest.startIndex + 1] == 1 { return head + rest.prefix(4) + [0] }
            rest = rest.dropFirst(1 + Int(size))
        }
        return []
    }

    /// Bytes of a table of colors, by the flags before it.
    private static func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

    /// The place behind a sequence of blocks; nil where the file ends before it.
    private static func endOfBlocks(at place: Int, of file: [UInt8]) -> Int? {
        var place = place
        while place < file.count, file[place] > 0 { place += 1 + Int(file[place]) }
        return place < file.count ? place + 1 : nil
    }

    private static func number(in file: [UInt8], at place: Int) -> Int { Int(file[place]) | Int(file[place + 1]) << 8 }
}
