import HalcyonModel
import Vips

extension Image {
    /// Another picture of the same size over this one, in this one's shape: Porter and Duff's source-atop. Only colours are
    /// laid over each other, and alpha is kept. (libvips' own `atop` makes them too light where this picture has alpha.)
    func overlaid(with picture: Image, opacity: Double) throws(VipsError) -> Image {
        let colors = try withoutAlpha().under(picture.withAlpha().fading(to: opacity))
        return hasAlpha ? try colors.joined(with: alpha()) : colors
    }

    /// Another picture over this one at its place, or over and over from there with the margin between.
    ///
    /// - Parameter mark: of the size that ``Watermark/rect(of:on:)`` gives it.
    func marked(with mark: Image, _ watermark: Watermark) throws(VipsError) -> Image {
        let place = watermark.place(of: mark.size, on: size)
        let mark = try mark.withAlpha().fading(to: watermark.opacity)
        guard watermark.tiled else { return try under(mark, x: place.x, y: place.y) }
        let tile = try mark.calling(
            "embed",
            [
                "x": 0, "y": 0, "width": .int(mark.width + watermark.margin),
                "height": .int(mark.height + watermark.margin), "extend": "black",
            ])
        let tiles = try tile.calling(
            "embed",
            [
                "x": .int(place.x), "y": .int(place.y), "width": .int(width), "height": .int(height),
                "extend": "repeat",
            ])
        return try under(tiles)
    }
}
