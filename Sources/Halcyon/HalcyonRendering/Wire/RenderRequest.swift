import HalcyonImaging
import HalcyonModel
import Processes
import Vips

/// What a child is asked to do. Beside it go the bytes of the source, and then those of the assets.
struct RenderRequest: Codable {
    var limits: ImageLimits
    var variants: [Variant]
    /// What the bytes behind the source's are of.
    var assets: [Source]
    /// The formats that may be read, by their names.
    var formats: Set<String>

    /// The message that asks for it.
    static func message(_ order: Turn.Order, within limits: ImageLimits) throws -> MessageSocket.Message {
        let assets = Array(order.assets)
        let request = RenderRequest(
            limits: limits, variants: order.variants, assets: assets.map(\.key),
            formats: Set(VipsLibrary.allowed.map(\.rawValue)))
        return try MessageSocket.Message(request, [order.source] + assets.map(\.value))
    }

    /// Does it, on the calling thread.
    /// - Throws: ``Failure``.
    func rendering(of bodies: [[UInt8]], _ extensions: Extensions) throws -> Rendering {
        let formats = Set(formats.compactMap(Format.init(rawValue:)))
        if VipsLibrary.allowed != formats { VipsLibrary.allow(formats) }
        return try Renderer(limits: limits, extensions: extensions).render(
            bodies[0], variants, assets: Dictionary(uniqueKeysWithValues: zip(assets, bodies.dropFirst())))
    }
}
