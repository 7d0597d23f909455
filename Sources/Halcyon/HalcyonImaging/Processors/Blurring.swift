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
