import HalcyonModel
import Vips

extension Image {
    /// Squares of `side` pixels from the top left corner, each of its mean colour; those that the right and lower edges cut
    /// are means of what there is of them.
    func pixelated(_ side: Int) throws(VipsError) -> Image {
        guard side > 1 else { return self }
        return try premultiplied { picture throws(VipsError) in
            var rows: [Image] = []
            for (top, height) in Self.runs(of: side, in: picture.height) {
                var pieces: [Image] = []
                for (left, width) in Self.runs(of: side, in: picture.width) {
                    let (across, down) = (min(side, width), min(side, height))
                    let means = try picture.cropped(left, top, width, height)
                        .calling("shrink", ["hshrink": .int(across), "vshrink": .int(down)])
                    pieces.append(
                        try Operation.call(
                            "zoom", ["input": .image(means), "xfac": .int(across), "yfac": .int(down)]
                        ).image())
                }
                rows.append(try pieces.joined("horizontal"))
            }
            return try rows.joined("vertical")
        }
    }

    /// Where whole blocks begin and how many pixels they take together, and the same for the cut one.
    private static func runs(of side: Int, in length: Int) -> [(start: Int, length: Int)] {
        let whole = length / side * side
        return [(0, whole), (whole, length - whole)].filter { $0.length > 0 }
    }

}
