import Glibc
import HalcyonModel
import Vips

extension Image {
    /// Gaussian blur. Beyond its edges the picture is taken to go on as it ends, so nothing fades there.
    ///
    /// - Parameter radius: the standard deviation in pixels.
    func blurred(radius: Double) throws(VipsError) -> Image {
        guard radius > 0 else { return self }
        return try premultiplied { picture throws(VipsError) in
            try picture.convolved(with: GaussianBlur(deviation: radius, on: size))
        }
    }

    /// The blur of the samples as they are, with fractions. libvips' whole-number convolution takes half the time and is off by
    /// up to 2 levels, over whole areas and in another way in each of its versions.
    func convolved(with blur: GaussianBlur) throws(VipsError) -> Image {
        let (across, down) = (blur.across, blur.down)
        var picture = self
        let isShrunk = across.factor > 1 || down.factor > 1
        if isShrunk {
            picture = try picture.calling(
                "shrink", ["hshrink": .int(across.factor), "vshrink": .int(down.factor), "ceil": true])
        }
        for rows in [[across.weights], down.weights.map { [$0] }] {
            picture = try picture.calling(
                "conv",
                [
                    "mask": .image(Image(matrix: rows, scale: rows.joined().reduce(0, +))), "precision": "float",
                ])
        }
        guard isShrunk else { return picture }
        return try picture.calling(
            "affine",
            [
                "matrix": .doubles([Double(across.factor), 0, 0, Double(down.factor)]),
                // The middle of a pixel goes to the middle of the pixels that it stands for.
                "odx": .double(Double(across.factor - 1) / 2), "ody": .double(Double(down.factor - 1) / 2),
                "oarea": .doubles([0, 0, Double(width), Double(height)]), "interpolate": "bilinear",
                "extend": "copy", "premultiplied": true,
            ])
    }
}

/// How a Gaussian blur is computed at a cost that does not grow with its radius: a wide one on a smaller picture, which is
/// enlarged again. What is missing of its spread is exactly what shrinking and enlarging add.
struct GaussianBlur {
    struct Axis {
        /// Pixels that become one along the axis before the blur.
        let factor: Int
        /// The curve, up to 3 deviations to both sides.
        let weights: [Double]

        init(deviation: Double, side: Int) {
            // Wider than the picture is as wide as the picture.
            let deviation = min(deviation, Double(side))
            // A deviation of 4 pixels is kept, and 32 pixels of the picture: with less the difference would be seen.
            let factor = max(1, min(Int(deviation / 4), side / 32))
            // A mean over f pixels has the variance (f² − 1)/12, linear interpolation over as many twice that.
            let rest = (deviation * deviation - Double(factor * factor - 1) / 4).squareRoot() / Double(factor)
            self.factor = factor
            let reach = Int((3 * rest).rounded(.up))
            weights = (-reach...reach).map { exp(-Double($0 * $0) / (2 * rest * rest)) }
        }
    }

    let across: Axis
    let down: Axis

    init(deviation: Double, on size: PixelSize) {
        across = Axis(deviation: deviation, side: size.width)
        down = Axis(deviation: deviation, side: size.height)
    }
}

extension Image {
    /// Squares of `side` pixels from the top left corner, each of its mean colour; those that the right and lower edges cut
    /// are means of what there is of them.
    func pixelated(_ side: Int) throws(VipsError) -> Image {
        guard side > 1 else { return self }
        return try premultiplied { picture throws(VipsError) in
            var rows: [Image] = []
            for (top, height) in Self.runs(of: side, in: picture.height) {
                var pieces: [Image] = []
                for (left, width) in Self.runs(of: side, in: picture.width) {
                    let (across, down) = (min(side, width), min(side, height))
                    let means = try picture.cropped(left, top, width, height)
                        .calling("shrink", ["hshrink": .int(across), "vshrink": .int(down)])
                    pieces.append(
                        try Operation.call(
                            "zoom", ["input": .image(means), "xfac": .int(across), "yfac": .int(down)]
                        ).image())
                }
                rows.append(try pieces.joined("horizontal"))
            }
            return try rows.joined("vertical")
        }
    }

    /// Where whole blocks begin and how many pixels they take together, and the same for the cut one.
    private static func runs(of side: Int, in length: Int) -> [(start: Int, length: Int)] {
        let whole = length / side * side
        return [(0, whole), (whole, length - whole)].filter { $0.length > 0 }
    }

}

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
