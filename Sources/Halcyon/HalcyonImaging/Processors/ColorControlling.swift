import Glibc
import HalcyonModel
import Vips

extension Image {
    /// Applies saturation, then contrast and brightness, then exposure, in the order in which Kingfisher applies Core
    /// Image's filters. Alpha does not change.
    ///
    /// Samples range from 0 to 1, encoded in sRGB, and Y = 0.2126 R + 0.7152 G + 0.0722 B. Each channel c becomes Y +
    /// saturation · (c − Y), then 0.5 + contrast · (c − 0.5) + brightness, clamped to 0…1. The linear value of c (IEC
    /// 61966-2-1) is then multiplied by 2^exposure, clamped, and encoded again.
    func controlled(_ controls: ColorControls) throws(VipsError) -> Image {
        guard channels == 3, controls.saturation != 1 else {
            let table = [UInt8].table { controls.exposed(controls.contrasted($0 / 255)) * 255 }
            return try mapped([[UInt8]](repeating: table, count: channels))
        }
        let picture = try recombined(controls.matrix, shift: controls.contrasted(0)) { controls.exposed($0) }
        return hasAlpha ? try picture.joined(with: alpha()) : picture
    }

    /// Replaces each channel by a sum of the channels with the weights of a matrix, plus a shift, and maps it through a
    /// curve. The curve receives a value from 0 to 1. Alpha is dropped.
    fileprivate func recombined(
        _ matrix: [[Double]], shift: Double = 0, _ curve: (Double) -> Double = { $0 }
    ) throws(VipsError) -> Image {
        // Sixteenths of a level between the two halves, so that rounding is not visible.
        let steps = 16.0
        let weights = matrix.map { $0.map { $0 * steps } }
        let mixed = try withoutAlpha().calling("recomb", ["m": .image(Image(matrix: weights))])
            .calling("linear", ["a": [1], "b": .doubles([shift * 255 * steps + 0.5])])
            .calling("cast", ["format": "ushort"])
        let table = (0...Int(255 * steps)).map { UInt8((curve(Double($0) / steps / 255) * 255).rounded()) }
        let lookup = try Image(pixels: table, width: table.count, height: 1, bands: 1)
        return try mixed.calling("maplut", ["lut": .image(lookup)])
            .calling("copy", ["interpretation": matrix.count < 3 ? "b-w" : "srgb"])
    }
}

extension ColorControls {
    /// Returns an encoded sample after contrast and brightness; not clamped.
    fileprivate func contrasted(_ sample: Double) -> Double { (sample - 0.5) * contrast + 0.5 + brightness }

    /// Returns an encoded sample after exposure, clamped before and after.
    fileprivate func exposed(_ sample: Double) -> Double {
        let sample = min(max(sample, 0), 1)
        guard exposure != 0 else { return sample }
        return SRGB.signal(min(SRGB.light(sample) * exp2(exposure), 1))
    }

    /// The matrix of saturation and contrast: the weight of each channel in each channel.
    fileprivate var matrix: [[Double]] {
        (0..<3).map { row in
            (0..<3).map { column in
                contrast * ((1 - saturation) * luma[column] + (row == column ? saturation : 0))
            }
        }
    }
}

/// The luma coefficients of ITU-R BT.709, whose primaries sRGB uses.
let luma = [0.2126, 0.7152, 0.0722]

extension Image {
    /// Composites a color over the image, with the opacity of the color times `strength`, within the shape of the
    /// image: Porter and Duff's source-atop. Alpha does not change.
    func tinted(_ color: CSSColor, strength: Double = 1) throws(VipsError) -> Image {
        let opacity = Double(color.alpha) / 255 * strength
        let picture = try ready(for: color)
        return try picture.mapped(
            picture.samples(of: color).prefix(picture.channels).map { channel in
                .table { $0 * (1 - opacity) + channel * opacity }
            })
    }
}

extension Image {
    /// Rotates the hues, as `hue-rotate()` in CSS (Filter Effects 1, section 8.6): a linear approximation in encoded
    /// samples that preserves the luma. Alpha does not change.
    func rotatingHue(degrees: Double) throws(VipsError) -> Image {
        guard channels == 3, degrees != 0 else { return self }
        let (cosine, sine) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
        let constant = [[0.213, 0.715, 0.072], [0.213, 0.715, 0.072], [0.213, 0.715, 0.072]]
        let even = [[0.787, -0.715, -0.072], [-0.213, 0.285, -0.072], [-0.213, -0.715, 0.928]]
        let odd = [[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]]
        let matrix = (0..<3).map { row in
            (0..<3).map { constant[row][$0] + cosine * even[row][$0] + sine * odd[row][$0] }
        }
        let picture = try recombined(matrix)
        return hasAlpha ? try picture.joined(with: alpha()) : picture
    }

    /// Raises each encoded sample, 0 to 1, to the power of 1/gamma. Alpha does not change.
    func corrected(gamma: Double) throws(VipsError) -> Image {
        let table = [UInt8].table { pow($0 / 255, 1 / gamma) * 255 }
        return try mapped([[UInt8]](repeating: table, count: channels))
    }

    /// Stretches the lightness L* of CIE L*a*b* linearly, so that its percentiles become 0 and 100. Chroma and alpha do
    /// not change. An image of one lightness is not changed.
    func normalized(_ normalize: Normalize) throws(VipsError) -> Image {
        let colors = try withoutAlpha().calling("colourspace", ["space": "lab"])
        let lightness = try colors.calling("extract_band", ["band": 0])
        let levels = try lightness.calling("linear", ["a": .doubles([100]), "b": [0.5]])
            .calling("cast", ["format": "ushort"])
        // 32-bit counts of the levels, in hundredths of L*.
        let histogram = try levels.calling("hist_find").pixels().withUnsafeBytes {
            Array($0.bindMemory(to: UInt32.self))
        }
        func percentile(_ percent: Double) -> Double {
            var left = percent / 100 * Double(width * height)
            for (level, count) in histogram.enumerated() where count > 0 {
                left -= Double(count)
                if left <= 0 { return Double(level) / 100 }
            }
            return 100
        }
        let (low, high) = (percentile(normalize.lower), percentile(normalize.upper))
        guard high > low else { return self }
        // The conversion to 16 bits clamps.
        let range = 65535.0
        let factor = range / (high - low)
        let stretched = try lightness.calling(
            "linear", ["a": .doubles([factor]), "b": .doubles([0.5 - low * factor])]
        ).calling("cast", ["format": "ushort"]).calling("linear", ["a": .doubles([100 / range]), "b": [0]])
        let chroma = try colors.calling("extract_band", ["band": 1, "n": 2])
        let picture = try Operation.call("bandjoin", ["in": .images([stretched, chroma])]).image()
            .calling("copy", ["interpretation": "lab"])
            .calling("colourspace", ["space": channels < 3 ? "b-w" : "srgb"])
        return hasAlpha ? try picture.joined(with: alpha()) : picture
    }

    /// Replaces the colors by a gradient from `dark` to `light` in encoded samples, according to the luma of each
    /// pixel. Alpha is multiplied by that of the gradient.
    func toned(from dark: CSSColor, to light: CSSColor) throws(VipsError) -> Image {
        let gray = channels < 3 ? try withoutAlpha() : try recombined([luma])
        let ends = [
            (dark.red, light.red), (dark.green, light.green), (dark.blue, light.blue), (dark.alpha, light.alpha),
        ]
        let isOpaque = dark.isOpaque && light.isOpaque
        let tables = ends.prefix(isOpaque ? 3 : 4).map { start, end in
            [UInt8].table { Double(start) + (Double(end) - Double(start)) * $0 / 255 }
        }
        let samples = (0..<256).flatMap { value in tables.map { $0[value] } }
        let lookup = try Image(pixels: samples, width: 256, height: 1, bands: tables.count)
        let picture = try gray.calling("maplut", ["lut": .image(lookup)])
            .calling("copy", ["interpretation": "srgb"])
        return hasAlpha ? try picture.masked(by: alpha()) : picture
    }
}
