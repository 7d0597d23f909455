import HalcyonModel
import Vips

/// Step 1, identify: what the bytes are, by their content and their header alone.
struct SourceImage {
    let file: EncodedImage
    /// The header, opened in the way that rendering needs when nothing is to be shrunk on loading.
    let header: Image
    let format: ImageFormat
    /// As stored, before auto-rotation.
    let rawSize: PixelSize
    let orientation: Orientation
    /// Frames of an animation; 1 for everything else, whatever pages it has.
    let frames: Int

    /// - Throws: `unsupportedFormat` for bytes of no allowed format, `corruptImage` for a header that cannot be read.
    init(_ bytes: [UInt8]) throws(Failure) {
        do throws(VipsError) {
            file = try EncodedImage(bytes)
        } catch {
            // libvips knows a TIFF by its directory, which often stands at the end: a cut one is nothing to it.
            if bytes.starts(with: Array("II*\0".utf8)) || bytes.starts(with: Array("MM\0*".utf8)) {
                throw Failure(.corruptImage, "the header: the directory of the TIFF cannot be read")
            }
            throw Failure(.unsupportedFormat, Self.impression(of: bytes))
        }
        do throws(VipsError) {
            header = try file.open(Self.options)
        } catch {
            throw Failure(.corruptImage, "the header: \(error.message)")
        }
        format = ImageFormat(file.format, header)
        rawSize = header.size
        orientation = Orientation(exif: header.orientation)
        frames = format.hasAnimation ? header.pages : 1
    }

    /// The size as one sees it.
    var size: PixelSize { orientation.upright(rawSize) }

    /// Opens the pixels, from the top down. Any damage is an error: without `fail-on` libvips fills what is missing
    /// with grey.
    func open(_ load: LoadPlan) throws(VipsError) -> Image {
        switch load.reduction {
        case .none where load.frames > 1: try file.open(Self.options.merging(["n": .int(load.frames)]) { $1 })
        case .none: header
        case .shrink(let factor): try file.open(Self.options.merging(["shrink": .int(factor)]) { $1 })
        case .scale(let factor): try file.open(Self.options.merging(["scale": .double(factor)]) { $1 })
        }
    }

    private static var options: [String: Value] { ["access": "sequential", "fail-on": "error"] }

    /// A word about bytes that are no image.
    private static func impression(of bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "the source is empty" }
        let start = String(decoding: bytes.prefix(256), as: UTF8.self).lowercased()
        let kinds = [
            ("<!doctype html", "HTML"), ("<html", "HTML"), ("<svg", "SVG"), ("%pdf", "PDF"), ("<?xml", "XML"),
            ("{", "JSON"),
        ]
        let text = start.drop { $0.isWhitespace || $0 == "\u{feff}" }
        let kind = kinds.first { text.hasPrefix($0.0) }.map { "\($0.1), which is" } ?? "of"
        return "the bytes are \(kind) no image format that is served"
    }
}

extension ImageFormat {
    fileprivate init(_ format: Format, _ header: Image) {
        self =
            switch format {
            case .jpeg: .jpeg
            case .png: .png
            case .webp: .webp
            case .gif: .gif
            case .tiff: .tiff
            case .heif: header.text(of: "heif-compression") == "av1" ? .avif : .heic
            case .jxl: .jxl
            case .svg: .svg
            case .pdf: .pdf
            }
    }
}
