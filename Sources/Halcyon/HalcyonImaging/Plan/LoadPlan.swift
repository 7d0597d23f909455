import HalcyonModel
import Vips

/// Step 3, shrink on load: how much smaller the decoder may make the picture on its way, and what that will take.
///
/// JPEG's DCT can be taken at 1/2, 1/4 or 1/8, and WebP is scaled to any size: both cost a fraction of decoding whole. What
/// is drawn (SVG, PDF) is drawn at the size that is needed. The decoded part must not be smaller than the output, so that
/// the last step is a real resize with a good kernel.
///
/// The reduction follows from the output alone, never from the other outputs of a job: the pixels of a result are a function
/// of its key. Outputs of one reduction share a decoding.
struct LoadPlan {
    enum Reduction: Hashable {
        case none
        /// JPEG: 2, 4 or 8.
        case shrink(Int)
        /// WebP: above 0, below 1. SVG and PDF: any.
        case scale(Double)

        /// - Parameters:
        ///   - spare: pixels of the source for each pixel of the output.
        ///   - quality: `none` promises pixels of the source and no averages; `high` leaves at least a factor of two to the
        ///     kernel, as libvips' thumbnail does.
        init(of format: ImageFormat, spare: Double, quality: InterpolationQuality) {
            let reducible = quality == .none ? 1 : quality == .high ? spare / 2 : spare
            switch format {
            case .svg, .pdf: self = spare == 1 ? .none : .scale(1 / spare)
            case .jpeg where reducible >= 2: self = .shrink(reducible >= 8 ? 8 : reducible >= 4 ? 4 : 2)
            case .webp where reducible > 1: self = .scale(1 / reducible)
            default: self = .none
            }
        }

        /// The reduction for an output. Animations are decoded whole.
        init(for output: OutputPlan, of source: SourceImage) {
            self =
                output.frames > 1
                ? .none
                : Reduction(
                    of: source.format, spare: output.spare, quality: output.variant.interpolationQuality)
        }

        /// Decoded pixels for each stored one along a side, about.
        var ratio: Double {
            switch self {
            case .none: 1
            case .shrink(let factor): 1 / Double(factor)
            case .scale(let factor): factor
            }
        }
    }

    let reduction: Reduction
    /// The metadata that an output keeps.
    let metadata: MetadataKept
    /// Frames that are decoded.
    let frames: Int
    /// Whether decoding, resizing and cropping are one pass, row by row, and the whole picture is never in memory. It is not
    /// for several outputs, which share the decoding, nor where all pixels are looked at first.
    let isOnePass: Bool
    /// Bytes of memory that decoding will take at most, and the outputs' pixels with it.
    let estimatedBytes: Int

    /// The plan for outputs that share a decoding.
    ///
    /// - Parameters:
    ///   - outputs: not empty, all of this reduction.
    ///   - sizes: of each output.
    init(_ reduction: Reduction, _ outputs: [OutputPlan], _ sizes: [OutputSizes], of source: SourceImage) {
        self.reduction = reduction
        metadata = outputs.reduce(into: []) { $0.formUnion($1.encoder.kept) }
        frames = outputs.map(\.frames).max() ?? 1
        isOnePass = outputs.count == 1 && frames == 1 && !outputs[0].variant.needsFocus
        let samples = source.bytesPerPixel
        let decoded = Self.pixels(of: source.rawSize, at: reduction.ratio)
        let kept = isOnePass ? 0 : decoded * Double(samples * frames) * 4 / 3
        let made = zip(outputs, sizes).map { output, sizes in
            Double(sizes.largest.pixels) * Double(samples * (3 + output.frames))
        }
        let bytes = source.decodingBytes(at: reduction) + kept + made.reduce(0, +)
        estimatedBytes = Int(min(bytes, 1e18))
    }

    /// Pixels of a picture of `size` that is decoded at `ratio`.
    static func pixels(of size: PixelSize, at ratio: Double) -> Double {
        Double(size.width) * ratio * Double(size.height) * ratio
    }
}

extension SourceImage {
    /// Bytes of a decoded pixel.
    fileprivate var bytesPerPixel: Int {
        header.bands * (header.sampleFormat == .uint8 ? 1 : header.sampleFormat == .uint16 ? 2 : 4)
    }

    /// What the decoder itself keeps in memory.
    fileprivate func decodingBytes(at reduction: LoadPlan.Reduction) -> Double {
        let isInterlaced = header.text(of: "jpeg-multiscan") == "1" || header.text(of: "interlaced") == "1"
        let whole = Double(rawSize.pixels * bytesPerPixel)
        let rows = Double(rawSize.width * bytesPerPixel * 64)
        return switch format {
        // A progressive JPEG keeps all coefficients, 16 bits each, until its last scan; a baseline one a few rows.
        case .jpeg: isInterlaced ? whole * 2 : rows
        case .png: isInterlaced ? whole : rows
        case .webp: LoadPlan.pixels(of: rawSize, at: reduction.ratio) * 4 + rows
        // Filters and groups are drawn beside the picture.
        case .svg, .pdf: LoadPlan.pixels(of: rawSize, at: reduction.ratio) * 12 + rows
        case .heic, .avif, .jxl: whole * 2.5
        // The whole picture, and the library's own copy of it.
        default: whole * 2
        }
    }
}

/// How the stored pixels have to be turned to stand upright: EXIF's Orientation (CIPA DC-008, 4.6.4).
///
/// Geometry is about the upright image, decoders give the stored one. So rectangles are turned back, pixels are resized
/// as they are stored, and only the small result is turned.
enum Orientation: Int, CaseIterable {
    case upright = 1
    case mirrored, turned180, flipped, transposed, turned90, transversed, turned270

    /// Numbers that EXIF does not know count as upright.
    init(exif number: Int) {
        self = Orientation(rawValue: number) ?? .upright
    }

    /// Whether width and height change places.
    var swapsSides: Bool { rawValue >= 5 }

    /// The upright size of stored pixels. It is its own inverse.
    func upright(_ size: PixelSize) -> PixelSize {
        swapsSides ? PixelSize(width: size.height, height: size.width) : size
    }

    /// Where `rect` of the upright image of `size` lies in the stored one.
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
