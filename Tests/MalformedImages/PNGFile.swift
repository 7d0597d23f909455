/// A builder of PNGs (W3C PNG, third edition), chunk by chunk.
enum PNGFile {
    static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    static let end = chunk("IEND", [])

    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(data.count, 4) + text(type) + data + big(crc32(text(type) + data), 4)
    }

    /// - Parameter color: 0 gray, 2 RGB, 3 palette.
    static func header(_ width: Int, _ height: Int, depth: Int = 8, color: Int = 0, interlace: Int = 0) -> [UInt8] {
        chunk("IHDR", big(width, 4) + big(height, 4) + [depth, color, 0, 0, interlace].map(UInt8.init))
    }

    /// Black pixels of one byte each. Every row begins with its filter type.
    static func pixels(_ width: Int, _ height: Int) -> [UInt8] {
        chunk("IDAT", Zlib.stored(zeros((width + 1) * height)))
    }

    /// A gray image, with more chunks between its header and its pixels.
    static func picture(_ width: Int, _ height: Int, more: [UInt8] = []) -> [UInt8] {
        signature + header(width, height) + more + pixels(width, height) + end
    }

    /// A chunk with a compressed text or profile that decompresses to at least `count` bytes.
    private static func bomb(_ type: String, _ count: Int) -> [UInt8] {
        chunk(type, text("bomb\0") + (type == "iTXt" ? text("\u{1}\0\0\0") : [0]) + Zlib.bomb(count, of: 0x41))
    }

    private static func crc32(_ bytes: [UInt8]) -> Int {
        var crc: UInt32 = 0xffff_ffff
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? 0xedb8_8320 ^ crc >> 1 : crc >> 1 }
        }
        return Int(~crc)
    }

    static func malformed() -> [MalformedImage] {
        let good = picture(60, 40)
        let frame = chunk("acTL", big(1_000_000, 4) + big(0, 4))
        let profile = big(0x7fff_ffff, 4) + zeros(12) + text("RGB XYZ ") + zeros(120)
        return [
            .unsupported("PNG of 4 bytes of its signature", good.first(4)),
            .corrupt("PNG with only its signature", good.first(8)),
            .corrupt("PNG truncated in its header", good.first(20)),
            .corrupt("PNG truncated after its header", good.first(33)),
            .corrupt("PNG truncated in the length of its pixels", good.first(35)),
            .corrupt("PNG truncated in its pixels", good.fraction(0.5)),
            .corrupt("PNG without pixels", signature + header(60, 40) + end),
            .rendersOrFails("PNG without its end", good.cut(12)),
            .rendersOrFails("PNG truncated before the checksum of its pixels", good.cut(16)),
            .corrupt("PNG with fewer rows than declared", signature + header(60, 80) + pixels(60, 40) + end),
            .renders("PNG with more rows than declared", signature + header(60, 20) + pixels(60, 40) + end),
            .corrupt("PNG with a wrong checksum of its header", good.with([0, 0, 0, 0], at: 29)),
            .rendersOrFails(
                "PNG with a wrong checksum of its pixels", good.with([0, 0, 0, 0], at: good.count - 16)),
            .corrupt("PNG whose pixels declare 2 GiB", good.with(big(0x7fff_ffff, 4), at: 33)),
            .corrupt("PNG whose pixels declare −1 bytes", good.with(big(-1, 4), at: 33)),
            .corrupt("PNG of zero width", signature + header(0, 40) + pixels(1, 40) + end),
            .corrupt("PNG of zero height", signature + header(60, 0) + pixels(60, 1) + end),
            .corrupt("PNG of negative width", signature + header(-60, 40) + pixels(60, 40) + end),
            .corrupt("PNG of bit depth 3", signature + header(60, 40, depth: 3) + pixels(60, 40) + end),
            .corrupt("PNG of color type 5", signature + header(60, 40, color: 5) + pixels(60, 40) + end),
            .corrupt("PNG of interlace method 9", signature + header(60, 40, interlace: 9) + pixels(60, 40) + end),
            .corrupt(
                "PNG of palette colors without a palette", signature + header(60, 40, color: 3) + pixels(60, 40) + end),
            .renders("PNG of 1×65535", picture(1, 65535)),
            .renders("PNG of 65535×1", picture(65535, 1)),
            .tooManyPixels("PNG that declares 50000×50000", signature + header(50_000, 50_000) + pixels(60, 40) + end),
            .fails(
                "PNG that declares the maximum width", signature + header(0x7fff_ffff, 1) + pixels(60, 40) + end),
            .tooManyPixels(
                "PNG of 10000×10000 zeros compressed to a 159th",
                signature + header(10_000, 10_000) + chunk("IDAT", Zlib.bomb(10_001 * 10_000)) + end),
            .renders(
                "PNG of 60×40 whose pixels decompress to 100 MB",
                signature + header(60, 40) + chunk("IDAT", Zlib.bomb(100_000_000)) + end),
            // libpng skips an oversized profile and excess texts, where libspng rejects the file.
            .rendersOrFails(
                "PNG with a profile that decompresses to 100 MB", picture(60, 40, more: bomb("iCCP", 100_000_000))),
            .renders("PNG with text that decompresses to 100 MB", picture(60, 40, more: bomb("zTXt", 100_000_000))),
            .renders(
                "PNG with 90 texts that decompress to 5 MB each",
                picture(60, 40, more: [[UInt8]](repeating: bomb("zTXt", 5_000_000), count: 90).flatMap { $0 })),
            .renders(
                "PNG with 90 international texts that decompress to 5 MB each",
                picture(60, 40, more: [[UInt8]](repeating: bomb("iTXt", 5_000_000), count: 90).flatMap { $0 })),
            .renders(
                "PNG with 90 texts that decompress to 5 MB each, after its pixels",
                picture(60, 40).cut(12)
                    + [[UInt8]](repeating: bomb("zTXt", 5_000_000), count: 90).flatMap { $0 } + end),
            .rendersOrFails(
                "PNG with 20000 texts",
                picture(
                    60, 40,
                    more: (0..<20_000).flatMap { (key: Int) -> [UInt8] in chunk("tEXt", text("key \(key)\0value")) })),
            .renders(
                "PNG with a profile that declares a wrong length",
                picture(60, 40, more: chunk("iCCP", text("liar\0\0") + Zlib.stored(profile)))),
            .renders("PNG that declares a million frames", picture(60, 40, more: frame)),
            .renders("PNG with an empty chunk of pixels first", picture(60, 40, more: chunk("IDAT", []))),
            .corrupt("PNG with an unknown critical chunk", picture(60, 40, more: chunk("EVIL", zeros(9)))),
            .renders("PNG with EXIF of one byte", picture(60, 40, more: chunk("eXIf", [0x4d]))),
        ]
            + InvalidEXIF.blocks.map {
                .renders("PNG with EXIF \($0.name)", picture(60, 40, more: chunk("eXIf", $0.tiff)))
            }
    }
}
