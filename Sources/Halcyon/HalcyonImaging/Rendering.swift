import HalcyonModel

/// What came of one source.
public struct Rendering: Sendable, Codable {
    /// The format of the source, by its bytes.
    public var sourceFormat: ImageFormat
    /// The size of the source in pixels, upright; of an animation, of one frame.
    public var sourceSize: PixelSize
    /// Whether the file of the source ends too early, and what there is of it was rendered.
    public var sourceIsTruncated: Bool
    /// One output for each variant, in their order.
    public var images: [RenderedImage]
    /// How long it took, over all outputs.
    public var timings: Timings

    /// Wall-clock time of the parts of a rendering.
    public struct Timings: Sendable, Hashable, Codable {
        /// Reading headers, decoding and resizing: one pass over the pixels, which cannot be told apart.
        public var decode = Duration.zero
        /// Colour, orientation, canvas and processors, on the small picture.
        public var process = Duration.zero
        /// Encoding.
        public var encode = Duration.zero
    }
}

/// An output, and what is known of it.
public struct RenderedImage: Sendable, Codable {
    /// The file.
    public var body: [UInt8]
    /// Its format.
    public var format: ImageFormat
    /// Its size in pixels; of an animation, of one frame.
    public var size: PixelSize
    /// Frames of an animation; nil for a still image.
    public var frames: Int?
    /// SHA-256 of ``body`` in lower-case hexadecimal.
    public var sha256: String
    /// Its BlurHash, when the variant asks for it.
    public var blurhash: String?
    /// The colour that most of it has, as `#rrggbb`, when the variant asks for it.
    public var dominantColor: String?
}
