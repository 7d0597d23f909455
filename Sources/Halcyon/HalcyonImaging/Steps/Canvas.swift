import HalcyonModel
import Vips

extension Image {
    /// Step 9, canvas: in its place on the output, on the background.
    func placed(_ plan: SizingPlan, on background: CSSColor) throws(VipsError) -> Image {
        guard plan.leavesExcess else { return self }
        var image = try ready(for: background)
        if !background.isOpaque { image = try image.withAlpha() }
        return try image.calling(
            "embed",
            [
                "x": .int(plan.destRect.x), "y": .int(plan.destRect.y),
                "width": .int(plan.outputSize.width), "height": .int(plan.outputSize.height),
                "extend": "background", "background": .doubles(image.samples(of: background)),
            ])
    }

    /// Step 11, flatten: without alpha in a format that has none.
    func flattened(onto background: CSSColor, for format: ImageFormat) throws(VipsError) -> Image {
        format.hasAlpha ? self : try flattened(onto: background)
    }

    /// Without alpha, on an opaque background.
    func flattened(onto background: CSSColor) throws(VipsError) -> Image {
        guard hasAlpha else { return self }
        let image = try ready(for: background)
        return try image.calling("flatten", ["background": .doubles(image.samples(of: background).dropLast())])
    }

    /// This picture, in colour if it must be to hold the colour.
    func ready(for color: CSSColor) throws(VipsError) -> Image {
        color.isGrey ? self : try inColour()
    }

    /// The colour, as a pixel of this picture has it.
    func samples(of color: CSSColor) -> [Double] {
        let channels = bands < 3 ? [color.red] : [color.red, color.green, color.blue]
        return (channels + (hasAlpha ? [color.alpha] : [])).map(Double.init)
    }
}

extension CSSColor {
    fileprivate var isGrey: Bool { red == green && green == blue }
}
