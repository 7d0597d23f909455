import HalcyonModel

/// An output, and what is known of it.
public struct RenderedImage: Sendable {
    /// The file.
    public var body: [UInt8]
    /// Its format.
    public var format: ImageFormat
    /// Its size in pixels.
    public var size: PixelSize
    /// SHA-256 of ``body`` in lower-case hexadecimal.
    public var sha256: String
    /// The format of the source, by its bytes.
    public var sourceFormat: ImageFormat
    /// The size of the source in pixels, upright.
    public var sourceSize: PixelSize
    /// How long it took.
    public var timings: Timings

    /// Wall-clock time of the parts of a rendering.
    public struct Timings: Sendable, Hashable {
        /// Reading headers, decoding and resizing: one pass over the pixels, which cannot be told apart.
        public var decode = Duration.zero
        /// Colour, orientation and canvas, on the small picture.
        public var process = Duration.zero
        /// Encoding.
        public var encode = Duration.zero
    }
}
