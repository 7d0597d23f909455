import Glibc
import HalcyonModel
import Vips

// What steps and processors are made of. Between them pictures have 8-bit samples, grey or sRGB, with straight alpha or none.

extension Image {
    /// The operation `name` on this picture.
    func calling(_ name: String, _ arguments: Operation.Arguments = [:]) throws(VipsError) -> Image {
        try Operation.call(name, arguments.merging(["in": .image(self)]) { $1 }).image()
    }

    /// Width and height.
    var size: PixelSize { PixelSize(width: width, height: height) }

    /// Samples of a pixel without alpha.
    var channels: Int { hasAlpha ? bands - 1 : bands }

    /// With alpha, opaque where there was none.
    func withAlpha() throws(VipsError) -> Image {
        hasAlpha ? self : try calling("bandjoin_const", ["c": [255]])
    }

    /// The channels without alpha.
    func withoutAlpha() throws(VipsError) -> Image {
        hasAlpha ? try calling("extract_band", ["band": 0, "n": .int(channels)]) : self
    }

    /// The alpha alone.
    func alpha() throws(VipsError) -> Image {
        try calling("extract_band", ["band": .int(bands - 1)])
    }

    /// Each sample looked up in a table: one table of 256 for each channel, `alpha` for the alpha.
    func mapped(_ tables: [[UInt8]], alpha: [UInt8] = Array(0...255)) throws(VipsError) -> Image {
        let tables = hasAlpha ? tables + [alpha] : tables
        let samples = (0..<256).flatMap { value in tables.map { $0[value] } }
        let table = try Image(pixels: samples, width: 256, height: 1, bands: tables.count)
        return try calling("maplut", ["lut": .image(table)])
    }

    /// Each alpha, or 255 where there is none, times `opacity`.
    func fading(to opacity: Double) throws(VipsError) -> Image {
        guard opacity < 1 else { return self }
        let same = [[UInt8]](repeating: Array(0...255), count: channels)
        return try withAlpha().mapped(same, alpha: .table { $0 * opacity })
    }

    /// Samples with fractions rounded to 8 bits, each multiplied by `factor` before; what is outside goes to 0 or 255.
    func inBytes(times factor: Double = 1) throws(VipsError) -> Image { try rounded(to: .uint8, times: factor) }

    /// What `body` makes of the picture when colours weigh as much as they are opaque, so that those of transparent pixels do
    /// not bleed into their neighbours. Samples of 8 or 16 bits stay such.
    func premultiplied(_ body: (Image) throws(VipsError) -> Image) throws(VipsError) -> Image {
        guard hasAlpha else { return try body(self).rounded(to: sampleFormat) }
        return try body(calling("premultiply")).calling("unpremultiply").rounded(to: sampleFormat)
    }

    private func rounded(to format: SampleFormat, times factor: Double = 1) throws(VipsError) -> Image {
        guard format != .other, format != sampleFormat || factor != 1 else { return self }
        // A cast cuts fractions off.
        return try calling("linear", ["a": .doubles([factor]), "b": [0.5]])
            .calling("cast", ["format": format == .uint8 ? "uchar" : "ushort"])
    }

    /// With `layer` laid over it: Porter and Duff's source-over. Without alpha it stays so.
    ///
    /// - Parameter layer: with alpha, as large as this picture unless `x` and `y` say where its corner lies.
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

    /// Laid over a colour, which may be transparent itself.
    func laid(on color: CSSColor) throws(VipsError) -> Image {
        guard hasAlpha, color.alpha > 0 else { return self }
        guard !color.isOpaque else { return try flattened(onto: color) }
        let picture = try ready(for: color)
        return try picture.filled(with: color).under(picture)
    }

    /// A picture like this one, with alpha, of one colour.
    func filled(with color: CSSColor) throws(VipsError) -> Image {
        let samples = samples(of: color).prefix(channels) + [Double(color.alpha)]
        return try Image(color: Array(samples), width: width, height: height)
    }
}

extension [UInt8] {
    /// 256 values of a function of 0 to 255, rounded and clamped.
    static func table(_ function: (Double) -> Double) -> [UInt8] {
        (0..<256).map { UInt8(Swift.min(Swift.max(function(Double($0)).rounded(), 0), 255)) }
    }
}

/// The transfer curve of sRGB (IEC 61966-2-1), from 0 to 1 both ways.
enum SRGB {
    /// The light that an encoded sample stands for.
    static func light(_ signal: Double) -> Double {
        signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    }

    /// The sample that stands for this light.
    static func signal(_ light: Double) -> Double {
        light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }
}
