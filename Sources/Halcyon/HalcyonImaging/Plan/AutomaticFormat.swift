import HalcyonModel

extension ImageFormat {
    /// The format of an output for which the job named none: the kind of the source is kept.
    ///
    /// An animation stays what it is, and so does WebP. Otherwise transparency, in the source or made on the way, becomes a
    /// PNG, and so do sources that are drawn rather than photographed (PNG, GIF, SVG, PDF). Everything else is a
    /// photograph: JPEG.
    static func automatic(source: ImageFormat, isTransparent: Bool, isAnimated: Bool) -> ImageFormat {
        switch source {
        case .webp: .webp
        case .gif where isAnimated: .gif
        case .png, .gif, .svg, .pdf: .png
        default: isTransparent ? .png : .jpeg
        }
    }
}
