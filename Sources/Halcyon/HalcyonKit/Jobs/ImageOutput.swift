/// One output of a job: its size, what it goes through, its file. What is nil has the default of the job's schema.
public struct ImageOutput: Sendable, Equatable, Encodable {
    /// The display size in points, above 0. One alone: the other follows the aspect ratio.
    public var width, height: Double?
    /// Pixels a point, 1 to 4.
    public var screenScale: Double?
    /// How the image is placed in its display.
    public var contentMode: ContentMode?
    /// What becomes of the excess.
    public var scaleOptions: ScaleOptions?
    /// The part of the image that is used.
    public var cropRect: CropRect?
    /// Which part is kept where something is cut off.
    public var gravity: Gravity?
    /// false: no sizing at all.
    public var sizeForDisplay: Bool?
    /// A rule for the size, in place of width and height.
    public var sizer: Sizer?
    /// Whether the image may be enlarged.
    public var upscale: Bool?
    /// How pixels are interpolated.
    public var interpolationQuality: InterpolationQuality?
    /// The CSS colour that is seen where the image does not reach.
    public var background: String?
    /// Steps that the sized image goes through, in this order.
    public var processors: [Processor]?
    /// The format of the file; nil keeps the kind of the source.
    public var format: ImageFormat?
    /// Of lossy formats, 1 to 100.
    public var quality: Int?
    /// Whether nothing is lost, where the format can.
    public var lossless: Bool?
    /// How hard the encoder tries, 0 to 9.
    public var effort: Int?
    /// A progressive JPEG or an interlaced PNG.
    public var progressive: Bool?
    /// false keeps EXIF, XMP and IPTC.
    public var stripMetadata: Bool?
    /// true keeps the colours and the ICC profile.
    public var keepProfile: Bool?
    /// At most so many frames of an animation.
    public var frames: Int?
    /// What of a damaged source is rendered; nil for what the worker's settings say.
    public var tolerance: Tolerance?
    /// The event tells the BlurHash; the colour that most of it has.
    public var blurhash, dominantColor: Bool?

    /// One of this size; everything else is set as a property.
    public init(
        width: Double? = nil, height: Double? = nil, screenScale: Double? = nil, contentMode: ContentMode? = nil,
        processors: [Processor]? = nil, format: ImageFormat? = nil
    ) {
        (self.width, self.height, self.screenScale, self.contentMode) = (width, height, screenScale, contentMode)
        (self.processors, self.format) = (processors, format)
    }
}
