import Vips

extension Image {
    /// Step 6, orientation: upright, by the picture's own EXIF number.
    func upright() throws(VipsError) -> Image {
        guard Orientation(exif: orientation) != .upright else { return self }
        return try Operation.call("autorot", ["in": .image(self)]).image()
    }
}
