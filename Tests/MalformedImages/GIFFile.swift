/// A builder of GIFs (GIF89a specification) of two colors, block by block.
enum GIFFile {
    static let palette: [UInt8] = [0, 0, 0, 255, 255, 255]
    static let end: [UInt8] = [0x3b]

    /// The header, the canvas and the palette.
    static func canvas(_ width: Int, _ height: Int) -> [UInt8] {
        text("GIF89a") + little(width, 2) + little(height, 2) + [0x80, 0, 0] + palette
    }

    /// A frame of black pixels in LZW without compression, because the table is cleared before a code can grow.
    static func frame(_ width: Int, _ height: Int, x: Int = 0, y: Int = 0, pixels: Int? = nil) -> [UInt8] {
        var bits = BitWriter()
        // Codes of 3 bits: 0 to 3 are colors, 4 clears the table, 5 ends the data.
        for index in 0..<(pixels ?? width * height) {
            if index % 2 == 0 { bits.append(4, 3) }
            bits.append(0, 3)
        }
        bits.append(5, 3)
        return descriptor(width, height, x, y) + [2] + blocks(bits.bytes)
    }

    static func descriptor(_ width: Int, _ height: Int, _ x: Int = 0, _ y: Int = 0) -> [UInt8] {
        [0x2c] + little(x, 2) + little(y, 2) + little(width, 2) + little(height, 2) + [0]
    }

    static func picture(_ width: Int, _ height: Int) -> [UInt8] { canvas(width, height) + frame(width, height) + end }

    private static func blocks(_ bytes: [UInt8]) -> [UInt8] {
        stride(from: 0, to: bytes.count, by: 255).flatMap { start in
            let block = bytes[start..<min(start + 255, bytes.count)]
            return [UInt8(block.count)] + block
        } + [0]
    }

    /// The delay and the disposal method of a frame.
    private static func control(delay: Int, disposal: UInt8 = 0) -> [UInt8] {
        [0x21, 0xf9, 4, disposal << 2] + little(delay, 2) + [0, 0]
    }

    static func malformed() -> [MalformedImage] {
        let good = picture(60, 40)
        let pixel = frame(1, 1)
        return [
            .unsupported("GIF of 3 bytes", good.first(3)),
            .corrupt("GIF with only its signature", good.first(6)),
            .corrupt("GIF truncated in its canvas", good.first(9)),
            .corrupt("GIF truncated in its palette", good.first(16)),
            .corrupt("GIF truncated after its canvas", canvas(60, 40)),
            .corrupt("GIF truncated in its frame's header", good.first(24)),
            .corrupt("GIF truncated after its frame's header", canvas(60, 40) + descriptor(60, 40)),
            .corrupt("GIF truncated in its pixels", good.fraction(0.5)),
            .rendersOrFails("GIF without its end", good.cut(1)),
            .corrupt("GIF without frames", canvas(60, 40) + end),
            .rendersOrFails("GIF with fewer pixels than declared", canvas(60, 40) + frame(60, 40, pixels: 1000) + end),
            .rendersOrFails("GIF with more pixels than declared", canvas(60, 40) + frame(60, 40, pixels: 9000) + end),
            .rendersOrFails("GIF with codes of 13 bits", canvas(60, 40) + descriptor(60, 40) + [13, 2, 0, 0, 0] + end),
            .rendersOrFails("GIF with codes of no bits", canvas(60, 40) + descriptor(60, 40) + [0, 2, 0, 0, 0] + end),
            .rendersOrFails("GIF of zero width", canvas(0, 40) + frame(1, 1) + end),
            .rendersOrFails("GIF of zero height", canvas(60, 0) + frame(1, 1) + end),
            .rendersOrFails("GIF whose frame has zero size", canvas(60, 40) + frame(0, 0) + end),
            .rendersOrFails(
                "GIF whose frame is outside the canvas", canvas(60, 40) + frame(9, 9, x: 60_000, y: 60_000) + end),
            .rendersOrFails("GIF whose frame exceeds the canvas", canvas(60, 40) + frame(59, 39, x: 30, y: 30) + end),
            .fails(
                "GIF whose frame is much larger than its canvas",
                canvas(60, 40) + descriptor(65_535, 65_535) + [2, 1, 0x2c, 0] + end),
            .rendersOrFails("GIF that declares 50000×50000", canvas(50_000, 50_000) + frame(60, 40) + end),
            .renders("GIF of 1×65535", picture(1, 65_535)),
            .renders("GIF of 65535×1", picture(65_535, 1)),
            .tooManyFrames(
                "GIF of 10000 frames",
                canvas(60, 40) + frame(60, 40) + (0..<9999).flatMap { _ in control(delay: 0) + pixel } + end),
            .tooManyFrames(
                "GIF of 2000 frames that restore the previous one",
                canvas(600, 400) + frame(600, 400)
                    + (0..<1999).flatMap { _ in control(delay: 1, disposal: 3) + pixel } + end),
            .renders(
                "GIF whose later frames are outside the canvas",
                canvas(60, 40) + frame(60, 40) + (0..<20).flatMap { frame(9, 9, x: $0 * 3000, y: 100) } + end),
            .renders(
                "GIF with 100000 empty comments",
                canvas(60, 40) + (0..<100_000).flatMap { _ in [0x21, 0xfe, 0] as [UInt8] } + frame(60, 40) + end),
        ]
    }
}
