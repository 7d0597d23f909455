import HalcyonModel
import Vips

extension Image {
    /// The whole picture at this size, as ``Processor/size(of:)`` gives it.
    func scaled(to target: PixelSize, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        try scaled(Double(target.width) / Double(width), Double(target.height) / Double(height), quality)
    }

    /// The part of the picture around an anchor.
    func cropped(to part: PixelSize, anchor: UnitPoint) throws(VipsError) -> Image {
        let part = size.part(part, anchor: anchor)
        return try cropped(part.x, part.y, part.width, part.height)
    }
}
