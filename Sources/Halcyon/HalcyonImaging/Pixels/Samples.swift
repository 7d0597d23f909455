import Glibc
import HalcyonModel
import Vips

// The building blocks of steps and processors. Between them images have 8-bit samples, grey or sRGB, with straight
// alpha or without alpha.

extension Image {
    /// Calls the operation `name` on this image.
    func calling(_ name: String, _ arguments: Operation.Arguments = [:]) throws(VipsError) -> Image {
        try Operation.call(name, arguments.merging(["in": .image(self)]) { $1 }).image()
    }

    /// Calls the operation `name` on this image and another one.
    func combined(_ name: String, _ other: Image) throws(VipsError) -> Image {
        try Operation.call(name, ["left": .image(self), "right": .image(other)]).image()
    }

    /// The size in pixels.
    var size: PixelSize { PixelSize(width: width, height: height) }

    /// The number of bands without alpha.
    var channels: Int { hasAlpha ? bands - 1 : bands }

    /// Adds an opaque alpha if there is none.
    func withAlpha() throws(VipsError) -> Image {
        hasAlpha ? self : try calling("bandjoin_const", ["c": [sampleFormat == .uint16 ? 65_535 : 255]])
    }

    /// Removes alpha.
    func withoutAlpha() throws(VipsError) -> Image {
        hasAlpha ? try calling("extract_band", ["band": 0, "n": .int(channels)]) : self
    }

    /// Extracts alpha.
    func alpha() throws(VipsError) -> Image {
        try calling("extract_band", ["band": .int(bands - 1)])
    }

    /// Maps each sample through a table: one table of 256 values for each channel, and `alpha` for alpha.
    func mapped(_ tables: [[UInt8]], alpha: [UInt8] = Array(0...255)) throws(VipsError) -> Image {
        let tables = hasAlpha ? tables + [alpha] : tables
        let samples = (0..<256).flatMap { value in tables.map { $0[value] } }
        let table = try Image(pixels: samples, width: 256, height: 1, bands: tables.count)
        return try calling("maplut", ["lut": .image(table)])
    }

    /// Multiplies alpha, or 255 without alpha, by `opacity`.
    func fading(to opacity: Double) throws(VipsError) -> Image {
        guard opacity < 1 else { return self }
        let same = [[UInt8]](repeating: Array(0...255), count: channels)
        return try withAlpha().mapped(same, alpha: .table { $0 * opacity })
    }

    /// Multiplies samples by `factor`, rounds them to 8 bits and clamps them.
    func inBytes(times factor: Double = 1) throws(VipsError) -> Image { try rounded(to: .uint8, times: factor) }

    /// Runs `body` on the image with premultiplied alpha, so that the colors of transparent pixels do not bleed into
    /// their neighbors. 8-bit and 16-bit samples keep their format.
    func premultiplied(_ body: (Image) throws(VipsError) -> Image) throws(VipsError) -> Image {
        guard hasAlpha else { return try body(self).rounded(to: sampleFormat) }
        return try body(calling("premultiply")).calling("unpremultiply").rounded(to: sampleFormat)
    }

    private func rounded(to format: SampleFormat, times factor: Double = 1) throws(VipsError) -> Image {
        guard format != .other, format != sampleFormat || factor != 1 else { return self }
        // A cast truncates fractions.
        return try calling("linear", ["a": .doubles([factor]), "b": [0.5]])
            .calling("cast", ["format": format == .uint8 ? "uchar" : "ushort"])
    }

    /// Composites `layer` over this image: Porter and Duff's source-over. An image without alpha remains without it.
    ///
    /// - Parameter layer: An image with alpha, as large as this image unless `x` and `y` give the position of its
    ///   corner.
    func under(_ layer: Image, x: Int = 0, y: Int = 0) throws(VipsError) -> Image {
        let base = channels < layer.channels ? try inColour() : self
        let layer = layer.channels < channels ? try layer.inColour() : layer
        let laid = try Operation.call(
            "composite2",
            [
                "base": .image(base), "overlay": .image(layer), "mode": "over", "x": .int(x), "y": .int(y),
            ]
        ).image().inBytes()
        return hasAlpha ? laid : try laid.withoutAlpha()
    }

    /// Composites the image over a color, which may be transparent.
    func laid(on color: CSSColor) throws(VipsError) -> Image {
        guard hasAlpha, color.alpha > 0 else { return self }
        guard !color.isOpaque else { return try flattened(onto: color) }
        let picture = try ready(for: color)
        return try picture.filled(with: color).under(picture)
    }

    /// Creates an image of the same size with alpha, filled with one color.
    func filled(with color: CSSColor) throws(VipsError) -> Image {
        let samples = samples(of: color).prefix(channels) + [Double(color.alpha)]
        return try Image(color: Array(samples), width: width, height: height)
    }
}

extension [UInt8] {
    /// Returns 256 values of a function of 0 to 255, rounded and clamped.
    static func table(_ function: (Double) -> Double) -> [UInt8] {
        (0..<256).map { UInt8(Swift.min(Swift.max(function(Double($0)).rounded(), 0), 255)) }
    }
}

/// The transfer curve of sRGB (IEC 61966-2-1), from 0 to 1 in both directions.
enum SRGB {
    /// Returns the linear value of an encoded sample.
    static func light(_ signal: Double) -> Double {
        signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    }

    /// Returns the encoded sample of a linear value.
    static func signal(_ light: Double) -> Double {
        light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }
}
