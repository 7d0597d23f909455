import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Threads
import Vips

/// Looks at what libvips can read, write and draw here, and names what to install for what it cannot.
struct CodecExamination {
    /// On a thread for libvips.
    func findings() async throws -> [Diagnosis] {
        let pool = Renderer.makePool(threads: 1)
        let findings = try await pool.run { reading() + writing() + [fonts()] }
        await blocking { pool.shutdown() }
        return findings
    }

    // MARK: Reading

    private func reading() -> [Diagnosis] {
        let allowed = Format.allCases.filter(VipsLibrary.allowed.contains)
        let closed = Format.allCases.filter { !VipsLibrary.allowed.contains($0) }.map(\.rawValue)
        let codecs = HEIFCodec.allCases.filter(\.canDecode).map(\.imageFormat.rawValue)
        let readable = allowed.filter(\.canLoad).map { format in
            format == .heif ? "heif (\(codecs.joined(separator: ", ")))" : format.rawValue
        }
        let note = closed.isEmpty ? "" : "; closed by images.formats: \(closed.joined(separator: ", "))"
        let missing = allowed.filter { !$0.canLoad && $0 != .heif }.map { format in
            Diagnosis.warning(
                "reading", "\(format.rawValue): libvips was built without it; such sources will fail",
                mend: "install a libvips built with \(format.library); Debian's libvips42 is")
        }
        let missingCodecs = HEIFCodec.allCases.filter { allowed.contains(.heif) && !$0.canDecode }.map { codec in
            Diagnosis.warning(
                "reading", "\(codec.imageFormat.rawValue): libheif has no decoder for it; such sources will fail",
                mend: codec.decoderRemedy)
        }
        return [.ok("reading", readable.joined(separator: ", ") + note)] + missing + missingCodecs
    }

    // MARK: Writing

    /// Writes a small picture in each format: that an encoder is named does not say that it is installed.
    private func writing() -> [Diagnosis] {
        var (works, findings): ([String], [Diagnosis]) = ([], [])
        for format in ImageFormat.writable {
            do {
                try write(format)
                works.append(format.rawValue)
            } catch {
                let message = "\(format.rawValue): \(error)"
                // Not every libvips has JPEG XL.
                findings.append(
                    format == .jxl
                        ? .warning("writing", message, mend: format.encoderRemedy)
                        : .broken("writing", message, mend: format.encoderRemedy))
            }
        }
        return [.ok("writing", works.joined(separator: ", "))] + findings
    }

    private func write(_ format: ImageFormat) throws(VipsError) {
        let picture = try Image(color: [127, 127, 127], width: 64, height: 64)
        switch format {
        case .avif: _ = try picture.encoded(as: .heif, ["compression": "av1"])
        default:
            guard let file = Format(rawValue: format.rawValue) else { return }
            _ = try picture.encoded(as: file)
        }
    }

    // MARK: Drawing

    private func fonts() -> Diagnosis {
        Fonts.areThere
            ? .ok("fonts", "letters of initials and of SVG can be drawn")
            : .broken(
                "fonts", "none: initials fail, and SVG shows no letters",
                mend: "install fonts that fontconfig finds, such as Debian's fonts-dejavu-core")
    }
}

extension HEIFCodec {
    fileprivate var imageFormat: ImageFormat { self == .av1 ? .avif : .heic }

    fileprivate var decoderRemedy: String {
        switch self {
        case .av1: "install a libheif with an AV1 decoder; on Debian 13 libheif-plugin-dav1d or libheif-plugin-aomdec"
        case .hevc: "install a libheif with an HEVC decoder; on Debian 13 libheif-plugin-libde265"
        }
    }
}

extension Format {
    /// What libvips loads it with.
    fileprivate var library: String {
        switch self {
        case .jpeg: "libjpeg-turbo"
        case .png: "libspng or libpng"
        case .webp: "libwebp"
        case .gif: "libnsgif"
        case .tiff: "libtiff"
        case .heif: "libheif"
        case .jxl: "libjxl"
        case .svg: "librsvg"
        case .pdf: "poppler"
        }
    }
}

extension ImageFormat {
    fileprivate var encoderRemedy: String {
        switch self {
        case .avif: "install a libheif with an AV1 encoder; on Debian 13 libheif-plugin-aomenc"
        case .gif: "install a libvips built with cgif; Debian's libvips42 is"
        default:
            "install a libvips built with \(Format(rawValue: rawValue)?.library ?? rawValue); Debian's libvips42 is"
        }
    }
}
