/// BMP and ICO files, and JPEG 2000.
enum BitmapFile {
    /// The header of a bitmap: 40 bytes.
    static func header(
        _ width: Int, _ height: Int, bits: Int = 24, compression: Int = 0, colors: Int = 0
    ) -> [UInt8] {
        little(40, 4) + little(width, 4) + little(height, 4) + little(1, 2) + little(bits, 2) + little(compression, 4)
            + zeros(12) + little(colors, 4) + zeros(4)
    }

    /// A BMP file with a header and what follows it.
    static func file(_ header: [UInt8], start: Int = 54, _ rest: [UInt8]) -> [UInt8] {
        text("BM") + little(14 + header.count + rest.count, 4) + zeros(4) + little(start, 4) + header + rest
    }

    /// A valid picture.
    static func picture(_ width: Int, _ height: Int) -> [UInt8] {
        file(header(width, height), [UInt8](repeating: 90, count: (width * 24 + 31) / 32 * 4 * height))
    }

    /// An icon with one entry.
    static func icon(_ picture: [UInt8], size: Int? = nil, position: Int = 22, count: Int = 1) -> [UInt8] {
        [0, 0, 1, 0] + little(count, 2) + [0, 0, 0, 0, 1, 0, 32, 0] + little(size ?? picture.count, 4)
            + little(position, 4) + picture
    }

    static func malformed() -> [MalformedImage] {
        [
            .renders("BMP: a picture", picture(60, 40)),
            .renders("BMP: top-down", file(header(60, -40), zeros(180 * 40))),
            .renders("BMP: bytes after the rows", picture(60, 40) + MalformedImage.page),
            .renders(
                "BMP: indices beyond the palette",
                file(header(60, 40, bits: 8, colors: 2), start: 62, zeros(8) + [UInt8](repeating: 99, count: 2400))),
            .corrupt("BMP: cut in its header", picture(60, 40).first(30)),
            .corrupt("BMP: cut in its rows", picture(60, 40).first(2000)),
            .corrupt("BMP: no size", file(header(0, 0), zeros(60))),
            .corrupt("BMP: negative width", file(header(-60, 40), zeros(7200))),
            .corrupt("BMP: the smallest height", file(header(60, -0x8000_0000), zeros(7200))),
            .fails("BMP: 50000×50000 pixels of one bit", file(header(50_000, 50_000, bits: 1), start: 62, zeros(100))),
            .corrupt("BMP: 10⁹ columns", file(header(1_000_000_000, 1), zeros(100))),
            .corrupt("BMP: rows before the header's end", file(header(60, 40), start: 20, zeros(7200))),
            .corrupt("BMP: rows beyond the end", file(header(60, 40), start: 0xffff_ffff, zeros(7200))),
            .renders("BMP: four billion colors", file(header(60, 40, bits: 8, colors: 0xffff_ffff), zeros(2400))),
            .unsupported(
                "BMP: run-length encoding",
                file(header(60, 40, bits: 8, compression: 1, colors: 1), start: 58, zeros(2400))),
            .unsupported("BMP: a PNG inside", file(header(60, 40, bits: 0, compression: 5), zeros(200))),
            .unsupported("BMP: no bit masks", file(header(60, 40, bits: 32, compression: 3), start: 66, zeros(9612))),
            .renders("ICO: a bitmap", icon(Array(file(header(32, 64), zeros(96 * 32 + 128)).dropFirst(14)))),
            .renders("ICO: a PNG", icon(PNGFile.picture(60, 40))),
            .corrupt("ICO: a truncated PNG", icon(PNGFile.picture(60, 40).fraction(0.5))),
            .fails(
                "ICO: a PNG of 50000×50000 pixels",
                icon(PNGFile.picture(60, 40).with(big(50_000, 4) + big(50_000, 4), at: 16))),
            .corrupt("ICO: an image beyond the end", icon(zeros(40), position: 9999)),
            .corrupt("ICO: a JPEG", icon(JPEGFile.picture(60, 40))),
            .corrupt("ICO: an icon", icon(icon(PNGFile.picture(60, 40)))),
            .unsupported("ICO: 65535 entries", icon(zeros(40), count: 65_535)),
            .corrupt("JPEG 2000: a signature", [0, 0, 0, 12] + text("jP  \r\n") + [0x87, 0x0a] + zeros(100)),
            .corrupt("JPEG 2000: a codestream of zeros", [0xff, 0x4f, 0xff, 0x51] + zeros(200)),
            .fails(
                "JPEG 2000: a size of four billion",
                [0xff, 0x4f, 0xff, 0x51, 0, 47, 0, 0]
                    + [UInt8](repeating: 0xff, count: 8) + zeros(8) + [UInt8](repeating: 0xff, count: 8) + zeros(8)
                    + [0, 3, 7, 1, 1, 7, 1, 1, 7, 1, 1] + zeros(100)),
        ]
    }
}
