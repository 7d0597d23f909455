import Vips

extension Image {
    /// Step 8, orientation: upright.
    func turned(_ orientation: Orientation) throws(VipsError) -> Image {
        guard orientation != .upright else { return self }
        return try calling("autorot")
    }
}
