extension Format {
    /// Whether a ``Cancellation`` stops the decoder of this format in the middle. Where it does not, it waits for the
    /// decoder to make the whole picture, or the whole frame.
    ///
    /// Measured with libvips 8.14.1 as CPU milliseconds, cancelled after three tenths of decoding 40 megapixels and
    /// shrinking them to a tenth (from then to the return / the whole when nobody cancels): JPEG 2 / 287, progressive
    /// 288 / 559; PNG 26 / 970, interlaced 877 / 1289; TIFF in tiles 191 / 831; WebP 492 / 1243, of ten frames
    /// 735 / 1167; GIF 342 / 740, of ten frames 17 / 799; AVIF 586 / 1053; HEIC 2288 / 2830; JPEG XL 1026 / 1959; PDF
    /// 1169 / 2015; SVG with a filter over 3 megapixels 782 / 1155, with 200 circles over 40 megapixels 2712 / 20920.
    /// What is left to do then is seven tenths. So progressive JPEG and interlaced PNG files do not stop either: see
    /// ``Image/isDecodedAtOnce``.
    public var stopsWhileLoading: Bool {
        switch self {
        case .jpeg, .png, .tiff: true
        case .webp, .gif, .heif, .jxl, .svg, .pdf: false
        }
    }

    /// Whether a ``Cancellation`` stops the encoder of this format in the middle. Where it does not, the encoder gets
    /// the whole picture, or the whole frame, and makes its file to the end.
    ///
    /// Measured as above, encoding 12 megapixels: JPEG 2 / 50, PNG 56 / 1394, TIFF 69 / 1404 (deflate); WebP
    /// 1018 / 1468, of ten frames 99 / 1768; GIF of ten frames 688 / 18575; and 3 megapixels: GIF 1830 / 4732, AVIF
    /// 306 / 445 (effort 2), JPEG XL 793 / 1100. Progressive JPEG (173 / 246) and interlaced PNG (263 / 319) do not
    /// stop: those options make libvips gather the whole picture first.
    public var stopsWhileSaving: Bool {
        switch self {
        case .jpeg, .png, .tiff: true
        case .webp, .gif, .heif, .jxl, .svg, .pdf: false
        }
    }
}

extension Image {
    /// Whether the pixels of this picture, as it was opened, come all at once, so that a ``Cancellation`` waits for the
    /// decoder: those of formats that do not stop (``Format/stopsWhileLoading``), and of progressive JPEG and
    /// interlaced PNG files. False for what no file was opened for.
    public var isDecodedAtOnce: Bool {
        guard
            let loader = text(of: "vips-loader"),
            let format = Format.allCases.first(where: { loader.hasPrefix("\($0.rawValue)load") })
        else { return false }
        return !format.stopsWhileLoading || text(of: "interlaced") == "1"
    }
}
