import CVips

extension Format {
    /// The format that a file's first bytes announce: its signature, or for SVG the name of the root element. Nil where
    /// they announce none of them.
    ///
    /// libvips can be asked too (`vips_foreign_find_load_buffer`). Its loaders then run on the bytes, and some of them read
    /// more than a signature: that of SVG inflates what is compressed, and never returns where the stream is cut off.
    /// Here every loop ends with its input, of which little is looked at.
    init?(announcedBy file: [UInt8]) {
        let format = Self.signatures.first { signature in
            signature.bytes.indices.allSatisfy { place in
                let expected = signature.bytes[place]
                return expected == nil || file.count > place && file[place] == expected
            }
        }?.format
        if let format {
            self = format
        } else if Self.isMedia(file, of: Self.heifBrands) {
            self = .heif
        } else if Self.beginsAsPDF(file) {
            self = .pdf
        } else if XMLPrologue.rootName(of: GZip.beginning(of: file) ?? file.prefix(XMLPrologue.limit))?.lowercased()
            == "svg"
        {
            self = .svg
        } else {
            return nil
        }
    }

    /// Bytes that a file begins with; nil for any.
    private static let signatures: [(bytes: [UInt8?], format: Format)] = [
        ([0xff, 0xd8, 0xff], .jpeg),
        ([0x89] + text("PNG\r\n\u{1a}\n"), .png),
        (text("GIF87a"), .gif),
        (text("GIF89a"), .gif),
        (text("RIFF") + [nil, nil, nil, nil] + text("WEBP"), .webp),
        (text("II*\0"), .tiff),
        (text("MM\0*"), .tiff),
        // BigTIFF
        (text("II+\0"), .tiff),
        (text("MM\0+"), .tiff),
        // A bare codestream, and one in a container (ISO/IEC 18181).
        ([0xff, 0x0a], .jxl),
        ([0, 0, 0, 12] + text("JXL \r\n") + [0x87, 0x0a], .jxl),
    ]

    /// The major brands of still pictures and sequences in HEIF (ISO/IEC 23008-12, annex B; AVIF, section 7).
    private static let heifBrands = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1", "avif", "avis",
    ]

    private static func text(_ text: String) -> [UInt8?] { text.utf8.map { $0 } }

    /// Whether a file is of ISO's base media format (ISO/IEC 14496-12), of one of these brands.
    private static func isMedia(_ file: [UInt8], of brands: [String]) -> Bool {
        file.count >= 12 && file[4..<8].elementsEqual("ftyp".utf8)
            && brands.contains { file[8..<12].elementsEqual($0.utf8) }
    }

    /// libvips 8.14 wants the mark at the very beginning, later ones take it up to here.
    private static func beginsAsPDF(_ file: [UInt8]) -> Bool {
        (0...min(32, file.count)).contains { file[$0...].starts(with: "%PDF-".utf8) }
    }
}

/// What stands before the root element of an XML document (XML 1.0, section 2.8).
private struct XMLPrologue {
    /// Bytes within which the root element begins, or it is not found. Drawing programs put long lists of entities before it.
    static let limit = 32 << 10

    private var rest: ArraySlice<UInt8>

    /// The name of the root element without its prefix; nil where none begins in this text.
    static func rootName(of text: ArraySlice<UInt8>) -> String? {
        var prologue = XMLPrologue(rest: text)
        return prologue.skip() ? prologue.name() : nil
    }

    /// Goes to the name of the root element: whether there is one.
    private mutating func skip() -> Bool {
        if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
        while true {
            rest = rest.drop { [0x20, 0x09, 0x0a, 0x0d].contains($0) }
            if take("<?") {
                guard pass("?>") else { return false }
            } else if take("<!--") {
                guard pass("-->") else { return false }
            } else if take("<!") {
                guard passDeclaration() else { return false }
            } else {
                return take("<")
            }
        }
    }

    /// Passes a document type, whose own declarations stand in brackets; a quoted text may hold any of its signs.
    private mutating func passDeclaration() -> Bool {
        var (depth, quote): (Int, UInt8?) = (0, nil)
        while let byte = rest.first {
            if quote == nil, take("<!--") {
                guard pass("-->") else { return false }
                continue
            }
            rest = rest.dropFirst()
            switch byte {
            case quote: quote = nil
            case _ where quote != nil: break
            case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ">") where depth <= 0: return true
            default: break
            }
        }
        return false
    }

    private func name() -> String? {
        let name = rest.prefix { $0 > 0x20 && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
        // A name that the text ends in may go on.
        guard name.endIndex < rest.endIndex, let local = name.split(separator: UInt8(ascii: ":")).last else {
            return nil
        }
        return String(decoding: local, as: UTF8.self)
    }

    private mutating func take(_ mark: String) -> Bool {
        guard rest.starts(with: mark.utf8) else { return false }
        rest = rest.dropFirst(mark.utf8.count)
        return true
    }

    /// Goes behind the next such mark.
    private mutating func pass(_ mark: String) -> Bool {
        while let first = mark.utf8.first, let place = rest.firstIndex(of: first) {
            rest = rest[place...]
            if take(mark) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}

/// Files that are compressed by gzip (RFC 1952).
private enum GZip {
    /// The first bytes of what is compressed, as many as there are before the stream ends, is cut off or damaged; nil for
    /// a file that is not compressed.
    static func beginning(of file: [UInt8]) -> ArraySlice<UInt8>? {
        guard file.starts(with: [0x1f, 0x8b, 0x08]) else { return nil }
        let decompressor = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP)!
        defer { g_object_unref(UnsafeMutableRawPointer(decompressor)) }
        var place = 0
        var (result, count) = ([UInt8](repeating: 0, count: XMLPrologue.limit), 0)
        file.prefix(XMLPrologue.limit).withUnsafeBytes { input in
            result.withUnsafeMutableBytes { output in
                while place < input.count, count < output.count {
                    var (read, written): (gsize, gsize) = (0, 0)
                    let outcome = g_converter_convert(
                        decompressor, input.baseAddress! + place, gsize(input.count - place),
                        output.baseAddress! + count, gsize(output.count - count), G_CONVERTER_NO_FLAGS, &read, &written,
                        nil)
                    place += Int(read)
                    count += Int(written)
                    // Each round takes or gives something, or is the last one.
                    guard outcome == G_CONVERTER_CONVERTED, read + written > 0 else { return }
                }
            }
        }
        return result.prefix(count)
    }
}
