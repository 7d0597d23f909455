import HalcyonModel
import Vips

extension Image {
    /// Unsharp masking of luma, as Core Image's `CISharpenLuminance`: Y = 0.2126 R + 0.7152 G + 0.0722 B of the encoded
    /// samples is blurred, and each channel gets `amount` times what the blur took from Y. Hue does not change, and alpha does not.
    func sharpened(_ sharpen: Sharpen) throws(VipsError) -> Image {
        guard sharpen.amount > 0, sharpen.radius > 0 else { return self }
        let colors = try withoutAlpha()
        let luma = try colors.luma()
        let blur = GaussianBlur(deviation: sharpen.radius, on: size)
        let soft: Image
        if hasAlpha {
            soft = try luma.joined(with: alpha()).calling("premultiply").convolved(with: blur)
                .calling("unpremultiply").withoutAlpha()
        } else {
            soft = try luma.convolved(with: blur)
        }
        let detail = try luma.combined("subtract", soft).calling("linear", ["a": .doubles([sharpen.amount]), "b": [0]])
        let sharp = try colors.combined("add", detail).inBytes()
            .calling("copy", ["interpretation": channels < 3 ? "b-w" : "srgb"])
        guard hasAlpha else { return sharp }
        return try sharp.joined(with: alpha())
    }

    /// One band with fractions, of a picture without alpha.
    private func luma() throws(VipsError) -> Image {
        guard bands == 3 else { return try calling("cast", ["format": "float"]) }
        return try calling("recomb", ["m": .image(Image(matrix: [HalcyonImaging.luma]))])
            .calling("copy", ["interpretation": "b-w"])
    }

    private func combined(_ operation: String, _ other: Image) throws(VipsError) -> Image {
        try Operation.call(operation, ["left": .image(self), "right": .image(other)]).image()
    }
}
