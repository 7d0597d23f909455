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
