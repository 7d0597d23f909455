import HalcyonModel
import Vips

/// What a rendering is going to do, as far as headers tell: nothing of it is done.
///
/// Confined to the thread that made it, as its pictures are.
public struct RenderPlan {
    let source: SourceImage
    let outputs: [OutputPlan]
    /// The decodings, one after the other, each with the outputs that share it, as indices.
    let decodings: [(load: LoadPlan, outputs: [Int])]

    /// How long the rendering may go on after it was told to stop, in time of a processor: some codecs do not look up before
    /// they have made a whole picture. An estimate.
    public let unstoppable: Duration

    /// Bytes of memory that it will take at most: decoding, the outputs' pixels, and what encoders keep beside them. An estimate.
    public let memory: Int

    /// True if it decodes more than one frame.
    public var isAnimated: Bool { decodings.contains { $0.load.frames > 1 } }

    /// - Throws: ``Failure``: for what is no image, what cannot be made of it, and what would be more than is allowed.
    init(
        _ file: EncodedImage, _ variants: [Variant], within limits: ImageLimits, _ extensions: Extensions
    ) throws(Failure) {
        // One that is not to be made of a truncated file fails the others.
        let toleratesCut = variants.allSatisfy { ($0.tolerance ?? limits.tolerance) == .truncated }
        source = try SourceImage(file, toleratingCut: toleratesCut)
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
        var shared: [(reduction: LoadPlan.Reduction, outputs: [Int])] = []
        for (index, output) in outputs.enumerated() {
            let reduction = LoadPlan.Reduction(for: output, of: source)
            if let place = shared.firstIndex(where: { $0.reduction == reduction }) {
                shared[place].outputs.append(index)
            } else {
                shared.append((reduction, [index]))
            }
        }
        var decodings: [(load: LoadPlan, outputs: [Int])] = []
        for (reduction, indices) in shared {
            let load = LoadPlan(reduction, indices.map { outputs[$0] }, indices.map { sizes[$0] }, of: source)
            try limits.admit(source, load)
            decodings.append((load, indices))
        }
        let encoding = outputs.indices.map { outputs[$0].encoderBytes(for: sizes[$0].last) }.max() ?? 0
        memory = (decodings.map(\.load.estimatedBytes).max() ?? 0) + encoding
        try limits.admit(memory: memory)
        self.decodings = decodings
        self.outputs = outputs
        unstoppable = longest.isFinite ? .seconds(longest / 1000) : .seconds(3600)
    }
}
