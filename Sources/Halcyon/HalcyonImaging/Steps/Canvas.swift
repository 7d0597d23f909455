import HalcyonModel
import Vips

extension Image {
    /// Step 7, canvas: in its place on the output. What is left over is transparent, or white in formats without alpha.
    func placed(_ plan: SizingPlan, keepingAlpha: Bool) throws(VipsError) -> Image {
        var image = self
        if hasAlpha, !keepingAlpha {
            image = try Operation.call("flatten", ["in": .image(self), "background": [255]]).image()
        }
        guard plan.leavesExcess else { return image }
        if keepingAlpha, !hasAlpha {
            image = try Operation.call("bandjoin_const", ["in": .image(image), "c": [255]]).image()
        }
        return try Operation.call(
            "embed",
            [
                "in": .image(image), "x": .int(plan.destRect.x), "y": .int(plan.destRect.y),
                "width": .int(plan.outputSize.width), "height": .int(plan.outputSize.height),
                "extend": "background", "background": keepingAlpha ? [0] : [255],
            ]
        ).image()
    }
}

extension SizingPlan {
    /// Whether the image does not cover the whole output.
    var leavesExcess: Bool { destRect != PixelRect(outputSize) }
}
