import Vips

/// Files whose compressed streams are cut off, have nothing in them, or go on without getting anywhere: a reader that waits for
/// a byte of output, or for the end, spins or never returns.
extension MalformedImage {
    static func compressedStreams() -> [MalformedImage] {
        zippedSVG() + deflatedPixels() + deflatedContent() + encoded()
    }

    /// gzip (RFC 1952) around a raw deflate stream.
    private static func gzip(_ deflated: [UInt8], trailer: [UInt8] = zeros(8)) -> [UInt8] {
        [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + deflated + trailer
    }

    /// Blocks of no bytes, of which none is the last.
    private static func idle(_ count: Int) -> [UInt8] { (0..<count).flatMap { _ in [0, 0, 0, 0xff, 0xff] as [UInt8] } }

    /// What there is of it is well formed.
    private static func zippedSVG() -> [MalformedImage] {
        let document = SVGFile.document(SVGFile.rect)
        let stored = gzip([1] + little(document.count, 2) + little(~document.count, 2) + document)
        let open = gzip([0] + little(document.count, 2) + little(~document.count, 2) + document, trailer: [])
        return [
            .corrupt("SVGZ cut behind its root's name", stored.first(15 + document.count - 20)),
            .unsupported("SVGZ cut before its root", stored.first(30)),
            .unsupported("SVGZ, its header alone", stored.first(10)),
            .unsupported("SVGZ, its signature alone", stored.first(3)),
            .unsupported("SVGZ of nothing", gzip([3, 0])),
            .unsupported("SVGZ that begins with a megabyte of empty blocks", gzip(idle(200_000), trailer: [])),
            .rendersOrFails("SVGZ that ends in a megabyte of empty blocks", open + idle(200_000)),
            .rendersOrFails("SVGZ whose stream has no end", open),
            .rendersOrFails("SVGZ without its checksum", stored.cut(8)),
            .unsupported("SVGZ in a gzip", gzip([1] + little(stored.count, 2) + little(~stored.count, 2) + stored)),
            .unsupported("SVGZ of a reserved block", gzip([7])),
            .unsupported("a gzip of a page", gzip([1] + little(54, 2) + little(~54, 2) + page.first(54))),
        ]
    }

    private static func deflatedPixels() -> [MalformedImage] {
        let streams: [(name: String, bytes: [UInt8])] = [
            ("of no bytes", []), ("cut behind its header", [0x78, 0x01]), ("of nothing", Zlib.stored([])),
            ("cut in a block", Zlib.stored(zeros(61 * 40)).share(0.5)),
            ("of empty blocks", [0x78, 0x01] + idle(100_000)),
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
                // Some versions of libtiff take the rows that are there.
                .rendersOrFails(
                    "TIFF with a stream \(stream.name)", TIFFFile.file(kept + strip, pixels: 0) + stream.bytes),
            ]
        } + [
            .corrupt(
                "TIFF of LZW codes that clear the table",
                TIFFFile.picture(60, 40, (259, TIFFFile.short, 1, 5))
                    .with(
                        (0..<1000).flatMap { _ in [0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, 0x00] }.first(2400),
                        at: 200)),
            .rendersOrFails(
                "GIF of LZW codes that clear the table",
                GIFFile.canvas(60, 40) + GIFFile.descriptor(60, 40)
                    + [2] + (0..<40).flatMap { _ in [240] + (0..<80).flatMap { _ in [0x24, 0x49, 0x92] as [UInt8] } }
                    + [0]
                    + GIFFile.end),
        ]
    }

    private static func deflatedContent() -> [MalformedImage] {
        [
            ("of no bytes", []), ("cut behind its header", [0x78, 0x01]), ("of nothing", Zlib.stored([])),
            ("cut in a block", Zlib.stored(text("1 0 0 rg 0 0 60 40 re f")).share(0.5)),
            ("of empty blocks", [0x78, 0x01] + idle(100_000)),
        ].map { (name: String, bytes: [UInt8]) in
            let head = text("<< /Length \(bytes.count) /Filter /FlateDecode >>\nstream\n")
            let page = PDFFile.page(content: "HALCYON")
            let place = page.place(of: "<< /Length")
            let end = page.place(of: "endstream")
            return .rendersOrFails(
                "PDF with a stream \(name)", page.first(place) + head + bytes + text("\n") + page[end...])
        }
    }

    /// What cannot be made by hand is cut at every eighth of it.
    private static func encoded() -> [MalformedImage] {
        [Format.jpeg, .webp, .gif, .jxl].filter(\.canSave).flatMap { format in
            (1..<8).map { eighth in
                .fails(
                    "\(format.rawValue), encoded and cut at \(eighth) eighths",
                    Self.noise(format).share(Double(eighth) / 8))
            }
        }
    }

    private static func noise(_ format: Format) -> [UInt8] {
        let pixels = (0..<96 * 64 * 3).map { UInt8(truncatingIfNeeded: $0 * $0 / 7 ^ $0 >> 3) }
        do {
            return try Image(pixels: pixels, width: 96, height: 64, bands: 3).encoded(as: format)
        } catch {
            fatalError("libvips writes no \(format): \(error)")
        }
    }
}
