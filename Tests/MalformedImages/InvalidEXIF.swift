/// Invalid EXIF blocks (CIPA DC-008). Images with them are rendered as if they had no EXIF.
enum InvalidEXIF {
    /// A block of one directory at `offset` with these entries, in little-endian order.
    static func block(_ entries: [[UInt8]], at offset: Int = 8, next: Int = 0) -> [UInt8] {
        text("II*\0") + little(offset, 4) + little(entries.count, 2) + entries.flatMap { $0 } + little(next, 4)
    }

    static func entry(_ tag: Int, type: Int = 3, count: Int = 1, _ value: Int) -> [UInt8] {
        little(tag, 2) + little(type, 2) + little(count, 4) + little(value, 4)
    }

    static let orientation = 0x112

    static let blocks: [(name: String, tiff: [UInt8])] = [
        ("of orientation 0", block([entry(orientation, 0)])),
        ("of orientation 9", block([entry(orientation, 9)])),
        ("of orientation 65535", block([entry(orientation, 65535)])),
        ("whose orientation is text", block([entry(orientation, type: 2, count: 4, 0x0036_3636)])),
        ("of four billion orientations", block([entry(orientation, count: -1, 6)])),
        ("whose directory is after its end", block([entry(orientation, 1)], at: 0x7fff_fff0)),
        ("whose directory is before its start", block([entry(orientation, 1)], at: -8)),
        ("with a cycle of directories", block([entry(0x8769, type: 4, 8), entry(orientation, 1)], next: 8)),
        ("that declares 65535 entries", text("II*\0") + little(8, 4) + little(65535, 2) + entry(orientation, 1)),
        ("with a thumbnail after its end", block([entry(0x201, type: 4, 0x7fff_ffff), entry(0x202, type: 4, -1)])),
        ("truncated in its directory", block([entry(orientation, 1)]).first(14)),
    ]
}
