import Vips

/// Small valid images of all kinds that decoders distinguish.
enum SmallPictures {
    /// Bitmaps of each depth as BMP, and as icons.
    private static var bitmaps: [[UInt8]] {
        [1, 4, 8, 16, 24, 32].flatMap { bits -> [[UInt8]] in
            let palette = [UInt8](repeating: 170, count: bits <= 8 ? 4 << bits : 0)
            func header(rows: UInt8) -> [UInt8] {
                [40, 0, 0, 0, 30, 0, 0, 0, rows, 0, 0, 0, 1, 0, UInt8(bits), 0] + [UInt8](repeating: 0, count: 24)
            }
            let rows = [UInt8](repeating: 77, count: (30 * bits + 31) / 32 * 4 * 20 + 80)
            let start = 54 + palette.count
            let file =
                Array("BM".utf8) + [UInt8](repeating: 0, count: 8)
                + [UInt8(start & 255), UInt8(start >> 8), 0, 0] + header(rows: 20) + palette + rows
            let icon: [UInt8] = [0, 0, 1, 0, 1, 0, 30, 20, 0, 0, 1, 0, UInt8(bits), 0, 255, 0, 0, 0, 22, 0, 0, 0]
            return [file, icon + header(rows: 40) + palette + rows]
        }
    }

    static func all() throws -> [[UInt8]] {
        let kinds: [(Format, [String: Value])] = [
            (.jpeg, [:]), (.jpeg, ["interlace": true]), (.jpeg, ["subsample-mode": "off", "Q": 30]),
            (.png, [:]), (.png, ["interlace": true]), (.png, ["palette": true, "bitdepth": 4]),
            (.webp, [:]), (.webp, ["lossless": true]), (.webp, ["near-lossless": true]),
            (.gif, [:]), (.tiff, [:]), (.tiff, ["compression": "lzw"]),
            (.tiff, ["compression": "deflate", "tile": true]),
            (.tiff, ["compression": "jpeg"]), (.heif, ["compression": "av1", "effort": 0]),
        ]
        return try bitmaps
            + kinds.flatMap { kind in
                try [1, 2, 3, 4].map { bands in
                    let pixels = (0..<30 * 20 * bands).map { UInt8(truncatingIfNeeded: $0 * $0 / 9) }
                    return try Image(pixels: pixels, width: 30, height: 20, bands: bands).encoded(as: kind.0, kind.1)
                }
            }
    }
}
