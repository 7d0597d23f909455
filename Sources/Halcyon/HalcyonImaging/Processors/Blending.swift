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
        guard blend.mode.isSeparable else {
            let mixed = try picture.filled(with: ground).mixing(picture.withAlpha(), by: blend.mode)
            let colors = picture.hasAlpha ? mixed : try mixed.withoutAlpha()
            return try colors.fading(to: blend.opacity).laid(on: ground)
        }
        let tables = [ground.red, ground.green, ground.blue].prefix(picture.channels).map { channel in
            let backdrop = Double(channel) / 255
            return [UInt8].table { sample in
                (1 - share) * sample + share * 255 * blend.mode.mixing(backdrop, sample / 255)
            }
        }
        return try picture.mapped(tables).fading(to: blend.opacity).laid(on: ground)
    }
}

extension BlendMode {
    /// Returns B(Cb, Cs) of the specification for the colors of the backdrop and of the source, 0 to 1.
    func mixing(_ backdrop: SIMD3<Double>, _ source: SIMD3<Double>) -> SIMD3<Double> {
        switch self {
        case .hue:
            source.withSaturation(backdrop.saturation).withLuminosity(backdrop.luminosity)
        case .saturation: backdrop.withSaturation(source.saturation).withLuminosity(backdrop.luminosity)
        case .color: source.withLuminosity(backdrop.luminosity)
        case .luminosity: backdrop.withLuminosity(source.luminosity)
        default:
            SIMD3(
                mixing(backdrop.x, source.x), mixing(backdrop.y, source.y), mixing(backdrop.z, source.z))
        }
    }

    /// Returns B(cb, cs) of the specification, for a channel of the backdrop and of the source, 0 to 1. The mode is
    /// separable.
    func mixing(_ backdrop: Double, _ source: Double) -> Double {
        switch self {
        case .normal, .hue, .saturation, .color, .luminosity: source
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

extension SIMD3<Double> {
    /// The three samples from an index on, 0 to 255.
    init(samples: [UInt8], at first: Int) {
        self.init(Double(samples[first]), Double(samples[first + 1]), Double(samples[first + 2]))
    }
}

// The functions of section 10.2 of the specification.
extension SIMD3<Double> {
    fileprivate var luminosity: Double { 0.3 * x + 0.59 * y + 0.11 * z }

    fileprivate var saturation: Double { self.max() - self.min() }

    /// SetLum: moves the color to another luminosity, and clips it towards that.
    fileprivate func withLuminosity(_ luminosity: Double) -> SIMD3<Double> {
        let color = self + (luminosity - self.luminosity)
        let gray = color.luminosity
        let (least, greatest) = (color.min(), color.max())
        var clipped = color
        if least < 0 { clipped = gray + (clipped - gray) * (gray / (gray - least)) }
        if greatest > 1 { clipped = gray + (clipped - gray) * ((1 - gray) / (greatest - gray)) }
        return clipped
    }

    /// SetSat: stretches the channels, so that the least becomes 0 and the greatest the saturation.
    fileprivate func withSaturation(_ saturation: Double) -> SIMD3<Double> {
        self.saturation > 0 ? (self - self.min()) * (saturation / self.saturation) : .zero
    }
}

extension Image {
    /// Composites a layer over this image after mixing their colors by a mode (Compositing and Blending 1, section
    /// 5.1). An image without alpha remains without it.
    ///
    /// The modes of libvips' `composite` are those of the specification only for opaque layers: it multiplies the mixed
    /// colors by the opacity of the layer twice.
    ///
    /// - Parameter layer: An image with alpha, whose corner is at `x` and `y` of this image.
    func under(_ layer: Image, x: Int = 0, y: Int = 0, by mode: BlendMode) throws(VipsError) -> Image {
        let (left, top) = (max(0, x), max(0, y))
        let (right, bottom) = (min(width, x + layer.width), min(height, y + layer.height))
        // A layer beside the image changes nothing.
        guard left < right, top < bottom else { return self }
        let visible = try layer.cropped(left - x, top - y, right - left, bottom - top)
        guard mode != .normal else { return try under(visible, x: left, y: top) }
        let covered = try cropped(left, top, right - left, bottom - top).withAlpha()
        return try under(covered.mixing(visible, by: mode), x: left, y: top)
    }

    /// Returns the layer with its colors mixed with those of this image, weighted by the opacity of this image: the
    /// first step of blending. Both images have alpha and the same size.
    fileprivate func mixing(_ layer: Image, by mode: BlendMode) throws(VipsError) -> Image {
        let below = try inColour().pixels()
        var mixed = try layer.inColour().pixels()
        // The mixed samples of all pairs of samples, by that of the backdrop.
        let table: [Double] =
            mode.isSeparable
            ? (0..<65_536).map { (pair: Int) -> Double in
                mode.mixing(Double(pair >> 8) / 255, Double(pair & 255) / 255) * 255
            } : []
        for first in stride(from: 0, to: mixed.count, by: 4) where mixed[first + 3] > 0 && below[first + 3] > 0 {
            let share = Double(below[first + 3]) / 255
            let source = SIMD3(samples: mixed, at: first)
            let result: SIMD3<Double>
            if mode.isSeparable {
                func mix(_ channel: Int) -> Double {
                    table[Int(below[first + channel]) << 8 | Int(mixed[first + channel])]
                }
                result = SIMD3(mix(0), mix(1), mix(2))
            } else {
                result = mode.mixing(SIMD3(samples: below, at: first) / 255, source / 255) * 255
            }
            let weighted = source + (result - source) * share
            for channel in 0..<3 { mixed[first + channel] = UInt8(min(max(weighted[channel], 0), 255).rounded()) }
        }
        return try Image(pixels: mixed, width: layer.width, height: layer.height, bands: 4)
    }
}

extension Image {
    /// Composites another image of the same size over this one within its shape: Porter and Duff's source-atop. Only
    /// colors are composited, and alpha is retained. (libvips' `atop` makes them too light if this image has alpha.)
    func overlaid(with picture: Image, opacity: Double, by mode: BlendMode) throws(VipsError) -> Image {
        let colors = try withoutAlpha().under(picture.withAlpha().fading(to: opacity), by: mode)
        return hasAlpha ? try colors.joined(with: alpha()) : colors
    }

    /// Composites another image over this one at its position, or tiles it from there with the margin between the
    /// tiles.
    ///
    /// - Parameter mark: An image of the size that ``Watermark/rect(of:on:)`` returns.
    func marked(with mark: Image, _ watermark: Watermark) throws(VipsError) -> Image {
        let place = watermark.place(of: mark.size, on: size)
        let mark = try mark.withAlpha().fading(to: watermark.opacity)
        guard watermark.tiled else { return try under(mark, x: place.x, y: place.y, by: watermark.mode) }
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
        return try under(tiles, by: watermark.mode)
    }
}
