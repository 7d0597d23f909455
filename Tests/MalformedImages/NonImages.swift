/// Files that are not images, and polyglots.
extension MalformedImage {
    static func nonImages() -> [MalformedImage] {
        [
            .unsupported("an empty file", []),
            .unsupported("one byte", [0]),
            .unsupported("a kilobyte of zeros", zeros(1024)),
            .unsupported("a megabyte of 0xff", [UInt8](repeating: 0xff, count: 1 << 20)),
            .unsupported("a line of text", text("no image at all\n")),
            .unsupported("an ELF program", [0x7f] + text("ELF") + [2, 1, 1] + zeros(200)),
            .unsupported("a ZIP archive", archive),
            .unsupported("a gzipped SVG", [0x1f, 0x8b, 8] + zeros(60)),
            .unsupported("a script", text("#!/bin/sh\nrm -rf /\n")),
            .unsupported("PostScript", text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n9 9 moveto\n")),
            .unsupported("ImageMagick's MVG", text("push graphic-context\nimage over 0,0 0,0 'https://a.example/'\n")),
            .unsupported(
                "ImageMagick's MSL", text("<?xml version=\"1.0\"?><image><read filename=\"/etc/passwd\"/></image>")),
            .unsupported("XPM", text("/* XPM */\nstatic char *x[] = {\"1 1 1 1\", \"a c #ff0000\", \"a\"};")),
            .unsupported("PPM that declares 50000×50000", text("P6\n50000 50000\n255\nabc")),
            .unsupported(
                "BMP with an unknown header",
                text("BM") + little(70, 4) + zeros(4) + little(54, 4) + little(41, 4) + zeros(60)),
            .unsupported("ICO without an image", [0, 0, 1, 0, 1, 0, 1, 1] + zeros(60)),
            .unsupported("PSD", text("8BPS") + big(1, 2) + zeros(6) + big(3, 2) + zeros(60)),
            .unsupported("Radiance", text("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\nabcd")),
            .unsupported("OpenEXR", [0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0] + zeros(60)),
            .unsupported("libvips' own format", [0x08, 0xf2, 0xa6, 0xb6] + zeros(100)),
            .unsupported("an MP4", HEIFFile.box("ftyp", text("isom") + zeros(4) + text("isommp42")) + zeros(100)),
        ]
    }

    /// Files that combine several formats. A valid image is rendered whatever follows it. A file that begins like
    /// another format is rejected.
    static func polyglots() -> [MalformedImage] {
        let script = text("*/=1;alert(document.domain);//")
        return [
            .renders(
                "a GIF that is also a script",
                GIFFile.picture(0x2a2f, 1).first(13) + GIFFile.palette
                    + GIFFile.frame(0x2a2f, 1) + GIFFile.end + script),
            .renders("a JPEG followed by an archive", JPEGFile.picture(60, 40) + archive),
            .renders("a PNG followed by an HTML page", PNGFile.picture(60, 40) + page),
            .renders(
                "a PNG with an HTML page inside",
                PNGFile.picture(60, 40, more: PNGFile.chunk("tEXt", text("a\0") + page))),
            .renders("a JPEG with an HTML page inside", JPEGFile.picture(60, 40, more: JPEGFile.segment(0xfe, page))),
            .renders("a WebP followed by a script", WebPFile.picture(60, 40) + script),
            .unsupported("an HTML page with a PNG inside", page + PNGFile.picture(60, 40)),
            .unsupported("an archive with a JPEG inside", archive + JPEGFile.picture(60, 40)),
            .unsupported("a PNG after a byte order mark", [0xef, 0xbb, 0xbf] + PNGFile.picture(60, 40)),
            .corrupt("a PNG's signature before a JPEG", PNGFile.signature + JPEGFile.picture(60, 40)),
        ]
    }

    static let page = text("<!DOCTYPE html><html><script>alert(1)</script></html>")

    /// A ZIP archive of one empty file.
    private static let archive =
        text("PK\u{3}\u{4}") + zeros(26) + text("PK\u{1}\u{2}") + zeros(42) + text("PK\u{5}\u{6}") + zeros(18)
}
