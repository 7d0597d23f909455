import HalcyonModel
import Vips

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
