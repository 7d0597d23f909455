import HalcyonImaging
import HalcyonModel
import Processes
import Vips

/// What a child is asked to do. Beside it go the bytes of the source, and then those of the assets.
struct RenderRequest: Codable {
    var limits: ImageLimits
    /// Bytes of memory that the rendering may take.
    var memory: Int
    var variants: [Variant]
    /// What the bytes behind the source's are of.
    private var assets: [Source]
    /// The formats that may be read, by their names.
    var formats: Set<String>

    /// The message that asks for it.
    static func message(_ order: Turn.Order, within limits: ImageLimits, memory: Int) throws -> MessageSocket.Message {
        let assets = Array(order.assets)
        let request = RenderRequest(
            limits: limits, memory: memory, variants: order.variants, assets: assets.map(\.key),
            formats: Set(VipsLibrary.allowed.map(\.rawValue)))
        return try MessageSocket.Message(request, [order.source] + assets.map(\.value))
    }

    /// Looks at headers, on the calling thread.
    /// - Throws: ``Failure``.
    func plan(_ source: [UInt8], _ extensions: Extensions) throws(Failure) -> (Renderer, RenderPlan) {
        let formats = Set(formats.compactMap(Format.init(rawValue:)))
        if VipsLibrary.allowed != formats { VipsLibrary.allow(formats) }
        let renderer = Renderer(limits: limits, extensions: extensions)
        return (renderer, try renderer.plan(renderer.identify(source), variants))
    }

    /// The bytes of what is laid over the source.
    func assets(_ bodies: [[UInt8]]) -> [Source: [UInt8]] {
        Dictionary(uniqueKeysWithValues: zip(assets, bodies.dropFirst()))
    }
}
