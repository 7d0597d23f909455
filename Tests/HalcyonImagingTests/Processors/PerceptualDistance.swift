import HalcyonModel
import Vips

@testable import HalcyonImaging

/// The perceptual difference of two images in CIEDE2000, where 1 is about the smallest visible difference.
struct PerceptualDistance: Sendable, CustomStringConvertible {
    /// The mean over all pixels.
    let mean: Double
    /// The mean of the block of 8×8 pixels that differs most, because a local defect hardly affects ``mean``.
    let worstBlock: Double

    /// Compares images with alpha over black and over white, where alpha is visible, and takes the greater distance.
    ///
    /// - Returns: nil if the sizes differ, or only one has alpha.
    init?(_ first: Image, _ second: Image) throws {
        guard first.size == second.size, first.hasAlpha == second.hasAlpha else { return nil }
        var (mean, worst) = (0.0, 0.0)
        for background in first.hasAlpha ? [CSSColor.black, .white] : [.black] {
            let (left, right) = (try first.inLab(on: background), try second.inLab(on: background))
            let map = try Operation.call("dE00", ["left": .image(left), "right": .image(right)]).image()
            let blocks = try map.calling(
                "shrink", ["hshrink": .int(min(8, map.width)), "vshrink": .int(min(8, map.height)), "ceil": true])
            mean = max(mean, try Operation.call("avg", ["in": .image(map)]).double())
            worst = max(worst, try Operation.call("max", ["in": .image(blocks)]).double())
        }
        self.mean = mean
        worstBlock = worst
    }

    /// Whether the difference is invisible. The limits exceed the differences between versions of libvips: 8.14.1 and
    /// 8.16.1 resize a photograph 0.19 and 0.37 apart, and do everything else alike. A wrong parameter makes a greater
    /// difference, see `detectsChangedParameters`.
    var isInvisible: Bool { mean < 0.3 && worstBlock < 0.6 }

    var description: String { "mean \(mean), worst block \(worstBlock)" }
}

extension Image {
    fileprivate func inLab(on background: CSSColor) throws -> Image {
        try laid(on: background).inColour().calling("colourspace", ["space": "lab"])
    }
}
