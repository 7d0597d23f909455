extension EncodedImage {
    /// Whether the file ends before its format's mark of the end: one of JPEG, PNG or GIF. False for other formats, and where damage
    /// hides how far the file goes.
    public var isTruncated: Bool {
        switch format {
        case .jpeg: JPEGSegments.isTruncated(content)
        case .png: PNGChunks.isTruncated(content)
        case .gif: GIFBlocks.isTruncated(content)
        default: false
        }
    }
}
