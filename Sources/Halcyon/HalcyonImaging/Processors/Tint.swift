import HalcyonModel
import Vips

extension Image {
    /// The colour over the picture with the colour's own opacity times `strength`, in the picture's shape: Porter and Duff's
    /// source-atop. Alpha does not change.
    func tinted(_ color: CSSColor, strength: Double = 1) throws(VipsError) -> Image {
        let opacity = Double(color.alpha) / 255 * strength
        let picture = try ready(for: color)
        return try picture.mapped(
            picture.samples(of: color).prefix(picture.channels).map { channel in
                .table { $0 * (1 - opacity) + channel * opacity }
            })
    }
}
