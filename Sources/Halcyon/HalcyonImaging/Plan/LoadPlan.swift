import HalcyonModel
import Vips

/// Step 3, shrink on load: the factor by which the decoder reduces the image, and the memory that decoding needs.
///
/// JPEG's DCT can be decoded at 1/2, 1/4 or 1/8, and WebP can be scaled to any size. Both cost a fraction of full
/// decoding. Vector formats (SVG, PDF) are drawn at the required size. The decoded part must not be smaller than the
/// output, so that the last step is a real resize with a good kernel.
///
/// The reduction depends on the output alone, never on the other outputs of a job, because the pixels of a result are a
/// function of its key. Outputs with the same reduction share a decoding.
struct LoadPlan {
    enum Reduction: Hashable {
        case none
        /// A factor for JPEG: 2, 4 or 8.
        case shrink(Int)
        /// A scale for WebP, above 0 and below 1, or any scale for SVG and PDF.
        case scale(Double)

        /// - Parameters:
        ///   - spare: The number of source pixels per output pixel.
        ///   - quality: The interpolation quality. `none` requires unaveraged source pixels. `high` leaves at least a
        ///     factor of two to the kernel, like libvips' thumbnail operation.
        init(of format: ImageFormat, spare: Double, quality: InterpolationQuality) {
            let reducible = quality == .none ? 1 : quality == .high ? spare / 2 : spare
            switch format {
            case .svg, .pdf: self = spare == 1 ? .none : .scale(1 / spare)
            case .jpeg where reducible >= 2: self = .shrink(reducible >= 8 ? 8 : reducible >= 4 ? 4 : 2)
            case .webp where reducible > 1: self = .scale(1 / reducible)
            default: self = .none
            }
        }

        /// Creates the reduction for an output. Animations are decoded at full size, and so are images that are
        /// processed before they are sized. Decoders average encoded samples, which linear light does not permit.
        init(for output: OutputPlan, of source: SourceImage) {
            self =
                output.frames > 1 || output.variant.needsFullResolution
                ? .none
                : Reduction(
                    of: source.storedFormat, spare: output.spare / source.reduction,
                    quality: output.variant.interpolationQuality)
        }

        /// The approximate number of decoded pixels per stored pixel along a side.
        var ratio: Double {
            switch self {
            case .none: 1
            case .shrink(let factor): 1 / Double(factor)
            case .scale(let factor): factor
            }
        }
    }

    let reduction: Reduction
    /// The metadata that the outputs retain.
    let metadata: MetadataPolicy
    /// The number of decoded frames.
    let frames: Int
    /// True if decoding, resizing and cropping are a single pass, row by row, and the whole image is never in memory.
    /// This is not possible for several outputs, which share the decoding, or if all pixels are analyzed first.
    let isOnePass: Bool
    /// The maximum memory for decoding and for the pixels of the outputs, in bytes.
    let estimatedBytes: Int

    /// Creates the plan for outputs that share a decoding.
    ///
    /// - Parameters:
    ///   - outputs: The outputs with this reduction; not empty.
    ///   - sizes: The sizes of each output.
    init(_ reduction: Reduction, _ outputs: [OutputPlan], _ sizes: [OutputSizes], of source: SourceImage) {
        self.reduction = reduction
        metadata = outputs.reduce(into: []) { $0.formUnion($1.encoder.kept) }
        frames = outputs.map(\.frames).max() ?? 1
        isOnePass = outputs.count == 1 && frames == 1 && !outputs[0].variant.needsWholeImage
        let samples = source.bytesPerPixel
        let decoded = Self.pixels(of: source.storedSize, at: reduction.ratio)
        let kept = isOnePass ? 0 : decoded * Double(samples * frames) * 4 / 3
        let made = zip(outputs, sizes).map { output, sizes in
            let bytes = output.variant.output.bitDepth == nil ? samples : max(samples, source.header.bands * 2)
            return Double(sizes.largest.pixels) * Double(bytes * (3 + output.frames))
        }
        let bytes = source.decodingBytes(at: reduction) + kept + made.reduce(0, +)
        estimatedBytes = Int(min(bytes, 1e18))
    }

    /// Returns the number of pixels of an image that is decoded at `ratio`.
    static func pixels(of size: PixelSize, at ratio: Double) -> Double {
        Double(size.width) * ratio * Double(size.height) * ratio
    }
}

extension SourceImage {
    /// The size of a decoded pixel, in bytes.
    fileprivate var bytesPerPixel: Int {
        header.bands * (header.sampleFormat == .uint8 ? 1 : header.sampleFormat == .uint16 ? 2 : 4)
    }

    /// Returns the memory that the decoder needs, in bytes.
    fileprivate func decodingBytes(at reduction: LoadPlan.Reduction) -> Double {
        let isInterlaced = header.text(of: "jpeg-multiscan") == "1" || header.text(of: "interlaced") == "1"
        let whole = Double(storedSize.pixels * bytesPerPixel)
        let rows = Double(storedSize.width * bytesPerPixel * 64)
        return switch storedFormat {
        // A progressive JPEG holds all coefficients, 16 bits each, until its last scan; a baseline JPEG holds a few
        // rows.
        case .jpeg: isInterlaced ? whole * 2 : rows
        case .png: isInterlaced ? whole : rows
        case .bmp: rows
        case .webp: LoadPlan.pixels(of: storedSize, at: reduction.ratio) * 4 + rows
        // Filters and groups are drawn in separate buffers.
        case .svg, .pdf: LoadPlan.pixels(of: storedSize, at: reduction.ratio) * 12 + rows
        case .heic, .avif, .jxl: whole * 2.5
        // The whole image, and the library's copy of it.
        default: whole * 2
        }
    }
}

/// The transformation that makes the stored pixels upright: EXIF's Orientation (CIPA DC-008, 4.6.4).
///
/// Geometry refers to the upright image, but decoders return the stored one. Rectangles are therefore transformed back,
/// pixels are resized as stored, and only the small result is rotated.
enum Orientation: Int, CaseIterable {
    case upright = 1
    case mirrored, turned180, flipped, transposed, turned90, transversed, turned270

    /// Creates an orientation. Unknown numbers count as upright.
    init(exif number: Int) {
        self = Orientation(rawValue: number) ?? .upright
    }

    /// True if width and height are swapped.
    var swapsSides: Bool { rawValue >= 5 }

    /// Returns the upright size of stored pixels. The function is its own inverse.
    func upright(_ size: PixelSize) -> PixelSize {
        swapsSides ? PixelSize(width: size.height, height: size.width) : size
    }

    /// Returns the rectangle in the stored image for `rect` in the upright image of `size`.
    func stored(_ rect: PixelRect, in size: PixelSize) -> PixelRect {
        let fromRight = size.width - rect.x - rect.width
        let fromBottom = size.height - rect.y - rect.height
        return switch self {
        case .upright: rect
        case .mirrored: PixelRect(x: fromRight, y: rect.y, width: rect.width, height: rect.height)
        case .turned180: PixelRect(x: fromRight, y: fromBottom, width: rect.width, height: rect.height)
        case .flipped: PixelRect(x: rect.x, y: fromBottom, width: rect.width, height: rect.height)
        case .transposed: PixelRect(x: rect.y, y: rect.x, width: rect.height, height: rect.width)
        case .turned90: PixelRect(x: rect.y, y: fromRight, width: rect.height, height: rect.width)
        case .transversed: PixelRect(x: fromBottom, y: fromRight, width: rect.height, height: rect.width)
        case .turned270: PixelRect(x: fromBottom, y: rect.x, width: rect.height, height: rect.width)
        }
    }
}
