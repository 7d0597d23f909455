import HalcyonModel
import Vips

extension Image {
    /// Step 10, processors: applies all processors in their order.
    ///
    /// The image has 8-bit samples, sRGB or grey, with straight alpha or without alpha. It remains so. Grey becomes
    /// sRGB when a color is added, and alpha is added only if pixels can become transparent. Each step except the last
    /// is computed before the next one starts, because several processors read a pixel more than once.
    ///
    /// - Parameters:
    ///   - assets: The images that overlays and watermarks use.
    ///   - extensions: The custom processors.
    ///   - quality: The interpolation quality for size changes.
    ///   - faces: The faces in fractions of the image; nil if they have not been looked for.
    /// - Throws: ``JobError``, which names the processor or the image that caused it; `CancellationError`.
    func processed(
        by processors: [Processor], with assets: ProcessingAssets, _ extensions: Extensions,
        quality: InterpolationQuality, faces: [DetectedBox]? = nil, _ cancellation: Cancellation? = nil
    ) throws -> Image {
        var picture = self
        for processor in processors {
            do {
                picture = try picture.inMemory(cancellation)
                if case .hideFaces(let hiding) = processor {
                    picture = try picture.hiding(faces, by: hiding)
                } else {
                    picture = try picture.processed(by: processor, with: assets, extensions, quality)
                }
            } catch let error as VipsError {
                if error.code == .cancelled { throw CancellationError() }
                throw JobError(.internal, "the processor \(processor.name): \(error)", cause: error)
            }
        }
        return picture
    }

    private func processed(
        by processor: Processor, with assets: ProcessingAssets, _ extensions: Extensions,
        _ quality: InterpolationQuality
    ) throws -> Image {
        switch processor {
        case .roundCorner(let round): try rounded(round)
        case .resize, .downsample: try scaled(to: processor.size(of: size), quality)
        case .crop(let part, let anchor): try cropped(to: part, anchor: anchor)
        case .blur(let radius): try blurred(radius: radius)
        case .tint(let color): try tinted(color)
        case .overlay(.color(let color, let fraction)): try tinted(color, strength: 1 - fraction)
        case .overlay(.picture(_, let opacity, let mode)):
            try overlaid(with: assets.picture(for: processor, on: size, quality), opacity: opacity, by: mode)
        case .blend(let blend): try blended(blend)
        case .colorControls(let controls): try controlled(controls)
        case .blackWhite: try controlled(.blackWhite)
        case .border(let border): try bordered(border)
        case .sharpen(let sharpen): try sharpened(sharpen)
        case .pixelate(let side): try pixelated(side)
        case .watermark(let watermark):
            try marked(with: assets.picture(for: processor, on: size, quality), watermark)
        case .rotate(let degrees, let background): try turned(degrees: degrees, on: background, quality)
        case .flip(let flip): try flipped(flip)
        case .pad(let pad): try padded(pad, quality)
        case .text(let text): try written(text)
        case .mask(.shape(let shape)): try masked(by: shape.mask(of: size))
        case .mask(.picture):
            try masked(by: assets.picture(for: processor, on: size, quality).asMask())
        case .hue(let degrees): try rotatingHue(degrees: degrees)
        case .gamma(let gamma): try corrected(gamma: gamma)
        case .normalize(let normalize): try normalized(normalize)
        case .duotone(let dark, let light): try toned(from: dark, to: light)
        case .hideFaces(let method): try hiding(nil, by: method)
        case .custom(let rule): try extensions.process(self, by: rule)
        }
    }
}

extension ImageLimits {
    /// Checks each intermediate size of the processors against ``outputPixels``, without any pixels.
    ///
    /// - Parameters:
    ///   - size: The input size of the first processor.
    ///   - frames: The number of frames of an animation; 1 for a still image.
    /// - Throws: ``JobError`` `too_many_pixels` that names the processor.
    func admit(
        _ processors: [Processor], on size: PixelSize, frames: Int = 1, _ extensions: Extensions
    ) throws(JobError) -> OutputSizes {
        var (size, largest) = (size, size)
        for processor in processors {
            size = try extensions.size(of: size, after: processor)
            // The product of two sides could overflow, so each side is checked first.
            guard size.width <= outputPixels, size.height <= outputPixels, size.pixels <= outputPixels / frames else {
                throw JobError(
                    .tooManyPixels,
                    "the processor \(processor.name) would produce \(size.width)×\(size.height) pixels; "
                        + "\(outputPixels / frames) are allowed")
            }
            if size.pixels > largest.pixels { largest = size }
        }
        return OutputSizes(last: size, largest: largest)
    }
}

/// The sizes of an output's frame during processing.
struct OutputSizes: Hashable {
    /// The size after the last processor.
    let last: PixelSize
    /// The size with the most pixels, before, between or after the processors.
    var largest: PixelSize
}

/// The use of an image by a processor.
struct AssetRequest: Hashable {
    let source: Source
    let processor: Processor
    /// The size of the image that is processed.
    let size: PixelSize
    let quality: InterpolationQuality

    /// Creates a request. Returns nil for a processor that uses no image.
    init?(_ processor: Processor, on size: PixelSize, _ quality: InterpolationQuality) {
        guard let source = processor.asset else { return nil }
        (self.source, self.processor, self.size, self.quality) = (source, processor, size, quality)
    }

    /// Returns an error that begins with the processor's name and the source.
    func naming(_ failure: JobError) -> JobError { failure.within("\(processor.name): \(source.shownText)") }
}

/// The plan of an image that a processor uses, based on its header. No pixel is decoded.
struct AssetPlan {
    let source: SourceImage
    let output: OutputPlan
    let load: LoadPlan

    /// - Throws: ``JobError`` if the file is not an image or a limit is exceeded.
    init(_ request: AssetRequest, _ file: [UInt8], within limits: ImageLimits) throws(JobError) {
        source = try SourceImage(EncodedImage(identifying: file))
        let display = request.processor.display(of: source.size, on: request.size)
        let variant = Variant(
            sizing: Sizing(goal: .display(display)), interpolationQuality: request.quality,
            output: OutputOptions(format: .png))
        output = try OutputPlan(variant, of: source, Extensions())
        let sizes = try limits.admit(output, Extensions())
        load = LoadPlan(LoadPlan.Reduction(for: output, of: source), [output], [sizes], of: source)
        try limits.admit(source, load)
    }

    /// The size of the image before it is turned upright.
    var target: PixelSize { source.orientation.upright(output.geometry.destRect.size) }
}

/// The estimated cost of the images that the processors of a rendering use, based on their headers.
struct AssetCosts {
    /// The memory for decoding the image that needs the most, in bytes.
    private(set) var decodingBytes = 0
    /// The memory of all images after decoding, in bytes. They are retained until the rendering ends.
    private(set) var retainedBytes = 0
    /// The maximum CPU time in milliseconds for which decoding an image continues after cancellation.
    private(set) var unstoppableMilliseconds = 0.0
    private var requests: Set<AssetRequest> = []

    /// Adds the images that an output uses, each once. Those without a file are skipped.
    ///
    /// - Throws: ``JobError``, which names the processor and the image.
    mutating func add(
        _ output: OutputPlan, _ files: [Source: [UInt8]], within limits: ImageLimits, _ extensions: Extensions
    ) throws(JobError) {
        for request in try output.assetRequests(extensions) where requests.insert(request).inserted {
            guard let file = files[request.source] else { continue }
            do throws(JobError) {
                let plan = try AssetPlan(request, file, within: limits)
                decodingBytes = max(decodingBytes, plan.load.estimatedBytes)
                retainedBytes += plan.target.pixels * 4
                unstoppableMilliseconds = max(unstoppableMilliseconds, plan.source.unstoppableMilliseconds)
            } catch {
                throw request.naming(error)
            }
        }
    }
}

extension OutputPlan {
    /// Returns the images that the processors use, in their order. The sizes do not consider ``Sizing/trim``.
    fileprivate func assetRequests(_ extensions: Extensions) throws(JobError) -> [AssetRequest] {
        var requests: [AssetRequest] = []
        for (processors, start) in [(variant.before, sourceSize), (variant.processors, geometry.outputSize)] {
            var size = start
            for processor in processors {
                if let request = AssetRequest(processor, on: size, variant.interpolationQuality) {
                    requests.append(request)
                }
                size = try extensions.size(of: size, after: processor)
            }
        }
        return requests
    }
}

/// The images that the processors of a rendering use in addition to the source, decoded on demand.
///
/// Confined to the rendering that created it, as are its images.
final class ProcessingAssets {
    private let files: [Source: [UInt8]]
    private let limits: ImageLimits
    private let cancellation: Cancellation?
    /// The decoded images. Each frame of an animation requests the same image.
    private var decoded: [AssetRequest: Image] = [:]

    /// - Parameters:
    ///   - files: The bytes of the sources.
    ///   - limits: The limits of each source.
    init(_ files: [Source: [UInt8]], within limits: ImageLimits, _ cancellation: Cancellation? = nil) {
        self.files = files
        self.limits = limits
        self.cancellation = cancellation
    }

    /// Returns the image of an overlay or a watermark, at its size on an image of `size`: upright, 8-bit sRGB or grey,
    /// with or without alpha, in memory.
    ///
    /// - Throws: ``JobError`` that begins with the processor's name and the source:
    ///   `overlay: https://example.org/a.png: …`; `CancellationError`.
    func picture(
        for processor: Processor, on size: PixelSize, _ quality: InterpolationQuality
    ) throws -> Image {
        guard let request = AssetRequest(processor, on: size, quality) else {
            throw JobError(.internal, "\(processor.name): the processor has no image")
        }
        if let picture = decoded[request] { return picture }
        do {
            guard let file = files[request.source] else {
                throw JobError(.internal, "the image has not been loaded")
            }
            let picture = try decode(AssetPlan(request, file, within: limits))
            decoded[request] = picture
            return picture
        } catch let error as VipsError {
            if error.code == .cancelled { throw CancellationError() }
            throw request.naming(JobError(.corruptImage, "\(error)", cause: error))
        } catch let failure as JobError {
            throw request.naming(failure)
        }
    }

    /// Runs the steps of a job's source, up to its upright pixels.
    private func decode(_ plan: AssetPlan) throws(VipsError) -> Image {
        let (source, output) = (plan.source, plan.output)
        return try DecodedImage(source, plan.load, cancellation).sized(0, output.part, to: plan.target, for: output)
            .inSRGB(keepingProfile: false).turned(source.orientation)
            .inMemory(cancellation)
    }
}

extension Processor {
    /// Returns the sizing of an image that the processor uses.
    fileprivate func display(of picture: PixelSize, on size: PixelSize) -> Display {
        let (size, mode): (PixelSize, ContentMode) =
            switch self {
            case .watermark(let watermark): (watermark.size(of: picture, on: size), .scaleToFill)
            case .mask: (size, .scaleToFill)
            default: (size, .scaleAspectFill)
            }
        return Display(width: Double(size.width), height: Double(size.height), contentMode: mode)
    }
}
