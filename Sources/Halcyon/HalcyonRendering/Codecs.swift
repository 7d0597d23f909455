import HalcyonImaging
import HalcyonModel
import Vips

/// The codecs that a rendering goes through, as far as bytes and variants tell before any work.
struct Codecs {
    /// Whether all of them look, every few milliseconds, whether they are to stop.
    let canBeStopped: Bool

    init(of source: [UInt8], _ variants: [Variant]) {
        // What is of no known format is refused without work.
        let loads = (try? EncodedImage(source)).map { $0.format != .heif } ?? true
        canBeStopped = loads && variants.allSatisfy { $0.output.format != .avif && $0.output.format != .jxl }
    }
}
