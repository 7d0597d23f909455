import HalcyonImaging
import HalcyonModel

/// What a child is asked to do. The bytes of the source go beside it.
struct RenderRequest: Codable, Sendable {
    var limits: ImageLimits
    var variants: [Variant]
}
