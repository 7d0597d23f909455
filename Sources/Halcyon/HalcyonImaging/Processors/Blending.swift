import HalcyonModel
import Vips

extension Image {
    /// Blends the image with a color behind it, as CSS does (Compositing and Blending 1, sections 5 and 10).
    ///
    /// The backdrop is a single color, so each channel of the result depends on that channel alone. One lookup table
    /// and source-over are sufficient.
    func blended(_ blend: Blend) throws(VipsError) -> Image {
        let ground = blend.background
        let share = Double(ground.alpha) / 255
        let picture = try ready(for: ground)
        let tables = [ground.red, ground.green, ground.blue].prefix(picture.channels).map { channel in
            let backdrop = Double(channel) / 255
            return [UInt8].table { sample in
                (1 - share) * sample + share * 255 * blend.mode.mixing(backdrop, sample / 255)
            }
        }
        return try picture.mapped(tables).fading(to: blend.opacity).laid(on: ground)
    }
}

extension Blend.Mode {
    /// Returns B(cb, cs) of the specification, for a channel of the backdrop and of the source, 0 to 1.
    func mixing(_ backdrop: Double, _ source: Double) -> Double {
        switch self {
        case .normal: source
        case .multiply: backdrop * source
        case .screen: backdrop + source - backdrop * source
        case .overlay: Self.hardLight.mixing(source, backdrop)
        case .darken: min(backdrop, source)
        case .lighten: max(backdrop, source)
        case .colorDodge: backdrop == 0 ? 0 : source == 1 ? 1 : min(1, backdrop / (1 - source))
        case .colorBurn: backdrop == 1 ? 1 : source == 0 ? 0 : 1 - min(1, (1 - backdrop) / source)
        case .hardLight:
            source <= 0.5 ? backdrop * 2 * source : Self.screen.mixing(backdrop, 2 * source - 1)
        case .softLight:
            source <= 0.5
                ? backdrop - (1 - 2 * source) * backdrop * (1 - backdrop)
                : backdrop + (2 * source - 1) * (Self.softened(backdrop) - backdrop)
        case .difference: abs(backdrop - source)
        case .exclusion: backdrop + source - 2 * backdrop * source
        }
    }

    /// Returns D(x) of the specification's soft light.
    private static func softened(_ value: Double) -> Double {
        value <= 0.25 ? ((16 * value - 12) * value + 4) * value : value.squareRoot()
    }
}

extension Image {
    /// Composites another image of the same size over this one within its shape: Porter and Duff's source-atop. Only
    /// colors are composited, and alpha is retained. (libvips' `atop` makes them too light if this image has alpha.)
    func overlaid(with picture: Image, opacity: Double) throws(VipsError) -> Image {
        let colors = try withoutAlpha().under(picture.withAlpha().fading(to: opacity))
        return hasAlpha ? try colors.joined(with: alpha()) : colors
    }

    /// Composites another image over this one at its position, or tiles it from there with the margin between the
    /// tiles.
    ///
    /// - Parameter mark: An image of the size that ``Watermark/rect(of:on:)`` returns.
    func marked(with mark: Image, _ watermark: Watermark) throws(VipsError) -> Image {
        let place = watermark.place(of: mark.size, on: size)
        let mark = try mark.withAlpha().fading(to: watermark.opacity)
        guard watermark.tiled else { return try under(mark, x: place.x, y: place.y) }
        let tile = try mark.calling(
            "embed",
            [
                "x": 0, "y": 0, "width": .int(mark.width + watermark.margin),
                "height": .int(mark.height + watermark.margin), "extend": "black",
            ])
        let tiles = try tile.calling(
            "embed",
            [
                "x": .int(place.x), "y": .int(place.y), "width": .int(width), "height": .int(height),
                "extend": "repeat",
            ])
        return try under(tiles)
    }
}
