import Vips

/// Small valid images of all kinds that decoders distinguish.
enum SmallPictures {
    static func all() throws -> [[UInt8]] {
        let kinds: [(Format, [String: Value])] = [
            (.jpeg, [:]), (.jpeg, ["interlace": true]), (.jpeg, ["subsample-mode": "off", "Q": 30]),
            (.png, [:]), (.png, ["interlace": true]), (.png, ["palette": true, "bitdepth": 4]),
            (.webp, [:]), (.webp, ["lossless": true]), (.webp, ["near-lossless": true]),
            (.gif, [:]), (.tiff, [:]), (.tiff, ["compression": "lzw"]),
            (.tiff, ["compression": "deflate", "tile": true]),
            (.tiff, ["compression": "jpeg"]), (.heif, ["compression": "av1", "effort": 0]),
        ]
        return try kinds.flatMap { kind in
            try [1, 2, 3, 4].map { bands in
                let pixels = (0..<30 * 20 * bands).map { UInt8(truncatingIfNeeded: $0 * $0 / 9) }
                return try Image(pixels: pixels, width: 30, height: 20, bands: bands).encoded(as: kind.0, kind.1)
            }
        }
    }
}
