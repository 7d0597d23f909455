/// The chunks of a PNG file (W3C PNG, section 5).
enum PNGChunks {
    /// The file without compressed text (zTXt, and iTXt where it is compressed) beyond the first 16 KiB of it. Bytes that
    /// are no PNG come back as they are, and so does what stands behind a damaged chunk.
    ///
    /// libpng unpacks such text into memory as soon as it meets it, up to 8 MB a chunk and 1000 chunks: a file of 700 KB
    /// would take gigabytes before its header is known. 16 KiB become 17 MB at most, for deflate makes no less than a
    /// 1032nd of anything. Text that is not compressed is no longer than the file, and stays.
    static func withoutCompressedText(_ file: [UInt8]) -> [UInt8] {
        guard file.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) else { return file }
        var kept: [Range<Int>] = []
        var place = 8
        var start = 0
        var room = 16 << 10
        while place + 12 <= file.count {
            let length = file[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
            let end = place + 12 + length
            guard end <= file.count else { break }
            if isCompressedText(file[place + 4..<end - 4]) {
                room -= length
                if room < 0 {
                    kept.append(start..<place)
                    start = end
                }
            }
            place = end
        }
        guard start > 0 else { return file }
        return (kept + [start..<file.count]).reduce(into: []) { $0 += file[$1] }
    }

    /// Whether the file ends before its last chunk does.
    static func isTruncated(_ file: [UInt8]) -> Bool {
        var place = 8
        while place + 12 <= file.count {
            if file[place + 4..<place + 8].elementsEqual("IEND".utf8) { return false }
            place += 12 + file[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
        }
        return true
    }

    /// - Parameter chunk: its type and data.
    private static func isCompressedText(_ chunk: ArraySlice<UInt8>) -> Bool {
        let data = chunk.dropFirst(4)
        if chunk.starts(with: "zTXt".utf8) { return true }
        guard chunk.starts(with: "iTXt".utf8), let zero = data.firstIndex(of: 0) else { return false }
        // The flag stands behind the keyword.
        return data.dropFirst(zero + 1 - data.startIndex).first ?? 0 != 0
    }
}
