import Vips

/// A HEIF file (ISO/IEC 14496-12 and 23008-12), box by box.
enum HEIFFile {
    static func box(_ type: String, _ content: [UInt8], size: Int? = nil) -> [UInt8] {
        big(size ?? content.count + 8, 4) + text(type) + content
    }

    static let type = box("ftyp", text("avif") + zeros(4) + text("avifmif1"))

    /// A real one: AV1 pixels cannot be made by hand.
    private static let good: [UInt8] = {
        let pixels = (0..<64 * 48 * 3).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
        do {
            return try Image(pixels: pixels, width: 64, height: 48, bands: 3)
                .encoded(as: .heif, ["compression": "av1", "effort": 0])
        } catch {
            fatalError("libvips writes no AVIF: \(error)")
        }
    }()
    /// Where the sides are said.
    private static var sides: Int { good.place(of: "ispe") + 8 }
    /// Where the pixels are.
    private static var data: Int { good.place(of: "mdat") }

    /// A good picture of some sides, which says that it has others.
    static func liar(_ width: Int, _ height: Int, says other: (Int, Int)) -> [UInt8] {
        do {
            let file = try Operation.call("black", ["width": .int(width), "height": .int(height)]).image()
                .encoded(as: .heif, ["compression": "av1", "effort": 0])
            return file.with(big(other.0, 4) + big(other.1, 4), at: file.place(of: "ispe") + 8)
        } catch {
            fatalError("libvips writes no AVIF: \(error)")
        }
    }

    static func hostile() -> [MalformedImage] {
        [
            .renders("AVIF as it should be", good),
            .unsupported("AVIF, 8 bytes", good.first(8)),
            .corrupt("AVIF, its type alone", type),
            .corrupt("AVIF cut in its description", good.first(good.place(of: "meta") + 40)),
            .corrupt("AVIF cut before its pixels", good.first(data - 4)),
            .corrupt("AVIF cut in its pixels", good.first((data + good.count) / 2)),
            .corrupt("AVIF whose pixels are zeros", good.with(zeros(good.count - data - 4), at: data + 4)),
            .corrupt("AVIF with an empty description", type + box("meta", zeros(4))),
            .fails("AVIF whose type claims 4 GiB", good.with(big(-1, 4), at: 0)),
            .corrupt("AVIF whose description claims 4 GiB", type + box("meta", zeros(64), size: 0xffff_ffff)),
            .corrupt("AVIF whose description claims 1 byte", type + box("meta", zeros(64), size: 9)),
            .corrupt("AVIF with boxes of no size", type + box("meta", zeros(4) + box("iprp", zeros(40), size: 1))),
            .corrupt(
                "AVIF with boxes in boxes in boxes",
                type + box("meta", zeros(4) + (0..<5000).reduce(into: []) { nest, _ in nest = box("iprp", nest) })),
            .corrupt(
                "AVIF with 100000 properties",
                type + box("meta", zeros(4) + box("iprp", box("ipco", (0..<100_000).flatMap { _ in box("free", []) })))),
            .corrupt(
                "AVIF with four thousand million items",
                type + box("meta", zeros(4) + box("iinf", [1, 0, 0, 0] + big(-1, 4)))),
            .corrupt(
                "AVIF whose places claim the most that fits",
                type + box("meta", zeros(4) + box("iloc", zeros(4) + [0x88, 0x88] + big(65_535, 2) + zeros(99)))),
            .fails("AVIF that claims 50000×50000", good.with(big(50_000, 4) + big(50_000, 4), at: sides)),
            .fails("AVIF of 600×400 that says 64×48", liar(600, 400, says: (64, 48))),
            .corrupt("AVIF of 6000×6000 that says 64×48", liar(6000, 6000, says: (64, 48))).boundByChild(),
            .fails("AVIF of no sides", good.with(zeros(8), at: sides)),
            .fails("AVIF of negative sides", good.with(big(-1, 4) + big(-1, 4), at: sides)),
        ]
    }
}
