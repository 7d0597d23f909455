import HalcyonModel
import Vips

extension Image {
    /// Step 10, processors: the picture after all of them, in their order.
    ///
    /// The picture has 8-bit samples, sRGB or grey, straight alpha or none. It stays so: grey becomes sRGB where a colour
    /// comes in, and alpha comes only where something can become transparent. Each step but the last has run when the next
    /// begins, for several read a pixel more than once.
    ///
    /// - Parameters:
    ///   - assets: the pictures that overlays and watermarks take.
    ///   - extensions: the host program's own processors.
    ///   - quality: how pixels are interpolated where a size changes.
    /// - Throws: ``Failure``, which names the processor or the picture that it is about; `CancellationError`.
    func processed(
        by processors: [Processor], with assets: ProcessingAssets, _ extensions: Extensions,
        quality: InterpolationQuality, _ cancellation: Cancellation? = nil
    ) throws -> Image {
        var picture = self
        for processor in processors {
            do {
                picture = try picture.inMemory(cancellation)
                    .processed(by: processor, with: assets, extensions, quality)
            } catch let error as VipsError {
                if error.code == .cancelled { throw CancellationError() }
                throw Failure(.internal, "the processor \(processor.name): \(error)", cause: error)
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
        case .overlay(.picture(_, let opacity)):
            try overlaid(with: assets.picture(for: processor, on: size, quality), opacity: opacity)
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
        case .custom(let rule): try extensions.process(self, by: rule)
        }
    }
}

extension ImageLimits {
    /// Holds each size that processors make on the way against ``outputPixels``, without a pixel.
    ///
    /// - Parameters:
    ///   - size: what the first one gets.
    ///   - frames: of an animation; 1 for a still image.
    /// - Throws: ``Failure`` `too_many_pixels` that names the processor.
    func admit(
        _ processors: [Processor], on size: PixelSize, frames: Int = 1, _ extensions: Extensions
    ) throws(Failure) -> OutputSizes {
        var (size, largest) = (size, size)
        for processor in processors {
            size = try extensions.size(of: size, after: processor)
            // A product of two sides could overflow: each is bounded first.
            guard size.width <= outputPixels, size.height <= outputPixels, size.pixels <= outputPixels / frames else {
                throw Failure(
                    .tooManyPixels,
                    "the processor \(processor.name) would make \(size.width)×\(size.height) pixels; "
                        + "\(outputPixels / frames) are allowed")
            }
            if size.pixels > largest.pixels { largest = size }
        }
        return OutputSizes(last: size, largest: largest)
    }
}

/// The sizes that a frame of an output has on its way through the processors.
struct OutputSizes: Hashable {
    /// Behind the last of them.
    let last: PixelSize
    /// With the most pixels, before, between or behind them.
    let largest: PixelSize
}

/// The pictures that the processors of a rendering take beside the job's own, decoded as they are asked for.
///
/// Confined to the rendering that made it, as its pictures are.
final class ProcessingAssets {
    private let files: [Source: [UInt8]]
    private let limits: ImageLimits
    private let cancellation: Cancellation?
    /// An animation asks for the same picture with each frame.
    private var decoded: [Request: Image] = [:]

    private struct Request: Hashable {
        let processor: Processor
        let size: PixelSize
    }

    /// - Parameters:
    ///   - files: what the sources hold.
    ///   - limits: of each of them.
    init(_ files: [Source: [UInt8]], within limits: ImageLimits, _ cancellation: Cancellation? = nil) {
        self.files = files
        self.limits = limits
        self.cancellation = cancellation
    }

    /// The picture of an overlay or a watermark, at the size that it has on a picture of `size`: upright, 8-bit sRGB or grey,
    /// with alpha or without, in memory.
    ///
    /// - Throws: ``Failure`` that begins with the processor's name and the source: `overlay: https://example.org/a.png: …`;
    ///   `CancellationError`.
    func picture(
        for processor: Processor, on size: PixelSize, _ quality: InterpolationQuality
    ) throws -> Image {
        guard let source = processor.asset else {
            throw Failure(.internal, "\(processor.name): there is no picture to take")
        }
        let request = Request(processor: processor, size: size)
        if let picture = decoded[request] { return picture }
        do {
            guard let file = files[source] else { throw Failure(.internal, "its bytes are not there") }
            let picture = try decode(file, for: processor, on: size, quality)
            decoded[request] = picture
            return picture
        } catch let error as VipsError {
            if error.code == .cancelled { throw CancellationError() }
            throw Failure(.corruptImage, "\(error)", cause: error).within("\(processor.name): \(source.shownText)")
        } catch let failure as Failure {
            throw failure.within("\(processor.name): \(source.shownText)")
        }
    }

    /// The steps of a job's own source, up to its upright pixels.
    private func decode(
        _ file: [UInt8], for processor: Processor, on size: PixelSize, _ quality: InterpolationQuality
    ) throws -> Image {
        let source = try SourceImage(EncodedImage(identifying: file))
        let display = processor.display(of: source.size, on: size)
        let variant = Variant(
            sizing: Sizing(goal: .display(display)), interpolationQuality: quality,
            output: OutputOptions(format: .png))
        let output = try OutputPlan(variant, of: source, Extensions())
        let sizes = try limits.admit(output, Extensions())
        let load = LoadPlan(LoadPlan.Reduction(for: output, of: source), [output], [sizes], of: source)
        try limits.admit(source, load)
        let target = source.orientation.upright(output.geometry.destRect.size)
        return try DecodedImage(source, load, cancellation).sized(0, output.part, to: target, for: output)
            .inSRGB(keepingProfile: false).turned(source.orientation)
            .inMemory(cancellation)
    }
}

extension Processor {
    /// How a picture that the processor takes is placed to have its size.
    fileprivate func display(of picture: PixelSize, on size: PixelSize) -> Display {
        guard case .watermark(let watermark) = self else {
            return Display(width: Double(size.width), height: Double(size.height), contentMode: .scaleAspectFill)
        }
        let mark = watermark.size(of: picture, on: size)
        return Display(width: Double(mark.width), height: Double(mark.height), contentMode: .scaleToFill)
    }
}
