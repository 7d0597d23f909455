import HalcyonModel

extension ImageFormat {
    /// The format of an output for which the job named none: the kind of the source is kept.
    ///
    /// A WebP source stays WebP. Otherwise transparency, in the source or left over by the geometry, makes a PNG, and
    /// so do sources that are drawn rather than photographed (PNG, GIF). Everything else is a photograph: JPEG.
    static func automatic(source: ImageFormat, isTransparent: Bool) -> ImageFormat {
        switch source {
        case .webp: .webp
        case .png, .gif: .png
        default: isTransparent ? .png : .jpeg
        }
    }
}
