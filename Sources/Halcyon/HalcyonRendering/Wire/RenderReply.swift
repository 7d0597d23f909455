import HalcyonImaging
import HalcyonModel

/// What a child answers. The files go beside it.
struct RenderReply: Codable, Sendable {
    enum Outcome: Codable, Sendable {
        case rendered([Facts])
        case failed(Failure)
    }

    /// What is known of an output besides its bytes.
    struct Facts: Codable, Sendable {
        var format: ImageFormat
        var size: PixelSize
        var sha256: String
        var sourceFormat: ImageFormat
        var sourceSize: PixelSize
        var timings: RenderedImage.Timings

        init(_ image: RenderedImage) {
            format = image.format
            size = image.size
            sha256 = image.sha256
            sourceFormat = image.sourceFormat
            sourceSize = image.sourceSize
            timings = image.timings
        }

        func image(_ body: [UInt8]) -> RenderedImage {
            RenderedImage(
                body: body, format: format, size: size, sha256: sha256, sourceFormat: sourceFormat,
                sourceSize: sourceSize, timings: timings)
        }
    }

    var outcome: Outcome
    /// Memory that the child holds now, in bytes.
    var residentBytes: Int
}
