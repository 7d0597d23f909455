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

    /// Takes the values as they are.
    public init(
        body: [UInt8], format: ImageFormat, size: PixelSize, sha256: String, sourceFormat: ImageFormat,
        sourceSize: PixelSize, timings: Timings
    ) {
        self.body = body
        self.format = format
        self.size = size
        self.sha256 = sha256
        self.sourceFormat = sourceFormat
        self.sourceSize = sourceSize
        self.timings = timings
    }

    /// Wall-clock time of the parts of a rendering.
    public struct Timings: Sendable, Hashable, Codable {
        /// Reading headers, decoding and resizing: one pass over the pixels, which cannot be told apart.
        public var decode = Duration.zero
        /// Colour, orientation and canvas, on the small picture.
        public var process = Duration.zero
        /// Encoding.
        public var encode = Duration.zero
    }
}
