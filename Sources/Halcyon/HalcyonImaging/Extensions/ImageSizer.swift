import HalcyonModel

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
