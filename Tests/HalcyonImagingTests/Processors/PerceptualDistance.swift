import HalcyonModel
import Vips

@testable import HalcyonImaging

/// How different two pictures look: CIEDE2000, in whose units 1 is about the least that an eye can tell.
struct PerceptualDistance: Sendable, CustomStringConvertible {
    /// Over all pixels.
    let mean: Double
    /// Of the block of 8×8 pixels that differs most: a fault in one corner must not drown in the rest.
    let worstBlock: Double

    /// The pictures are laid over black and over white, so that alpha counts where it is seen; the greater distance counts.
    ///
    /// - Returns: nil when the sizes differ, or one has alpha and the other has not.
    init?(_ first: Image, _ second: Image) throws {
        guard first.size == second.size, first.hasAlpha == second.hasAlpha else { return nil }
        var (mean, worst) = (0.0, 0.0)
        for fixture in first.hasAlpha ? [CSSColor.black, .white] : [.black] {
            let (left, right) = (try first.inLab(on: fixture), try second.inLab(on: fixture))
            let map = try Operation.call("dE00", ["left": .image(left), "right": .image(right)]).image()
            let blocks = try map.calling(
                "shrink", ["hshrink": .int(min(8, map.width)), "vshrink": .int(min(8, map.height)), "ceil": true])
            mean = max(mean, try Operation.call("avg", ["in": .image(map)]).double())
            worst = max(worst, try Operation.call("max", ["in": .image(blocks)]).double())
        }
        self.mean = mean
        worstBlock = worst
    }

    /// Less than an eye sees, and more than versions of libvips differ by: 8.14.1 and 8.16.1 resize a photograph 0.19 and 0.37
    /// apart, and do everything else alike. What a wrong parameter does is more, see `aWrongParameterIsFound`.
    var isUnseen: Bool { mean < 0.3 && worstBlock < 0.6 }

    var description: String { "mean \(mean), worst block \(worstBlock)" }
}

extension Image {
    fileprivate func inLab(on fixture: CSSColor) throws -> Image {
        try laid(on: fixture).inColour().calling("colourspace", ["space": "lab"])
    }
}
