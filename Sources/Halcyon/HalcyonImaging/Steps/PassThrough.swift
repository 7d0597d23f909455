import HalcyonModel
import Vips

extension OutputPlan {
    /// The source's own file without its metadata, where the job asks for no other pixels and no other coding: encoded again a
    /// JPEG or WebP would lose a generation. nil where it is to be encoded. Other formats are: most lose nothing by it.
    func ownFile(of source: SourceImage) -> [UInt8]? {
        let whole = PixelRect(source.size)
        guard [.jpeg, .webp].contains(format), source.format == format, frames == source.frames,
            !source.isTruncated, source.orientation == .upright,
            geometry == SizingPlan(scaling: source.size, to: source.size), part == whole, variant.processors.isEmpty,
            !source.header.hasAlpha || variant.background.alpha == 0,
            asksForNoCoding, keepsColours(of: source.header)
        else { return nil }
        return source.file.withoutMetadata(keepingProfile: variant.output.keepProfile)
    }

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
