import HalcyonModel
import Vips

/// A processor of the host program's own. Jobs ask for it by its name, with parameters of its own making:
/// `"processors": [{"despeckle": {}}]`.
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
    /// What jobs call it: 1 to 64 ASCII letters, digits, `.`, `_` and `-`; no name of Halcyon's own processors.
    var name: String { get }

    /// Whether pixels can become transparent that were not: `format: auto` then takes a format that can hold them.
    var makesTransparency: Bool { get }

    /// Says whether the parameters can be followed, before anything is loaded.
    ///
    /// - Parameter parameters: compact JSON, its members in the order of their names; `{}` for none.
    /// - Throws: ``Failure`` `invalid_job`, with what was expected.
    func validate(_ parameters: String) throws(Failure)

    /// The size of what ``process(_:parameters:)`` will make of a picture of `size`: it is held against the limits before
    /// anything is decoded.
    func size(of size: PixelSize, parameters: String) -> PixelSize

    /// Builds the operations that make the new picture. It runs on a rendering thread, and may compute there.
    ///
    /// - Parameters:
    ///   - image: in memory; 8-bit samples, one or two bands of grey or three or four of sRGB, alpha last and straight.
    ///   - parameters: as ``validate(_:)`` saw them.
    /// - Returns: a picture as `image` is described, of the size that was announced.
    func process(_ image: Image, parameters: String) throws -> Image
}

extension ImageProcessor {
    /// No.
    public var makesTransparency: Bool { false }

    /// Takes any.
    public func validate(_ parameters: String) throws(Failure) {}

    /// The same.
    public func size(of size: PixelSize, parameters: String) -> PixelSize { size }
}

/// A sizer of the host program's own. Jobs ask for it by its name: `"sizer": {"square": {"side": 200}}`.
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
    /// What jobs call it: 1 to 64 ASCII letters, digits, `.`, `_` and `-`; no name of Halcyon's own sizers.
    var name: String { get }

    /// Says whether the parameters can be followed, before anything is loaded.
    ///
    /// - Parameter parameters: compact JSON, its members in the order of their names; `{}` for none.
    /// - Throws: ``Failure`` `invalid_job`, with what was expected.
    func validate(_ parameters: String) throws(Failure)

    /// Which part of a picture goes where, and how large the output is.
    ///
    /// - Parameters:
    ///   - size: of the upright picture, or of what `cropRect` leaves of it; the plan counts from its top left corner.
    ///   - parameters: as ``validate(_:)`` saw them.
    /// - Returns: a plan whose `sourceRect` lies inside the picture, and `destRect` inside the output.
    func plan(for size: PixelSize, parameters: String) throws(Failure) -> SizingPlan
}

extension ImageSizer {
    /// Takes any.
    public func validate(_ parameters: String) throws(Failure) {}
}
