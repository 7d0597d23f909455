import Vips

/// Files with compressed streams that are truncated, empty, or endless without producing output. A reader that waits
/// for output or for the end spins or never returns.
extension MalformedImage {
    static func compressedStreams() -> [MalformedImage] {
        gzippedSVG() + deflatedPixels() + deflatedContent() + truncatedFiles()
    }

    /// gzip (RFC 1952) around a raw deflate stream.
    private static func gzip(_ deflated: [UInt8], trailer: [UInt8] = zeros(8)) -> [UInt8] {
        [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + deflated + trailer
    }

    /// Empty stored blocks. None is marked as the last one.
    private static func emptyBlocks(_ count: Int) -> [UInt8] {
        (0..<count).flatMap { _ in [0, 0, 0, 0xff, 0xff] as [UInt8] }
    }

    /// Gzipped SVGs. The data that they contain is well-formed.
    private static func gzippedSVG() -> [MalformedImage] {
        let document = SVGFile.document(SVGFile.rect)
        let stored = gzip([1] + little(document.count, 2) + little(~document.count, 2) + document)
        let open = gzip([0] + little(document.count, 2) + little(~document.count, 2) + document, trailer: [])
        return [
            .corrupt("SVGZ truncated after the name of its root", stored.first(15 + document.count - 20)),
            .unsupported("SVGZ truncated before its root", stored.first(30)),
            .unsupported("SVGZ with only its header", stored.first(10)),
            .unsupported("SVGZ with only its signature", stored.first(3)),
            .unsupported("SVGZ of empty data", gzip([3, 0])),
            .unsupported("SVGZ that begins with a megabyte of empty blocks", gzip(emptyBlocks(200_000), trailer: [])),
            .rendersOrFails("SVGZ that ends in a megabyte of empty blocks", open + emptyBlocks(200_000)),
            .rendersOrFails("SVGZ whose stream has no end", open),
            .rendersOrFails("SVGZ without its checksum", stored.cut(8)),
            .unsupported("SVGZ in a gzip", gzip([1] + little(stored.count, 2) + little(~stored.count, 2) + stored)),
            .unsupported("SVGZ of a reserved block", gzip([7])),
            .unsupported("a gzipped HTML page", gzip([1] + little(54, 2) + little(~54, 2) + page.first(54))),
        ]
    }

    private static func deflatedPixels() -> [MalformedImage] {
        let streams: [(name: String, bytes: [UInt8])] = [
            ("of zero bytes", []), ("truncated after its header", [0x78, 0x01]), ("of empty data", Zlib.stored([])),
            ("truncated in a block", Zlib.stored(zeros(61 * 40)).fraction(0.5)),
            ("of empty blocks", [0x78, 0x01] + emptyBlocks(100_000)),
        ]
        return streams.flatMap { stream in
            let strip: [TIFFFile.Entry] = [
                (259, TIFFFile.short, 1, 8), (279, TIFFFile.long, 1, stream.bytes.count),
            ]
            let kept = TIFFFile.entries(60, 40).filter { ![259, 279].contains($0.tag) }
            return [
                MalformedImage.corrupt(
                    "PNG with a stream \(stream.name)",
                    PNGFile.signature + PNGFile.header(60, 40) + PNGFile.chunk("IDAT", stream.bytes) + PNGFile.end),
                .rendersOrFails(
                    "PNG with a profile in a stream \(stream.name)",
                    PNGFile.picture(60, 40, more: PNGFile.chunk("iCCP", text("a\0\0") + stream.bytes))),
                // Some versions of libtiff accept the rows that exist.
                .rendersOrFails(
                    "TIFF with a stream \(stream.name)", TIFFFile.file(kept + strip, pixels: 0) + stream.bytes),
            ]
        } + [
            .corrupt(
                "TIFF with LZW codes that only clear the table",
                TIFFFile.picture(60, 40, (259, TIFFFile.short, 1, 5))
                    .with(
                        (0..<1000).flatMap { _ in [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, 0x00] }.first(2400),
                        at: 200)),
            .rendersOrFails(
                "GIF with LZW codes that only clear the table",
                GIFFile.canvas(60, 40) + GIFFile.descriptor(60, 40)
                    + [2] + (0..<40).flatMap { _ in [240] + (0..<80).flatMap { _ in [0x24, 0x49, 0x92] as [UInt8] } }
                    + [0]
                    + GIFFile.end),
        ]
    }

    private static func deflatedContent() -> [MalformedImage] {
        [
            ("of zero bytes", []), ("truncated after its header", [0x78, 0x01]), ("of empty data", Zlib.stored([])),
            ("truncated in a block", Zlib.stored(text("1 0 0 rg 0 0 60 40 re f")).fraction(0.5)),
            ("of empty blocks", [0x78, 0x01] + emptyBlocks(100_000)),
        ].map { (name: String, bytes: [UInt8]) in
            let head = text("<< /Length \(bytes.count) /Filter /FlateDecode >>\nstream\n")
            let page = PDFFile.page(content: "HALCYON")
            let offset = page.offset(of: "<< /Length")
            let end = page.offset(of: "endstream")
            return .rendersOrFails(
                "PDF with a stream \(name)", page.first(offset) + head + bytes + text("\n") + page[end...])
        }
    }

    /// Files of formats that need an encoder, truncated at every eighth.
    private static func truncatedFiles() -> [MalformedImage] {
        [Format.jpeg, .webp, .gif, .jxl].filter(\.canSave).flatMap { format in
            (1..<8).map { eighth in
                .fails(
                    "\(format.rawValue), encoded and truncated at \(eighth) eighths",
                    Self.noise(format).fraction(Double(eighth) / 8))
            }
        }
    }

    private static func noise(_ format: Format) -> [UInt8] {
        let pixels = (0..<96 * 64 * 3).map { UInt8(truncatingIfNeeded: $0 * $0 / 7 ^ $0 >> 3) }
        do {
            return try Image(pixels: pixels, width: 96, height: 64, bands: 3).encoded(as: format)
        } catch {
            fatalError("libvips cannot write \(format): \(error)")
        }
    }
}
