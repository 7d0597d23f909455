/// A builder of little-endian TIFFs (revision 6.0): header, one directory, pixels.
enum TIFFFile {
    typealias Entry = (tag: Int, type: Int, count: Int, value: Int)

    static let (short, long) = (3, 4)

    /// The entries of a gray image whose pixels are at `offset`.
    static func entries(_ width: Int, _ height: Int, rows: Int? = nil, offset: Int = 200) -> [Entry] {
        [
            (256, long, 1, width), (257, long, 1, height), (258, short, 1, 8), (259, short, 1, 1), (262, short, 1, 1),
            (273, long, 1, offset), (277, short, 1, 1), (278, long, 1, rows ?? height), (279, long, 1, width * height),
        ]
    }

    static func file(
        _ entries: [Entry], pixels: Int, directory: Int = 8, count: Int? = nil, next: Int = 0
    ) -> [UInt8] {
        let list = entries.sorted { $0.tag < $1.tag }.flatMap { (entry: Entry) -> [UInt8] in
            little(entry.tag, 2) + little(entry.type, 2) + little(entry.count, 4) + little(entry.value, 4)
        }
        let head =
            text("II*\0") + little(directory, 4) + little(count ?? entries.count, 2) + list + little(next, 4)
        return head + zeros(max(0, 200 - head.count)) + zeros(pixels)
    }

    static func picture(_ width: Int, _ height: Int) -> [UInt8] {
        file(entries(width, height), pixels: width * height)
    }

    /// An image with entries replaced or added.
    static func picture(_ width: Int, _ height: Int, _ changed: Entry..., next: Int = 0) -> [UInt8] {
        let kept = entries(width, height).filter { entry in !changed.contains { $0.tag == entry.tag } }
        return file(kept + changed, pixels: min(width * height, 1 << 20), next: next)
    }

    /// A BigTIFF with a directory of one entry, and without pixels.
    static func bigTIFF(_ entry: Entry) -> [UInt8] {
        let parts: [[UInt8]] = [
            text("II+\0"), little(8, 2), zeros(2), little(16, 8), little(1, 8), little(entry.tag, 2),
            little(entry.type, 2), little(entry.count, 8), little(entry.value, 8),
        ]
        return Array(parts.joined())
    }

    /// 60×40 pixels of one 32-bit float in the corner of a tile, which decoders decompress as a whole.
    private static func bigTile(_ side: Int) -> [UInt8] {
        let tile = Zlib.bomb(side * side * 4)
        let kept = entries(60, 40).filter { ![258, 259, 262, 273, 277, 278, 279].contains($0.tag) }
        let more: [Entry] = [
            (258, short, 1, 32), (259, short, 1, 8), (262, short, 1, 1), (277, short, 1, 1), (339, short, 1, 3),
            (322, long, 1, side), (323, long, 1, side), (324, long, 1, 200), (325, long, 1, tile.count),
        ]
        return file(kept + more, pixels: 0) + tile
    }

    static func malformed() -> [MalformedImage] {
        let good = picture(60, 40)
        let tiles: [Entry] = [(322, long, 1, 0x4000_0000), (323, long, 1, 0x4000_0000), (324, long, 1, 200)]
        let tiled = entries(60, 40).filter { ![273, 278, 279].contains($0.tag) }
        return [
            .unsupported("TIFF of 3 bytes", good.first(3)),
            .corrupt("TIFF with only its signature", good.first(4)),
            .corrupt("TIFF truncated after its header", good.first(8)),
            .corrupt("TIFF truncated in its directory", good.first(50)),
            .corrupt("TIFF without pixels", good.first(200)),
            .corrupt("TIFF truncated in its pixels", good.cut(1000)),
            .corrupt("TIFF whose directory is after its end", good.with(little(0x7fff_fff0, 4), at: 4)),
            .corrupt("TIFF whose directory is its header", good.with(little(0, 4), at: 4)),
            .corrupt("TIFF that declares 65535 entries", file(entries(60, 40), pixels: 2400, count: 65_535)),
            .corrupt("TIFF that declares no entries", file([], pixels: 2400)),
            .renders("TIFF with a cycle of directories", picture(60, 40, next: 8)),
            .renders("TIFF whose next directory is after its end", picture(60, 40, next: 0x7fff_fff0)),
            .corrupt("TIFF of zero width", picture(60, 40, (256, long, 1, 0))),
            .corrupt("TIFF of zero height", picture(60, 40, (257, long, 1, 0))),
            .fails("TIFF of negative width", picture(60, 40, (256, long, 1, -60))),
            .tooManyPixels("TIFF that declares 50000×50000", file(entries(50_000, 50_000), pixels: 2400)),
            .fails("TIFF that declares the maximum size", file(entries(0x7fff_ffff, 0x7fff_ffff), pixels: 2400)),
            .renders("TIFF of 1×65535", picture(1, 65_535)),
            .renders("TIFF of 65535×1", picture(65_535, 1)),
            .corrupt("TIFF with pixels after its end", picture(60, 40, (273, long, 1, 0x7fff_fff0))),
            .rendersOrFails("TIFF whose strip declares 4 GiB", picture(60, 40, (279, long, 1, -1))),
            .rendersOrFails("TIFF of zero rows per strip", picture(60, 40, (278, long, 1, 0))),
            .rendersOrFails("TIFF with 4 billion strips", picture(60, 40, (273, long, -1, 200))),
            .fails("TIFF of 65535 samples per pixel", picture(60, 40, (277, short, 1, 65_535))),
            .fails("TIFF of 0 samples per pixel", picture(60, 40, (277, short, 1, 0))),
            .fails("TIFF of 65535 bits per sample", picture(60, 40, (258, short, 1, 65_535))),
            .fails("TIFF of unknown compression", picture(60, 40, (259, short, 1, 9999))),
            .corrupt("TIFF with invalid LZW data", picture(60, 40, (259, short, 1, 5))),
            .corrupt("TIFF with invalid Deflate data", picture(60, 40, (259, short, 1, 8))),
            .corrupt("TIFF with invalid fax data", picture(60, 40, (259, short, 1, 4), (258, short, 1, 1))),
            .corrupt("TIFF with invalid JPEG data", picture(60, 40, (259, short, 1, 7))),
            .fails("TIFF of tiles of 2³⁰×2³⁰", file(tiled + tiles + [(325, long, 1, 2400)], pixels: 2400)),
            .fails("TIFF of a tile that decompresses to 400 MB", bigTile(9984)),
            .rendersOrFails("TIFF of a tile that decompresses to 100 MB", bigTile(4992)),
            .fails(
                "TIFF of tiles of zero size",
                file(tiled + [(322, long, 1, 0), (323, long, 1, 0), (324, long, 1, 200), (325, long, 1, 9)], pixels: 9)),
            .renders("TIFF with a tag of 4 GiB", picture(60, 40, (270, 2, -1, 200))),
            .renders("TIFF with a profile after its end", picture(60, 40, (34_675, 7, 0x7fff_ffff, 200))),
            .renders("TIFF of orientation 9", picture(60, 40, (274, short, 1, 9))),
            .renders("TIFF of orientation 0", picture(60, 40, (274, short, 1, 0))),
            .fails("BigTIFF truncated after its header", text("II+\0") + little(8, 2) + zeros(2) + little(16, 8)),
            .fails("BigTIFF with 2⁶³ − 1 values in a field", bigTIFF((258, short, .max, 0))),
            .fails("BigTIFF with values at the position 2⁶³ − 1", bigTIFF((258, short, 8, .max))),
        ]
    }
}
