import Vips

/// Sources to render, made of photographs: four of them side by side, each cut to 4:3, with the grain of a camera's sensor,
/// so that the detail of all outputs and the bits of the JPEG are a photograph's. A 12-megapixel JPEG comes to some
/// 4 to 5 MB.
///
/// The same photographs give the same sources.
struct Subjects {
    /// JPEG, 4000×3000.
    let large: [[UInt8]]
    /// JPEG, 1200×900.
    let small: [[UInt8]]
    /// PNG, 1200×900.
    let smallPNG: [[UInt8]]
    /// WebP, 1200×900.
    let smallWebP: [[UInt8]]
    /// PNG, 2304×1728.
    let middlePNG: [[UInt8]]
    /// WebP, 2304×1728.
    let middleWebP: [[UInt8]]
    /// GIF of four frames, 400×300.
    let animation: [UInt8]
    /// Pixels, 800×600, of which encoders are to make files.
    let pixels: [[UInt8]]

    /// Three of each kind.
    init(_ photographs: [[UInt8]]) throws {
        let all = (0..<3).map { turn in (0..<4).map { photographs[(turn + $0) % photographs.count] } }
        func make(_ width: Int, _ height: Int, _ format: Format, _ options: Operation.Arguments) throws -> [[UInt8]] {
            try all.map { try Self.collage($0, width, height).encoded(as: format, options, keeping: []) }
        }
        large = try make(4000, 3000, .jpeg, ["Q": 90])
        small = try make(1200, 900, .jpeg, ["Q": 85])
        smallPNG = try make(1200, 900, .png, [:])
        smallWebP = try make(1200, 900, .webp, ["Q": 85])
        middlePNG = try make(2304, 1728, .png, [:])
        middleWebP = try make(2304, 1728, .webp, ["Q": 85])
        animation = try Image.strip(
            try all[0].map { try Self.photograph($0, 400, 300) }, delays: [100, 100, 100, 100]
        ).encoded(as: .gif, keeping: [])
        // Made smaller, as outputs are: grain is averaged out.
        pixels = try all.map {
            let whole = try Self.collage($0, 2400, 1800)
            return try Operation.call("resize", ["in": .image(whole), "scale": .double(1 / 3.0)]).image().pixels()
        }
    }

    /// Photographs with grain, as many rows as columns of them, in a picture of this size.
    static func collage(
        _ photographs: [[UInt8]], _ width: Int, _ height: Int, across count: Int = 2
    ) throws -> Image {
        let tiles = try photographs.map { try photograph($0, width / count, height / count) }
        let joined = try Operation.call("arrayjoin", ["in": .images(tiles), "across": .int(count)]).image()
        let grain = try Operation.call(
            "gaussnoise", ["width": .int(width), "height": .int(height), "mean": 0, "sigma": 4, "seed": 1]
        ).image()
        let grainy = try Operation.call("add", ["left": .image(joined), "right": .image(grain)]).image()
        return try Operation.call("cast", ["in": .image(grainy), "format": "uchar"]).image()
    }

    /// A photograph that covers this size, in three bands.
    private static func photograph(_ bytes: [UInt8], _ width: Int, _ height: Int) throws -> Image {
        let image = try EncodedImage(bytes).open()
        let sized = try Operation.call(
            "thumbnail_image",
            ["in": .image(image), "width": .int(width), "height": .int(height), "crop": "centre"]
        ).image()
        return try Operation.call("colourspace", ["in": .image(sized), "space": "srgb"]).image().inMemory()
    }
}
