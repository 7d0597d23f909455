import HalcyonModel
import Vips

extension Image {
    /// Squares of `side` pixels from the top left corner, each of its mean colour; those that the right and lower edges cut
    /// are means of what there is of them.
    func pixelated(_ side: Int) throws(VipsError) -> Image {
        guard side > 1 else { return self }
        let picture = try inMemory()
        return try picture.premultiplied { picture throws(VipsError) in
            var rows: [Image] = []
            for (top, height) in Self.runs(of: side, in: picture.height) {
                var pieces: [Image] = []
                for (left, width) in Self.runs(of: side, in: picture.width) {
                    let (across, down) = (min(side, width), min(side, height))
                    let piece = try picture.cropped(left, top, width, height)
                        .calling("shrink", ["hshrink": .int(across), "vshrink": .int(down)])
                        .calling(
                            "zoom", ["input": .image(picture), "xfac": .int(across), "yfac": .int(down)])
                    pieces.append(piece)
                }
                rows.append(try Self.joined(pieces, "horizontal"))
            }
            return try Self.joined(rows, "vertical")
        }
    }

    /// Where whole blocks begin and how many pixels they take together, and the same for the cut one.
    private static func runs(of side: Int, in length: Int) -> [(start: Int, length: Int)] {
        let whole = length / side * side
        return [(0, whole), (whole, length - whole)].filter { $0.length > 0 }
    }

    private static func joined(_ pieces: [Image], _ direction: String) throws(VipsError) -> Image {
        guard pieces.count == 2 else { return pieces[0] }
        return try Operation.call(
            "join", ["in1": .image(pieces[0]), "in2": .image(pieces[1]), "direction": .string(direction)]
        ).image()
    }
}
