import CVips

extension Format {
    /// Detects the format from the first bytes of a file: from its signature, or for SVG from the name of the root
    /// element. nil if they match no format.
    ///
    /// libvips can detect formats too (`vips_foreign_find_load_buffer`), but it runs its loaders on the bytes, and some
    /// of them read more than a signature. The SVG loader decompresses its input, and never returns if the stream is
    /// truncated. Here every loop ends with its input, and only the beginning of the file is read.
    init?(announcedBy file: [UInt8]) {
        let format = Self.signatures.first { signature in
            signature.bytes.indices.allSatisfy { position in
                let expected = signature.bytes[position]
                return expected == nil || file.count > position && file[position] == expected
            }
        }?.format
        if let format {
            self = format
        } else if Self.isMedia(file, of: Self.heifBrands) {
            self = .heif
        } else if Bitmap.begins(file) {
            self = .bmp
        } else if IconFile.begins(file) {
            self = .ico
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

    /// The bytes that a file begins with; nil matches any byte.
    private static let signatures: [(bytes: [UInt8?], format: Format)] = [
        ([0xff, 0xd8, 0xff], .jpeg),
        ([0x89] + text("PNG\r\n\u{1a}\n"), .png),
        (text("GIF87a"), .gif),
        (text("GIF89a"), .gif),
        (text("RIFF") + [nil, nil, nil, nil] + text("WEBP"), .webp),
        (text("II*\0"), .tiff),
        (text("MM\0*"), .tiff),
        // BigTIFF.
        (text("II+\0"), .tiff),
        (text("MM\0+"), .tiff),
        // A bare codestream, and one in a container (ISO/IEC 18181).
        ([0xff, 0x0a], .jxl),
        ([0, 0, 0, 12] + text("JXL \r\n") + [0x87, 0x0a], .jxl),
        // A file, and a bare codestream (ISO/IEC 15444-1, sections I.5.1 and A.4).
        ([0, 0, 0, 12] + text("jP  \r\n") + [0x87, 0x0a], .jp2),
        ([0xff, 0x4f, 0xff, 0x51], .jp2),
    ]

    /// The major brands of still pictures and sequences in HEIF (ISO/IEC 23008-12, annex B; AVIF, section 7).
    private static let heifBrands = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1", "avif", "avis",
    ]

    private static func text(_ text: String) -> [UInt8?] { text.utf8.map { $0 } }

    /// True if a file is in the ISO base media format (ISO/IEC 14496-12) and has one of these brands.
    private static func isMedia(_ file: [UInt8], of brands: [String]) -> Bool {
        file.count >= 12 && file[4..<8].elementsEqual("ftyp".utf8)
            && brands.contains { file[8..<12].elementsEqual($0.utf8) }
    }

    /// libvips 8.14 expects the signature at the very beginning. Later versions accept it up to this offset.
    private static func beginsAsPDF(_ file: [UInt8]) -> Bool {
        (0...min(32, file.count)).contains { file[$0...].starts(with: "%PDF-".utf8) }
    }
}

/// The part of an XML document before the root element (XML 1.0, section 2.8).
private struct XMLPrologue {
    /// The number of bytes within which the root element must begin. Drawing programs write long lists of entities
    /// before it.
    static let limit = 32 << 10

    private var rest: ArraySlice<UInt8>

    /// Returns the local name of the root element; nil if none begins in this text.
    static func rootName(of text: ArraySlice<UInt8>) -> String? {
        var prologue = XMLPrologue(rest: text)
        return prologue.skip() ? prologue.name() : nil
    }

    /// Skips to the name of the root element. Returns false if there is none.
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

    /// Skips a document type declaration. Its own declarations are in brackets, and quoted text may contain any
    /// delimiter.
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
        // A name at the end of the text may be incomplete.
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

    /// Skips past the next occurrence of a delimiter.
    private mutating func pass(_ mark: String) -> Bool {
        while let first = mark.utf8.first, let position = rest.firstIndex(of: first) {
            rest = rest[position...]
            if take(mark) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}

/// Files compressed with gzip (RFC 1952).
private enum GZip {
    /// Decompresses the first bytes, up to a limit, or until the stream ends or is truncated or damaged. nil for a file
    /// that is not compressed.
    static func beginning(of file: [UInt8]) -> ArraySlice<UInt8>? {
        guard file.starts(with: [0x1f, 0x8b, 0x08]) else { return nil }
        let decompressor = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP)!
        defer { g_object_unref(UnsafeMutableRawPointer(decompressor)) }
        var position = 0
        var (result, count) = ([UInt8](repeating: 0, count: XMLPrologue.limit), 0)
        file.prefix(XMLPrologue.limit).withUnsafeBytes { input in
            result.withUnsafeMutableBytes { output in
                while position < input.count, count < output.count {
                    var (read, written): (gsize, gsize) = (0, 0)
                    let outcome = g_converter_convert(
                        decompressor, input.baseAddress! + position, gsize(input.count - position),
                        output.baseAddress! + count, gsize(output.count - count), G_CONVERTER_NO_FLAGS, &read, &written,
                        nil)
                    position += Int(read)
                    count += Int(written)
                    // Each iteration reads or writes something, or is the last one.
                    guard outcome == G_CONVERTER_CONVERTED, read + written > 0 else { return }
                }
            }
        }
        return result.prefix(count)
    }
}
