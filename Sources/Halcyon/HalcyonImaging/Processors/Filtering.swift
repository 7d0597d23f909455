import Glibc
import HalcyonModel
import Vips

extension Image {
    /// Applies a Gaussian blur. The image is extended beyond its edges with their pixels, so that nothing fades there.
    ///
    /// - Parameter radius: The standard deviation in pixels.
    func blurred(radius: Double) throws(VipsError) -> Image {
        guard radius > 0 else { return self }
        return try premultiplied { picture throws(VipsError) in
            try picture.convolved(with: GaussianBlur(deviation: radius, on: size))
        }
    }

    /// Blurs the samples as they are, in floating point. libvips' integer convolution takes half the time, but is off
    /// by up to 2 levels over whole areas, and differently in each version.
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
                // The center of a pixel maps to the center of the pixels that it represents.
                "odx": .double(Double(across.factor - 1) / 2), "ody": .double(Double(down.factor - 1) / 2),
                "oarea": .doubles([0, 0, Double(width), Double(height)]), "interpolate": "bilinear",
                "extend": "copy", "premultiplied": true,
            ])
    }
}

/// The parameters of a Gaussian blur whose cost does not grow with its radius. A wide blur is applied to a reduced
/// image, which is then enlarged. The variance that reducing and enlarging add is subtracted from that of the blur.
struct GaussianBlur {
    struct Axis {
        /// The factor by which the axis is reduced before the blur.
        let factor: Int
        /// The kernel, up to 3 deviations to both sides.
        let weights: [Double]

        init(deviation: Double, side: Int) {
            // The deviation is limited to the size of the image.
            let deviation = min(deviation, Double(side))
            // At least a deviation of 4 pixels and 32 pixels of the image remain. With less the difference would be
            // visible.
            let factor = max(1, min(Int(deviation / 4), side / 32))
            // A mean over f pixels has the variance (f² − 1)/12, linear interpolation over as many pixels has twice
            // that.
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
    /// Divides the image into squares of `side` pixels from the top left corner, each filled with its mean color.
    /// Squares that are cut by the right and lower edges use the mean of the remaining pixels.
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

    /// Returns the start and the total length of the whole blocks, and of the cut block.
    private static func runs(of side: Int, in length: Int) -> [(start: Int, length: Int)] {
        let whole = length / side * side
        return [(0, whole), (whole, length - whole)].filter { $0.length > 0 }
    }

}

extension Image {
    /// Applies unsharp masking of luma, like Core Image's `CISharpenLuminance`. Y = 0.2126 R + 0.7152 G + 0.0722 B of
    /// the encoded samples is blurred, and `amount` times the difference to the blurred Y is added to each channel. Hue
    /// and alpha do not change.
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

    /// Returns the luma of an image without alpha, as one band of floating-point samples.
    private func luma() throws(VipsError) -> Image {
        guard bands == 3 else { return try calling("cast", ["format": "float"]) }
        return try calling("recomb", ["m": .image(Image(matrix: [HalcyonImaging.luma]))])
            .calling("copy", ["interpretation": "b-w"])
    }
}

extension Image {
    /// Blurs or pixelates the areas of faces, the most confident first. Each area is treated as a picture of its own.
    /// - Throws: `internal` if faces have not been looked for; `VipsError`.
    func hiding(_ faces: [DetectedBox]?, by hiding: FaceHiding) throws -> Image {
        guard let faces else {
            throw JobError(.internal, "\(hiding.name): faces have not been looked for", isRetryable: false)
        }
        var picture = self
        for face in faces.sorted(by: { $0.confidence > $1.confidence }) where face.confidence >= hiding.confidence {
            guard let area = face.pixels(in: size, margin: hiding.margin) else { continue }
            let part = try picture.cropped(area.x, area.y, area.width, area.height).inMemory(nil)
            let hidden =
                switch hiding.method {
                case .blur(let amount): try part.blurred(radius: amount * Double(max(area.width, area.height)))
                case .pixelate: try part.pixelated(hiding.cell(of: area.size))
                }
            picture = try Operation.call(
                "insert",
                ["main": .image(picture), "sub": .image(hidden), "x": .int(area.x), "y": .int(area.y)]
            ).image()
        }
        return picture
    }
}
