import HalcyonModel
import Vips

/// A custom processor of the host program. Jobs refer to it by its name, with parameters that it defines:
///
/// ```swift
/// struct Despeckle: ImageProcessor {
///     let name = "despeckle"
///
///     func process(_ image: Image, parameters: String) throws -> Image {
///         try Operation.call("rank", ["in": .image(image), "width": 3, "height": 3, "index": 4]).image()
///     }
/// }
/// let renderer = Renderer(extensions: try Extensions(processors: [Despeckle()]))
/// ```
public protocol ImageProcessor: Sendable {
    /// The name in jobs: 1 to 64 ASCII letters, digits, `.`, `_` and `-`. The names of built-in processors are
    /// reserved.
    var name: String { get }

    /// True if opaque pixels can become transparent. `format: auto` then selects a format with alpha.
    var makesTransparency: Bool { get }

    /// Validates the parameters, before anything is loaded.
    ///
    /// - Parameter parameters: Compact JSON with members sorted by name; `{}` if there are none.
    /// - Throws: ``JobError`` `invalid_job` that says what was expected.
    func validate(_ parameters: String) throws(JobError)

    /// Returns the size of the image that ``process(_:parameters:)`` produces from an image of `size`. It is checked
    /// against the limits before anything is decoded.
    func size(of size: PixelSize, parameters: String) -> PixelSize

    /// Builds the operations that produce the new image. Runs on a render thread, and may compute there.
    ///
    /// - Parameters:
    ///   - image: An image in memory, with 8-bit samples, one or two bands of grey or three or four of sRGB, and
    ///     straight alpha as the last band.
    ///   - parameters: The parameters that were passed to ``validate(_:)``.
    /// - Returns: An image in the same form as `image`, of the announced size.
    func process(_ image: Image, parameters: String) throws -> Image
}

extension ImageProcessor {
    /// False by default.
    public var makesTransparency: Bool { false }

    /// Accepts any parameters.
    public func validate(_ parameters: String) throws(JobError) {}

    /// Returns `size`.
    public func size(of size: PixelSize, parameters: String) -> PixelSize { size }
}

/// A custom sizer of the host program. Jobs refer to it by its name: `"sizer": {"square": {"side": 200}}`.
///
/// ```swift
/// struct Half: ImageSizer {
///     let name = "half"
///
///     func plan(for size: PixelSize, parameters: String) throws(Failure) -> SizingPlan {
///         SizingPlan(scaling: size, to: PixelSize(width: size.width / 2, height: size.height / 2))
///     }
/// }
/// ```
public protocol ImageSizer: Sendable {
    /// The name in jobs: 1 to 64 ASCII letters, digits, `.`, `_` and `-`. The names of built-in sizers are reserved.
    var name: String { get }

    /// Validates the parameters, before anything is loaded.
    ///
    /// - Parameter parameters: Compact JSON with members sorted by name; `{}` if there are none.
    /// - Throws: ``JobError`` `invalid_job` that says what was expected.
    func validate(_ parameters: String) throws(JobError)

    /// Returns the part of an image that is used, its position in the output, and the size of the output.
    ///
    /// - Parameters:
    ///   - size: The size of the upright image, or of its part selected by `cropRect`. The coordinates of the plan
    ///     are relative to its top left corner.
    ///   - parameters: The parameters that were passed to ``validate(_:)``.
    /// - Returns: A plan whose `sourceRect` lies inside the image and whose `destRect` lies inside the output.
    func plan(for size: PixelSize, parameters: String) throws(JobError) -> SizingPlan
}

extension ImageSizer {
    /// Accepts any parameters.
    public func validate(_ parameters: String) throws(JobError) {}
}
