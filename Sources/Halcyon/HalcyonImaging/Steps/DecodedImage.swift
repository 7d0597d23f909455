import HalcyonModel
import Vips

/// Step 4, decode: the pixels of a source as its outputs take them. One pass for a single output; in memory, with halves of
/// it as they are needed, for several.
///
/// Confined to the rendering that made it, as its pictures are.
final class DecodedImage {
    /// The picture at one resolution.
    struct Level {
        let image: Image
        /// Pixels of it for each stored pixel along the sides.
        let across: Double
        let down: Double
    }

    private let isInMemory: Bool
    private let cancellation: Cancellation?
    private var levels: [Level]

    init(_ source: SourceImage, _ load: LoadPlan, _ cancellation: Cancellation?) throws(VipsError) {
        self.cancellation = cancellation
        isInMemory = !load.isOnePass
        let opened = try source.open(load)
        let image = isInMemory ? try opened.inMemory(cancellation) : opened
        let (across, down) =
            switch load.reduction {
            case .none: (1.0, 1.0)
            // A shrinking JPEG decoder makes a pixel of each whole 2, 4 or 8 and drops what is left over.
            case .shrink(let factor): (1 / Double(factor), 1 / Double(factor))
            case .scale:
                (
                    Double(image.width) / Double(source.rawSize.width),
                    Double(image.height) / Double(source.rawSize.height)
                )
            }
        levels = [Level(image: image, across: across, down: down)]
    }

    /// A frame at the resolution that an output takes: of those not smaller than it the smallest.
    ///
    /// Halving averages each four pixels, as shrinking on load does, so that an output is the same by eye whether it is made
    /// alone or beside others.
    func frame(_ index: Int, for output: OutputPlan) throws(VipsError) -> Level {
        let whole = levels[0]
        guard whole.image.frames == 1 else {
            return Level(image: try whole.image.page(index), across: whole.across, down: whole.down)
        }
        guard isInMemory, output.isSmooth, !whole.image.hasAlpha else { return whole }
        var depth = 0
        while output.spare * min(levels[depth].across, levels[depth].down) >= 2 {
            depth += 1
            if depth == levels.count { levels.append(try half(of: levels[depth - 1])) }
        }
        return levels[depth]
    }

    /// The frames of an output, joined to the animation that they are in the source.
    func animation(of frames: [Image]) throws(VipsError) -> Image {
        guard frames.count > 1 else { return frames[0] }
        let delays = levels[0].image.frameDelays.prefix(frames.count)
        return try .strip(
            frames, delays: delays.count == frames.count ? Array(delays) : [], loop: levels[0].image.loopCount ?? 0)
    }

    private func half(of level: Level) throws(VipsError) -> Level {
        // An odd row or column makes one more pixel: dropped at each halving, they would add up.
        let image = try Operation.call(
            "shrink", ["in": .image(level.image), "hshrink": 2, "vshrink": 2, "ceil": true]
        ).image().inMemory(cancellation)
        return Level(image: image, across: level.across / 2, down: level.down / 2)
    }
}
