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
        // Sixteenths of a level between the two halves, so that rounding is not visible.
        let steps = 16.0
        let matrix = controls.matrix.map { $0.map { $0 * steps } }
        let shift = controls.contrasted(0) * 255 * steps + 0.5
        let mixed = try withoutAlpha().calling("recomb", ["m": .image(Image(matrix: matrix))])
            .calling("linear", ["a": [1], "b": .doubles([shift])])
            .calling("cast", ["format": "ushort"])
        let table = (0...Int(255 * steps)).map {
            UInt8((controls.exposed(Double($0) / steps / 255) * 255).rounded())
        }
        let lookup = try Image(pixels: table, width: table.count, height: 1, bands: 1)
        let picture = try mixed.calling("maplut", ["lut": .image(lookup)])
            .calling("copy", ["interpretation": "srgb"])
        return hasAlpha ? try picture.joined(with: alpha()) : picture
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
