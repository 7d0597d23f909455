import HalcyonModel
import Vips

extension Image {
    /// Cut to round corners; the background is then seen in them, and through what was transparent before, as in Kingfisher.
    func rounded(_ round: RoundCorner) throws(VipsError) -> Image {
        let rectangle = RoundedRectangle(
            size: size, inset: 0, radius: round.radius.pixels(in: size), corners: round.corners)
        let cut = rectangle.radius > 0 ? try masked(by: rectangle.mask()) : self
        guard let background = round.background else { return cut }
        return try cut.laid(on: background)
    }

    /// A line along the edge, inside it, over the picture, and both cut to the line's outer edge.
    func bordered(_ border: Border) throws(VipsError) -> Image {
        let outer = border.radius.pixels(in: size)
        let inside = RoundedRectangle(
            size: size, inset: border.width, radius: max(0, outer - border.width), corners: border.corners)
        let opacity = Double(border.color.alpha) / 255
        let picture = try ready(for: border.color)
        var opaque = border.color
        opaque.alpha = 255
        let line = try inside.mask().mapped([.table { (255 - $0) * opacity }])
        let bordered = try picture.under(picture.filled(with: opaque).withoutAlpha().joined(with: line))
        guard outer > 0 else { return bordered }
        let edge = RoundedRectangle(size: size, inset: 0, radius: outer, corners: border.corners)
        return try bordered.masked(by: edge.mask())
    }
}
