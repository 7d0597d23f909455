import HalcyonModel
import Vips

/// What a rendering is going to do, as far as headers tell: nothing of it is done.
///
/// Confined to the thread that made it, as its pictures are.
public struct RenderPlan {
    let source: SourceImage
    let outputs: [OutputPlan]
    let load: LoadPlan

    /// How long the rendering may go on after it was told to stop, in time of a processor: some codecs do not look up before
    /// they have made a whole picture. An estimate.
    public let unstoppable: Duration

    /// Bytes of memory that it will take at most, decoding and the outputs' pixels together. An estimate.
    public var memory: Int { load.estimatedBytes }

    /// - Throws: ``Failure``: for what is no image, what cannot be made of it, and what would be more than is allowed.
    init(
        _ file: EncodedImage, _ variants: [Variant], within limits: ImageLimits, _ extensions: Extensions
    ) throws(Failure) {
        source = try SourceImage(file)
        var outputs: [OutputPlan] = []
        var sizes: [OutputSizes] = []
        var longest = source.unstoppableMilliseconds
        for (index, variant) in variants.enumerated() {
            do throws(Failure) {
                let output = try OutputPlan(variant, of: source, extensions)
                sizes.append(try limits.admit(output, extensions))
                longest = max(longest, output.unstoppableMilliseconds(for: sizes[index].last))
                outputs.append(output)
            } catch {
                throw error.of(variant: index)
            }
        }
        load = LoadPlan(outputs, sizes, of: source)
        try limits.admit(source, load)
        self.outputs = outputs
        unstoppable = longest.isFinite ? .seconds(longest / 1000) : .seconds(3600)
    }
}
