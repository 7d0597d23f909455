import HalcyonModel
import Vips

extension OutputPlan {
    /// The source's own file without its metadata, where the job asks for no other pixels and no other coding: encoded again a
    /// JPEG, WebP or AVIF would lose a generation, and a GIF colors. nil where it is to be encoded. Other formats
    /// always are: PNG and TIFF lose nothing by it, and JPEG XL is not rewritten.
    func ownFile(of source: SourceImage) -> [UInt8]? {
        let whole = PixelRect(source.size)
        guard [.jpeg, .webp, .gif, .avif].contains(format), source.format == format, frames == source.frames,
            !source.isTruncated, source.orientation == .upright,
            geometry == SizingPlan(scaling: source.size, to: source.size), part == whole, variant.processors.isEmpty,
            !canBeTransparent(source) || variant.background.alpha == 0,
            asksForNoCoding, keepsColours(of: source.header)
        else { return nil }
        return source.file.withoutMetadata(of: source.header, keepingProfile: variant.output.keepProfile)
    }

    /// The frames of a GIF may leave a part of the canvas open, though none has a transparent color.
    private func canBeTransparent(_ source: SourceImage) -> Bool { source.header.hasAlpha || format == .gif }

    private var asksForNoCoding: Bool {
        let output = variant.output
        return output.quality == nil && output.effort == nil && !output.lossless && !output.progressive
            && output.stripMetadata
    }

    private func keepsColours(of header: Image) -> Bool {
        guard header.interpretation == .sRGB || header.interpretation == .grey else { return false }
        return variant.output.keepProfile || header.bytes(of: "icc-profile-data").map { ICCProfile($0).isSRGB } ?? true
    }
}
