import HalcyonModel
import Testing
import Vips

@testable import HalcyonImaging

/// An image in memory, row by row.
struct Bitmap: Sendable {
    var width: Int
    var height: Int
    var bands: Int
    var bytes: [UInt8]

    init(_ bytes: [UInt8], width: Int, height: Int, bands: Int) {
        (self.bytes, self.width, self.height, self.bands) = (bytes, width, height, bands)
    }

    /// Creates an image of equal pixels.
    init(_ pixel: [UInt8], width: Int, height: Int) {
        self.init(
            [[UInt8]](repeating: pixel, count: width * height).flatMap { $0 }, width: width, height: height,
            bands: pixel.count)
    }

    init(_ image: Image) throws {
        self.init(try image.pixels(), width: image.width, height: image.height, bands: image.bands)
    }

    var image: Image { get throws { try Image(pixels: bytes, width: width, height: height, bands: bands) } }

    subscript(x: Int, y: Int) -> [UInt8] {
        get { Array(bytes[(y * width + x) * bands..<(y * width + x + 1) * bands]) }
        set { bytes.replaceSubrange((y * width + x) * bands..<(y * width + x + 1) * bands, with: newValue) }
    }

    var size: PixelSize { PixelSize(width: width, height: height) }
}

/// Applies processors on a render thread.
func applied(
    _ processors: Processor..., to picture: Bitmap, assets: [Source: [UInt8]] = [:],
    extensions: Extensions = Extensions(), limits: ImageLimits = ImageLimits(), _ quality: InterpolationQuality = .high
) async throws -> Bitmap {
    try await onRenderThread {
        let result = try picture.image.processed(
            by: processors, with: ProcessingAssets(assets, within: limits), extensions, quality: quality)
        #expect(result.sampleFormat == .uint8)
        #expect(result.interpretation == (result.bands < 3 ? .grey : .sRGB))
        return try Bitmap(result)
    }
}
