import HalcyonModel
import Vips

extension DecodedImage {
    /// Step 5, focus: the middle of the part that the pixels say is to be kept, in fractions of the upright source.
    func focus(of output: OutputPlan, in source: SourceImage) throws -> UnitPoint {
        let level = frames[0]
        let crop = try output.variant.sizing.crop(of: source.size)
        let window = output.geometry.sourceRect
        // 256 pixels tell where the eye is drawn, and a window inside them is placed to half a percent.
        let scale = 256 / Double(max(crop.width, crop.height))
        let (across, down) = (max(1, Double(crop.width) * scale), max(1, Double(crop.height) * scale))
        let size = PixelSize(width: Int(across.rounded()), height: Int(down.rounded()))
        let small = try level.image
            .resized(output.part, at: level, to: source.orientation.upright(size), .low)
            .inSRGB(keepingProfile: false).turned(source.orientation)
        let kept = PixelSize(
            width: min(size.width, Int((Double(window.width) * scale).rounded())),
            height: min(size.height, Int((Double(window.height) * scale).rounded())))
        let cut = try Operation.call(
            "smartcrop",
            [
                "input": .image(small), "width": .int(kept.width), "height": .int(kept.height),
                "interesting": .string(output.variant.sizing.gravity == .entropy ? "entropy" : "attention"),
            ]
        ).image()
        // What was cut off before the window is its offset, counted backwards.
        let x = (Double(-cut.offset.x) + Double(kept.width) / 2) / Double(size.width)
        let y = (Double(-cut.offset.y) + Double(kept.height) / 2) / Double(size.height)
        return UnitPoint(
            x: (Double(crop.x) + x * Double(crop.width)) / Double(source.size.width),
            y: (Double(crop.y) + y * Double(crop.height)) / Double(source.size.height))
    }
}
