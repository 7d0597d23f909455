import Concurrency
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Vips

/// Checks which formats libvips can read, write and draw on this machine, and names missing packages.
struct CodecCheck {
    /// Runs the checks on a thread for libvips.
    func findings() async throws -> [DoctorReport] {
        let pool = Renderer.makePool(threads: 1)
        let findings = try await pool.run { reading() + writing() + [fonts()] }
        await blocking { pool.shutdown() }
        return findings
    }

    // MARK: Reading

    private func reading() -> [DoctorReport] {
        let allowed = Format.allCases.filter(VipsLibrary.allowed.contains)
        let closed = Format.allCases.filter { !VipsLibrary.allowed.contains($0) }.map(\.rawValue)
        let codecs = HEIFCodec.allCases.filter(\.canDecode).map(\.imageFormat.rawValue)
        let readable = allowed.filter(\.canLoad).map { format in
            format == .heif ? "heif (\(codecs.joined(separator: ", ")))" : format.rawValue
        }
        let note = closed.isEmpty ? "" : "; disabled by images.formats: \(closed.joined(separator: ", "))"
        let missing = allowed.filter { !$0.canLoad && $0 != .heif }.map { format in
            DoctorReport.warning(
                "reading", "\(format.rawValue): not supported by libvips; such sources will fail",
                mend: "install a libvips with \(format.library), such as Debian's libvips42")
        }
        let missingCodecs = HEIFCodec.allCases.filter { allowed.contains(.heif) && !$0.canDecode }.map { codec in
            DoctorReport.warning(
                "reading", "\(codec.imageFormat.rawValue): libheif has no decoder for it; such sources will fail",
                mend: codec.decoderRemedy)
        }
        return [.ok("reading", readable.joined(separator: ", ") + note)] + missing + missingCodecs
    }

    // MARK: Writing

    /// Writes a small image in each format, because a listed encoder is not necessarily installed.
    private func writing() -> [DoctorReport] {
        var (works, findings): ([String], [DoctorReport]) = ([], [])
        for format in ImageFormat.writable {
            do {
                try write(format)
                works.append(format.rawValue)
            } catch {
                let message = "\(format.rawValue): \(error)"
                // JPEG XL is optional in libvips.
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

    private func fonts() -> DoctorReport {
        Fonts.areThere
            ? .ok("fonts", "text of initials and SVG can be drawn")
            : .broken(
                "fonts", "no fonts found; initials fail, and SVG shows no text",
                mend: "install fonts for fontconfig, such as Debian's fonts-dejavu-core")
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
    /// The library that libvips uses to load the format.
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
        case .jp2: "OpenJPEG"
        case .bmp, .ico: "any configuration"
        }
    }
}

extension ImageFormat {
    fileprivate var encoderRemedy: String {
        switch self {
        case .avif: "install a libheif with an AV1 encoder; on Debian 13 libheif-plugin-aomenc"
        case .gif: "install a libvips with cgif, such as Debian's libvips42"
        default:
            "install a libvips with \(Format(rawValue: rawValue)?.library ?? rawValue), such as Debian's libvips42"
        }
    }
}
