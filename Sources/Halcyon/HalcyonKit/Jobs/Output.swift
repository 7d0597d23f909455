extension ImageJob {
    /// One output of a job: its size, processing and file format. Properties that are nil have the schema's defaults.
    public struct Output: Sendable, Hashable, Codable {
        /// The name of a variant in events and upload URLs, unique in the job; only for outputs in
        /// ``ImageJob/variants``.
        public var name: String?
        /// The display size in points, above 0. If only one is set, the other follows the aspect ratio.
        public var width, height: Double?
        /// Pixels per point, 1 to 4.
        public var screenScale: Double?
        /// The placement of the image in its display.
        public var contentMode: ContentMode?
        /// The treatment of the excess where aspect ratios differ.
        public var scaleOptions: ScaleOptions?
        /// The position of an image that is fitted into a display of another aspect ratio: one of the content modes
        /// that do not scale.
        public var position: ContentMode?
        /// The part of the image that is used.
        public var cropRect: CropRect?
        /// The margins that are removed before the image is sized.
        public var trim: Trim?
        /// The part that is kept when the image is cropped.
        public var gravity: Gravity?
        /// False for no sizing at all.
        public var sizeForDisplay: Bool?
        /// A rule for the size that replaces width and height.
        public var sizer: Sizer?
        /// True if the image may be enlarged.
        public var upscale: Bool?
        /// The interpolation of pixels.
        public var interpolationQuality: InterpolationQuality?
        /// True if light is averaged, and not its encoding, when the image is resized.
        public var linearLight: Bool?
        /// The CSS color of the area that the image does not cover.
        public var background: String?
        /// Steps that the image goes through before it is cropped and sized, in this order.
        public var before: [Processor]?
        /// Steps that the sized image goes through, in this order.
        public var processors: [Processor]?
        /// The format of the file; nil keeps that of the source.
        public var format: Format?
        /// The quality of lossy formats.
        public var quality: Quality?
        /// The maximum size of the file in bytes, for which the quality is lowered.
        public var maximumBytes: Int?
        /// True if the image may become smaller than requested to have at most ``maximumBytes``.
        public var allowResize: Bool?
        /// True for lossless WebP after a slight preprocessing.
        public var nearLossless: Bool?
        /// The resolution of colors in JPEG and AVIF.
        public var chromaSubsampling: ChromaSubsampling?
        /// The number of bits per sample: 16 for PNG, TIFF and JPEG XL, 12 for AVIF.
        public var bitDepth: Int?
        /// The reduction of a PNG or GIF to few colors.
        public var quantize: Quantization?
        /// The color space of the output.
        public var profile: Profile?
        /// True for lossless encoding where the format supports it.
        public var lossless: Bool?
        /// The encoder's effort, 0 to 9.
        public var effort: Int?
        /// True for a progressive JPEG or an interlaced PNG.
        public var progressive: Bool?
        /// False keeps EXIF, XMP and IPTC.
        public var stripMetadata: Bool?
        /// True keeps the colors and the ICC profile of the source.
        public var keepProfile: Bool?
        /// The page of a PDF or TIFF, or the first frame of an animation, from 1.
        public var page: Int?
        /// The maximum number of frames of an animation.
        public var frames: Int?
        /// The damage to a source that is tolerated; nil for the worker's setting.
        public var tolerance: Tolerance?
        /// True if the event contains the BlurHash, the dominant color, the most important colors, the ThumbHash, or
        /// the perceptual hash.
        public var blurhash, dominantColor, palette, thumbhash, phash: Bool?
        /// True if the event contains the places of faces.
        public var faces: Bool?
        /// The facts about the source that are reported instead of an image; nil for an image.
        public var info: InfoOptions?

        /// Creates an output of this size. Everything else is set as a property.
        public init(
            width: Double? = nil, height: Double? = nil, screenScale: Double? = nil, contentMode: ContentMode? = nil,
            processors: [Processor]? = nil, format: Format? = nil
        ) {
            (self.width, self.height, self.screenScale, self.contentMode) = (width, height, screenScale, contentMode)
            (self.processors, self.format) = (processors, format)
        }
    }

    /// The options of facts about a source.
    public struct InfoOptions: Sendable, Hashable, Codable {
        /// True to include the location where the picture was taken.
        public var location: Bool?

        /// Creates options.
        public init(location: Bool? = nil) { self.location = location }
    }

    /// The placement of an image in its display: UIKit's content modes.
    public enum ContentMode: String, Sendable, Codable, CaseIterable {
        /// Stretches, fits or fills; `redraw` is the same as `scaleToFill`.
        case scaleToFill, scaleAspectFit, scaleAspectFill, redraw
        /// Places the image unscaled.
        case center, top, bottom, left, right, topLeft, topRight, bottomLeft, bottomRight
    }

    /// The treatment of the excess where aspect ratios differ.
    public enum ScaleOptions: String, Sendable, Codable, CaseIterable {
        /// `fitCropsExcess` shrinks the display to the image; `fillLeavesExcess` lets it grow.
        case fitLeavesExcessAndFillCropsExcess, fitCropsExcess, fillLeavesExcess, fitCropsExcessAndFillLeavesExcess
    }

    /// The interpolation of pixels.
    public enum InterpolationQuality: String, Sendable, Codable, CaseIterable {
        /// Nearest neighbor, linear, cubic and Lanczos. `default` is Lanczos after the largest possible shrink on load;
        /// `high` leaves it at least a factor of two.
        case none, low, medium, high, `default`
    }

    /// The damage to a source that is tolerated.
    public enum Tolerance: String, Sendable, Codable, CaseIterable {
        /// `strict` accepts none; `truncated` accepts a JPEG, PNG, GIF or BMP that ends too early.
        case strict, truncated
    }

    /// The quality of lossy formats.
    public struct Quality: RawRepresentable, Sendable, Hashable, Codable, ExpressibleByIntegerLiteral {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }
        /// Creates a fixed quality, 1 to 100.
        public init(integerLiteral value: Int) { self.init(value) }
        /// Creates a fixed quality, 1 to 100.
        public init(_ value: Int) { self.init(rawValue: .number(Double(value))) }
        /// The lowest quality whose similarity (SSIM) to the picture before encoding is at least this, 0.5 to 0.9999.
        public static func target(_ similarity: Double) -> Self { Self(rawValue: ["target": .number(similarity)]) }
    }

    /// The resolution of the two color channels, relative to that of the brightness.
    public enum ChromaSubsampling: String, Sendable, Codable, CaseIterable {
        /// The choice of the encoder.
        case auto
        /// The full resolution.
        case full = "4:4:4"
        /// Half the resolution along each side.
        case half = "4:2:0"
    }

    /// The reduction of an image to a palette of few colors.
    public struct Quantization: Sendable, Hashable, Codable {
        /// The maximum number of colors: 2, 4, 16 or 256. Nil for 256.
        public var colors: Int?
        /// The amount of error diffusion, 0 to 1. Nil for 1.
        public var dither: Double?
        /// Creates a reduction.
        public init(colors: Int? = nil, dither: Double? = nil) { (self.colors, self.dither) = (colors, dither) }
    }

    /// The color space of an output.
    public enum Profile: String, Sendable, Codable, CaseIterable {
        /// sRGB without an embedded profile, or Display P3 with one.
        case srgb, p3
    }

    /// The format of a file.
    public struct Format: RawRepresentable, Sendable, Hashable, Codable {
        /// The format's name.
        public let rawValue: String
        /// Creates a format that has no static member here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The smallest of several formats; only for jobs.
        public static let best = Self(rawValue: "best")
        /// The formats that workers can write.
        public static let jpeg = Self(rawValue: "jpeg"), png = Self(rawValue: "png"), webp = Self(rawValue: "webp"),
            avif = Self(rawValue: "avif"), gif = Self(rawValue: "gif"), tiff = Self(rawValue: "tiff"),
            jxl = Self(rawValue: "jxl")

        /// The media type, such as `image/webp`.
        public var mediaType: String {
            switch rawValue {
            case "svg": "image/svg+xml"
            case "pdf", "json": "application/\(rawValue)"
            default: "image/\(rawValue)"
            }
        }
    }

    /// The detection of margins around an image. Properties that are nil have the schema's defaults.
    public struct Trim: Sendable, Hashable, Codable {
        /// The distance from the background up to which a pixel belongs to the margin, 0 to 254 levels.
        public var tolerance: Int?
        /// The CSS color of the margin; nil for that of the pixel in the top left corner.
        public var background: String?
        /// The share of the pixels of a row or a column that may differ in a margin, 0 to 0.5.
        public var fuzz: Double?

        /// Creates the detection of margins.
        public init(tolerance: Int? = nil, background: String? = nil, fuzz: Double? = nil) {
            (self.tolerance, self.background, self.fuzz) = (tolerance, background, fuzz)
        }
    }

    /// A part of an image, in fractions of its sides or in pixels, from the top left corner.
    public struct CropRect: Sendable, Hashable, Codable {
        /// The unit of a rectangle's numbers.
        public enum Unit: String, Sendable, Codable, CaseIterable {
            /// Fractions of the sides, 0 to 1; pixels of the upright image.
            case fractions, pixels
        }

        /// The rectangle, in the ``unit``.
        public var x, y, width, height: Double
        /// The unit; nil for fractions.
        public var unit: Unit?

        /// Creates a rectangle.
        public init(x: Double, y: Double, width: Double, height: Double, unit: Unit? = nil) {
            (self.x, self.y, self.width, self.height, self.unit) = (x, y, width, height, unit)
        }
    }

    /// The part that is kept when `scaleAspectFill` crops the image.
    public struct Gravity: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// The middle, the part that draws the eye, or the part with the highest entropy.
        public static let center = Self(rawValue: "center"), attention = Self(rawValue: "attention"),
            entropy = Self(rawValue: "entropy")
        /// The part with faces, or with all things that the detector finds; without any, the part that draws the eye.
        public static let faces = Self(rawValue: "faces"), objects = Self(rawValue: "objects")
        /// The part with what the detector finds with at least this confidence, 0 to 1, or else that of `fallback`.
        public static func detect(
            _ kind: DetectionKind, confidence: Double = 0.5, fallback: Gravity = .attention
        ) -> Self {
            Self(
                rawValue: [
                    "detect": .string(kind.rawValue), "confidence": .number(confidence), "fallback": fallback.rawValue,
                ])
        }
        /// The surroundings of a point, in fractions of the image's sides.
        public static func point(x: Double, y: Double) -> Self { Self(rawValue: ["x": .number(x), "y": .number(y)]) }
    }

    /// The things that a detector finds.
    public enum DetectionKind: String, Sendable, CaseIterable {
        /// `objects` are all things that the detector knows.
        case faces, objects
    }

    /// A rule for the size that replaces width and height.
    public struct Sizer: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a value that has no static member here, such as a sizer of the cluster's own.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// The image's own size.
        public static let natural = Self(rawValue: "natural")
        /// A maximum width in points; the height stays in proportion.
        public static func aspectScaleDownByWidth(_ points: Double) -> Self {
            Self(rawValue: ["aspectScaleDownByWidth": .number(points)])
        }
        /// A maximum height in points; the width stays in proportion.
        public static func aspectScaleDownByHeight(_ points: Double) -> Self {
            Self(rawValue: ["aspectScaleDownByHeight": .number(points)])
        }
    }
}
