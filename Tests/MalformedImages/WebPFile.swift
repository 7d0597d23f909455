/// A builder of lossless WebPs (RFC 9649) of one color, chunk by chunk. With codes of one symbol, pixels take no bits.
enum WebPFile {
    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        text(type) + little(data.count, 4) + data + zeros(data.count % 2)
    }

    static func container(_ chunks: [UInt8]) -> [UInt8] {
        text("RIFF") + little(chunks.count + 4, 4) + text("WEBP") + chunks
    }

    /// The stream of an image, followed by the bytes that a decoder may read ahead.
    static func stream(_ width: Int, _ height: Int) -> [UInt8] {
        var bits = BitWriter()
        bits.append(0x2f, 8)
        bits.append((width - 1) & 0x3fff, 14)
        bits.append((height - 1) & 0x3fff, 14)
        bits.append(0, 4)  // no alpha, version 0
        bits.append(0, 3)  // no transform, no color cache, one group of codes
        for _ in 0..<5 { bits.append(0b0001, 4) }  // simple, one symbol, of one bit, which is 0
        return bits.bytes + zeros(8)
    }

    static func picture(_ width: Int, _ height: Int) -> [UInt8] { container(chunk("VP8L", stream(width, height))) }

    /// The extended header. Flags: 0x20 profile, 0x10 alpha, 8 EXIF, 4 XMP, 2 animation.
    static func extended(_ flags: UInt8, _ width: Int, _ height: Int) -> [UInt8] {
        chunk("VP8X", [flags, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3))
    }

    static let animation = chunk("ANIM", zeros(6))

    static func frame(_ width: Int, _ height: Int, x: Int = 0, y: Int = 0, _ stream: [UInt8]) -> [UInt8] {
        chunk(
            "ANMF",
            little(x / 2, 3) + little(y / 2, 3) + little(width - 1, 3) + little(height - 1, 3) + little(10, 3) + [0]
                + chunk("VP8L", stream))
    }

    static func malformed() -> [MalformedImage] {
        let good = picture(60, 40)
        let pixel = frame(1, 1, stream(1, 1))
        let still = chunk("VP8L", stream(60, 40))
        let moving = extended(2, 60, 40) + animation
        return [
            .unsupported("WebP of 8 bytes", good.first(8)),
            .fails("WebP with only its signature", good.first(12)),
            .fails("WebP truncated in its chunk's header", good.first(18)),
            .corrupt("WebP truncated in the header of its image", good.first(23)),
            .corrupt("WebP truncated in its codes", good.first(26)),
            .fails("WebP that declares itself empty", good.with(little(0, 4), at: 4)),
            .fails("WebP whose container declares 4 GiB", good.with(little(-1, 4), at: 4)),
            .fails("WebP whose image declares 4 GiB", good.with(little(-1, 4), at: 16)),
            .fails("WebP whose image declares no bytes", good.with(little(0, 4), at: 16)),
            .fails("WebP without an image", container([])),
            .fails("WebP without an image, extended", container(extended(0, 60, 40))),
            .fails("WebP with the wrong magic number", container(chunk("VP8L", stream(60, 40).with([0x2e], at: 0)))),
            .fails("lossy WebP of zeros", container(chunk("VP8 ", zeros(64)))),
            .fails("WebP whose canvas differs from its image", container(extended(0, 600, 400) + still)),
            // libvips allocates the canvas when it reads the header, which may exceed the memory limit of a child.
            .fails("WebP of 16383×16383 in 40 bytes", picture(16_383, 16_383)),
            .fails("WebP whose canvas declares 50000×50000", container(extended(0, 50_000, 50_000) + still)),
            .fails("WebP whose canvas declares 2²⁴×2²⁴", container(extended(2, 1 << 24, 1 << 24) + animation + pixel)),
            .renders("WebP of 1×16383", picture(1, 16_383)),
            .renders("WebP of 16383×1", picture(16_383, 1)),
            .fails("animated WebP without frames", container(moving)),
            .corrupt("animated WebP truncated in its first frame", container(moving + pixel).cut(20)),
            .fails(
                "animated WebP with a frame outside its canvas",
                container(moving + frame(60, 40, x: 100_000, y: 100_000, stream(60, 40)))),
            .fails(
                "animated WebP with a frame larger than its canvas",
                container(moving + frame(6000, 4000, stream(6000, 4000)))),
            .rendersOrFails(
                "animated WebP whose frame differs from its image", container(moving + frame(9, 9, stream(50, 3)))),
            .tooManyFrames(
                "WebP of 10000 frames",
                container(moving + frame(60, 40, stream(60, 40)) + (0..<9999).flatMap { _ in pixel })),
            .renders(
                "WebP with EXIF of orientation 9",
                container(
                    extended(8, 60, 40) + still + chunk("EXIF", InvalidEXIF.blocks[1].tiff))),
            .renders(
                "WebP with EXIF with a cycle of directories",
                container(
                    extended(8, 60, 40) + still + chunk("EXIF", InvalidEXIF.blocks[7].tiff))),
            .renders(
                "WebP with a profile of one byte", container(extended(0x20, 60, 40) + chunk("ICCP", [7]) + still)),
        ]
    }
}
