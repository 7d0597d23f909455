import Vips

/// A builder of HEIF files (ISO/IEC 14496-12 and 23008-12), box by box.
enum HEIFFile {
    static func box(_ type: String, _ content: [UInt8], size: Int? = nil) -> [UInt8] {
        big(size ?? content.count + 8, 4) + text(type) + content
    }

    static let type = box("ftyp", text("avif") + zeros(4) + text("avifmif1"))

    /// A valid file from libvips, because AV1 pixels need an encoder.
    private static let good: [UInt8] = {
        let pixels = (0..<64 * 48 * 3).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
        do {
            return try Image(pixels: pixels, width: 64, height: 48, bands: 3)
                .encoded(as: .heif, ["compression": "av1", "effort": 0])
        } catch {
            fatalError("libvips cannot write AVIF: \(error)")
        }
    }()
    /// The offset of the width and height.
    private static var sizeOffset: Int { good.offset(of: "ispe") + 8 }
    /// The offset of the pixels.
    private static var dataOffset: Int { good.offset(of: "mdat") }

    /// A valid image whose header declares another size.
    static func image(_ width: Int, _ height: Int, declaring other: (Int, Int)) -> [UInt8] {
        do {
            let file = try Operation.call("black", ["width": .int(width), "height": .int(height)]).image()
                .encoded(as: .heif, ["compression": "av1", "effort": 0])
            return file.with(big(other.0, 4) + big(other.1, 4), at: file.offset(of: "ispe") + 8)
        } catch {
            fatalError("libvips cannot write AVIF: \(error)")
        }
    }

    static func malformed() -> [MalformedImage] {
        [
            .renders("valid AVIF", good),
            .unsupported("AVIF of 8 bytes", good.first(8)),
            .corrupt("AVIF with only its type", type),
            .corrupt("AVIF truncated in its description", good.first(good.offset(of: "meta") + 40)),
            .corrupt("AVIF truncated before its pixels", good.first(dataOffset - 4)),
            .corrupt("AVIF truncated in its pixels", good.first((dataOffset + good.count) / 2)),
            .corrupt("AVIF whose pixels are zeros", good.with(zeros(good.count - dataOffset - 4), at: dataOffset + 4)),
            .corrupt("AVIF with an empty description", type + box("meta", zeros(4))),
            .fails("AVIF whose type declares 4 GiB", good.with(big(-1, 4), at: 0)),
            .corrupt("AVIF whose description declares 4 GiB", type + box("meta", zeros(64), size: 0xffff_ffff)),
            .corrupt("AVIF whose description declares 1 byte", type + box("meta", zeros(64), size: 9)),
            .corrupt("AVIF with boxes of zero size", type + box("meta", zeros(4) + box("iprp", zeros(40), size: 1))),
            .corrupt(
                "AVIF with deeply nested boxes",
                type + box("meta", zeros(4) + (0..<5000).reduce(into: []) { nest, _ in nest = box("iprp", nest) })),
            .corrupt(
                "AVIF with 100000 properties",
                type + box("meta", zeros(4) + box("iprp", box("ipco", (0..<100_000).flatMap { _ in box("free", []) })))),
            .corrupt(
                "AVIF with four billion items",
                type + box("meta", zeros(4) + box("iinf", [1, 0, 0, 0] + big(-1, 4)))),
            .corrupt(
                "AVIF that declares 65535 item locations",
                type + box("meta", zeros(4) + box("iloc", zeros(4) + [0x88, 0x88] + big(65_535, 2) + zeros(99)))),
            .fails("AVIF that declares 50000×50000", good.with(big(50_000, 4) + big(50_000, 4), at: sizeOffset)),
            .fails("AVIF of 600×400 that declares 64×48", image(600, 400, declaring: (64, 48))),
            .corrupt("AVIF of 6000×6000 that declares 64×48", image(6000, 6000, declaring: (64, 48))).boundByChild(),
            .fails("AVIF of zero size", good.with(zeros(8), at: sizeOffset)),
            .fails("AVIF of negative size", good.with(big(-1, 4) + big(-1, 4), at: sizeOffset)),
        ]
    }
}
