/// A builder of gray baseline JPEGs (ITU-T T.81), segment by segment. The Huffman tables have one symbol each, "same as
/// before" and "end of block", so that a block of 8×8 pixels takes two bits.
enum JPEGFile {
    static let start: [UInt8] = [0xff, 0xd8]
    static let end: [UInt8] = [0xff, 0xd9]

    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xff, marker] + big(content.count + 2, 2) + content
    }

    static let tables =
        segment(0xdb, [0] + [UInt8](repeating: 1, count: 64))
        + segment(0xc4, [0x00, 1] + zeros(15) + [0])
        + segment(0xc4, [0x10, 1] + zeros(15) + [0])

    /// - Parameter marker: 0xc0 baseline, 0xc2 progressive.
    static func frame(_ width: Int, _ height: Int, components: Int = 1, marker: UInt8 = 0xc0) -> [UInt8] {
        var content: [UInt8] = [8] + big(height, 2) + big(width, 2) + big(components, 1)
        for index in 1...components { content += [UInt8(index), 0x11, 0] }
        return segment(marker, content)
    }

    static let scan = segment(0xda, [1, 1, 0x00, 0, 63, 0])

    static func blocks(_ width: Int, _ height: Int) -> [UInt8] {
        let count = ((width + 7) / 8) * ((height + 7) / 8)
        return zeros((count + 3) / 4)
    }

    /// A gray image, with more segments after its start marker.
    static func picture(_ width: Int, _ height: Int, more: [UInt8] = []) -> [UInt8] {
        start + more + tables + frame(width, height) + scan + blocks(width, height) + end
    }

    static func exif(_ tiff: [UInt8]) -> [UInt8] { segment(0xe1, text("Exif\0\0") + tiff) }

    /// A part of a color profile.
    private static func profile(_ part: UInt8, of parts: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        segment(0xe2, text("ICC_PROFILE\0") + [part, parts] + bytes)
    }

    /// A progressive image of `count` scans over few pixels. Each scan makes a decoder process all of them again.
    private static func scans(_ count: Int, _ width: Int, _ height: Int) -> [UInt8] {
        // A scan of only the first coefficients takes half the bytes of a scan of all.
        let scan = segment(0xda, [1, 1, 0x00, 0, 0, 0]) + zeros((blocks(width, height).count + 1) / 2)
        return start + tables + frame(width, height, marker: 0xc2) + (0..<count).flatMap { _ in scan } + end
    }

    static func malformed() -> [MalformedImage] {
        let good = picture(600, 400)
        let head = start + tables
        let body = scan + blocks(600, 400) + end
        let invalidProfile = big(0x7fff_ffff, 4) + zeros(12) + text("GRAYXYZ ") + zeros(12) + text("acsp") + zeros(88)
        return [
            .unsupported("JPEG of 1 byte", good.first(1)),
            .fails("JPEG of 2 bytes", good.first(2)),
            .corrupt("JPEG truncated in its tables", good.first(40)),
            .corrupt("JPEG truncated after its tables", head),
            .corrupt("JPEG truncated in its frame", (head + frame(600, 400)).cut(5)),
            .corrupt("JPEG truncated after its frame", head + frame(600, 400)),
            .corrupt("JPEG truncated in its scan's header", (head + frame(600, 400) + scan).cut(3)),
            .corrupt("JPEG truncated in its pixels", good.cut(500)),
            .rendersOrFails("JPEG truncated before its end", good.cut(500) + end),
            .rendersOrFails("JPEG without its end", good.cut(2)),
            .rendersOrFails("JPEG that declares more rows than it has", head + frame(600, 4000) + body),
            .corrupt("JPEG that declares 20 components", head + frame(600, 400, components: 20) + body),
            .corrupt(
                "JPEG that declares 255 components and has 1", head + [0xff, 0xc0, 0, 11, 8, 0, 9, 0, 9, 255] + body),
            .corrupt("JPEG of zero width", head + frame(0, 400) + body),
            .corrupt("JPEG of zero height", head + frame(600, 0) + body),
            .rendersOrFails(
                "JPEG with a segment of length 0", start + [0xff, 0xe0, 0, 0] + tables + frame(600, 400) + body),
            .corrupt("JPEG with a segment after its end", start + [0xff, 0xe0, 0xff, 0xff] + tables),
            .corrupt("JPEG without tables", start + frame(600, 400) + body),
            .corrupt("JPEG of two frames", head + frame(600, 400) + frame(60, 40) + body),
            .corrupt(
                "JPEG with a scan of unknown components", head + frame(600, 400) + segment(0xda, [1, 9, 0, 0, 63, 0])),
            .corrupt(
                "JPEG with a Huffman table of too many codes",
                start + segment(0xc4, [0] + [UInt8](repeating: 255, count: 16) + zeros(200)) + frame(9, 9) + body),
            .unsupported("lossless JPEG", head + frame(600, 400, marker: 0xc3) + body),
            .unsupported("lossless JPEG with arithmetic coding", head + frame(600, 400, marker: 0xcb)),
            .corrupt("JPEG that declares arithmetic coding but has none", head + frame(600, 400, marker: 0xc9)),
            .renders("JPEG of 1×65500", picture(1, 65_500)),
            .renders("JPEG of 65500×1", picture(65_500, 1)),
            .tooManyPixels("JPEG that declares 50000×50000", head + frame(50_000, 50_000) + body),
            .fails("JPEG that declares 65535×65535", head + frame(65_535, 65_535) + body),
            .tooManyPixels(
                "progressive JPEG that declares 8000×8000", head + frame(8000, 8000, marker: 0xc2) + body),
            .rendersOrFails("JPEG of 5000 scans", scans(5000, 400, 400)),
            .renders(
                "JPEG with 2000 comments",
                picture(600, 400, more: (0..<2000).flatMap { _ in segment(0xfe, text("again and again")) })),
            .renders(
                "JPEG with a profile that declares a wrong length",
                picture(60, 40, more: profile(1, of: 1, invalidProfile))
            ),
            .renders("JPEG with part 9 of 3 of a profile", picture(60, 40, more: profile(9, of: 3, invalidProfile))),
            .renders("JPEG with part 0 of 0 of a profile", picture(60, 40, more: profile(0, of: 0, []))),
            .renders("JPEG with EXIF of zero bytes", picture(60, 40, more: exif([]))),
        ] + InvalidEXIF.blocks.map { .renders("JPEG with EXIF \($0.name)", picture(60, 40, more: exif($0.tiff))) }
    }
}
