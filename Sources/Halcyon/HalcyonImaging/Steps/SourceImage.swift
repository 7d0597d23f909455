import HalcyonModel
import Vips

/// A source, as its header tells it. No pixel is decoded.
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
    private let options: Operation.Arguments
    /// Whether the file ends too early, and that is to be tolerated.
    let isTruncated: Bool

    /// - Throws: `corruptImage` for a header that cannot be read, `unsupportedFormat` where the libraries lack what it asks for,
    ///   `tooManyPixels` for a drawing that is larger than any picture.
    ///
    /// - Parameter toleratingCut: whether what there is of a file that ends too early will do.
    init(_ file: EncodedImage, toleratingCut: Bool = false) throws(Failure) {
        self.file = file
        isTruncated = toleratingCut && file.isTruncated
        options = ["access": "sequential", "fail-on": isTruncated ? "none" : "error"]
        do throws(VipsError) {
            header = try file.open(options)
        } catch {
            throw file.failure("the header: \(error.message)", error)
        }
        format = ImageFormat(file.format, header)
        rawSize = header.size
        if file.isBeyondMeasure(header) {
            throw Failure(.tooManyPixels, "the source has a side of more pixels than any picture can have")
        }
        orientation = Orientation(exif: header.orientation)
        frames = format.hasAnimation ? header.pages : 1
    }

    /// The size as one sees it.
    var size: PixelSize { orientation.upright(rawSize) }

    /// Opens the pixels, from the top down. Any damage is an error, unless the file is known to be cut off: without `fail-on`
    /// libvips fills what is missing. Of a picture that is to be turned EXIF stays, by which `autorot` turns it.
    func open(_ load: LoadPlan) throws(VipsError) -> Image {
        switch load.reduction {
        case .none where load.frames > 1: try file.open(options.merging(["n": .int(load.frames)]) { $1 })
        case .none: header
        case .shrink(let factor):
            try file.forDecoding(keeping: orientation == .upright ? load.metadata : load.metadata.union(.exif))
                .open(options.merging(["shrink": .int(factor)]) { $1 })
        case .scale(let factor): try file.open(options.merging(["scale": .double(factor)]) { $1 })
        }
    }
}

extension EncodedImage {
    /// What is to be said of pixels that cannot be decoded: the file's fault, or that of the libraries.
    func failure(_ message: String, _ cause: VipsError) -> Failure {
        guard let unsupportedFeature else { return Failure(.corruptImage, message, cause: cause) }
        return Failure(
            .unsupportedFormat,
            "the \(format.rawValue.uppercased()) has \(unsupportedFeature), which is not decoded here", cause: cause)
    }

    /// Whether a drawing has a side that libvips cannot count: it takes 1 for such a side.
    fileprivate func isBeyondMeasure(_ header: Image) -> Bool {
        // A drawing that cannot be opened this small is judged by its pixels.
        guard format == .svg || format == .pdf, header.width == 1 || header.height == 1,
            let small = try? open(["scale": 0.001])
        else { return false }
        return small.width > header.width || small.height > header.height
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

extension EncodedImage {
    /// Step 1, identify: what the bytes are, by their content alone.
    ///
    /// - Throws: `unsupportedFormat` for bytes of no allowed format, with a word about what they are instead.
    init(identifying bytes: [UInt8]) throws(Failure) {
        do throws(VipsError) {
            try self.init(bytes)
        } catch {
            throw Failure(.unsupportedFormat, Self.impression(of: bytes))
        }
    }

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
