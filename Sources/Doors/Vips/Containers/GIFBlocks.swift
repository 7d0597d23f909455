/// The blocks of a GIF file (GIF89a specification).
enum GIFBlocks {
    /// Whether the file ends before its trailer.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        /// Bytes of a table of colours, by the flags before it.
        func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
        guard file.count >= 13 else { return true }
        var place = 13 + table(file[10])
        while place < file.count {
            switch file[place] {
            case 0x3b: return false  // the trailer
            case 0x21: place += 2  // an extension
            case 0x2c:  // an image: its descriptor, its colours, the size of its codes
                guard place + 9 < file.count else { return true }
                place += 10 + table(file[place + 9]) + 1
            default: return false
            }
            while place < file.count, file[place] > 0 { place += 1 + Int(file[place]) }
            place += 1
        }
        return true
    }
}
