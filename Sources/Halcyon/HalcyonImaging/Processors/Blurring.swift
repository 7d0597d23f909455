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

    /// The blur of the samples as they are: in 8 bits for those of 8 bits, else with fractions.
    func convolved(with blur: GaussianBlur) throws(VipsError) -> Image {
        var picture = self
        let isShrunk = blur.across.shrunk < width || blur.down.shrunk < height
        if isShrunk {
            picture = try picture.calling(
                "resize",
                [
                    "scale": .double(Double(blur.across.shrunk) / Double(width)),
                    "vscale": .double(Double(blur.down.shrunk) / Double(height)), "kernel": "linear",
                ])
        }
        let precision: Value = sampleFormat == .uint8 ? "integer" : "float"
        let (across, down) = (blur.across.weights, blur.down.weights)
        picture = try picture.calling(
            "conv", ["mask": .image(Image(matrix: [across.row], scale: across.sum)), "precision": precision]
        ).calling(
            "conv", ["mask": .image(Image(matrix: down.row.map { [$0] }, scale: down.sum)), "precision": precision])
        guard isShrunk else { return picture }
        return try picture.calling(
            "resize",
            [
                "scale": .double(Double(width) / Double(picture.width)),
                "vscale": .double(Double(height) / Double(picture.height)), "kernel": "linear",
            ])
    }
}

/// How a Gaussian blur is computed at a cost that does not grow with its radius: a wide one on a smaller picture, which is
/// enlarged again. What is missing of its spread is exactly what shrinking and enlarging add.
struct GaussianBlur {
    struct Axis {
        /// Pixels along the axis on which the blur is computed.
        let shrunk: Int
        let weights: (row: [Double], sum: Double)

        init(deviation: Double, side: Int) {
            // Wider than the picture is as wide as the picture.
            let deviation = min(deviation, Double(side))
            // Deviations of 6 pixels and more are kept, and 32 pixels of the picture: less would be seen.
            shrunk = max(min(side, 32), Int((Double(side) / max(1, deviation / 6)).rounded(.up)))
            let factor = Double(side) / Double(shrunk)
            // A mean over f pixels has the variance f²/12, linear interpolation over f pixels f²/6.
            let lost = shrunk < side ? factor * factor / 4 : 0
            let rest = (max(deviation * deviation - lost, 0.01)).squareRoot() / factor
            weights = Self.gaussian(rest)
        }

        /// Whole numbers in proportion to the areas under the curve, up to 3 deviations.
        private static func gaussian(_ deviation: Double) -> (row: [Double], sum: Double) {
            let reach = Int((3 * deviation).rounded(.up))
            let row = (-reach...reach).map { place -> Double in
                let distance = Double(place) / deviation
                return (256 * exp(-distance * distance / 2)).rounded()
            }
            return (row, row.reduce(0, +))
        }
    }

    let across: Axis
    let down: Axis

    init(deviation: Double, on size: PixelSize) {
        across = Axis(deviation: deviation, side: size.width)
        down = Axis(deviation: deviation, side: size.height)
    }
}
