import HalcyonModel
import Vips

/// The codecs that a rendering goes through, as far as bytes and variants tell before a pixel is decoded.
struct Codecs {
    /// Whether all of them look, every few milliseconds, whether they are to stop.
    let canBeStopped: Bool

    init(of order: Turn.Order) {
        canBeStopped =
            order.variants.allSatisfy { Self.canBeStopped(writing: $0.output) }
            && Self.canBeStopped(reading: order.source)
            && order.assets.values.allSatisfy(Self.canBeStopped(reading:))
    }

    /// Without a format the output keeps the kind of the source, which is looked at anyway, or becomes a JPEG or PNG.
    private static func canBeStopped(writing output: OutputOptions) -> Bool {
        !output.progressive && (output.format.map { Format($0).stopsWhileSaving } ?? true)
    }

    /// What cannot be opened is refused without work.
    private static func canBeStopped(reading bytes: [UInt8]) -> Bool {
        guard let file = try? EncodedImage(bytes) else { return true }
        guard file.format.stopsWhileLoading else { return false }
        return (try? file.open()).map { !$0.isDecodedAtOnce } ?? true
    }
}

extension Format {
    /// The files of libvips that images of this format are.
    fileprivate init(_ format: ImageFormat) {
        self =
            switch format {
            case .jpeg: .jpeg
            case .png: .png
            case .webp: .webp
            case .avif, .heic: .heif
            case .gif: .gif
            case .tiff: .tiff
            case .jxl: .jxl
            case .svg: .svg
            case .pdf: .pdf
            }
    }
}
