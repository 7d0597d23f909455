import HalcyonModel
import Vips

/// A source as described by its header. No pixel is decoded.
struct SourceImage {
    let file: EncodedImage
    /// The header, opened as rendering needs it without shrink on load.
    let header: Image
    let format: ImageFormat
    /// The size as stored, before auto-rotation.
    let rawSize: PixelSize
    /// The format and the size of the pixels in the file. They differ from ``format`` and ``rawSize`` if the file is an
    /// archive copy of the source.
    let storedFormat: ImageFormat
    let storedSize: PixelSize
    /// True if the file is an archive copy of the source.
    let isCopy: Bool
    let orientation: Orientation
    /// The page, or the first frame of an animation, from 1.
    let page: Int
    /// The number of frames of an animation from ``page``; 1 for everything else, regardless of its pages.
    let frames: Int
    private let options: Operation.Arguments
    /// True if the file is truncated and this is tolerated.
    let isTruncated: Bool

    /// Reads the header of a file.
    /// - Throws: `corruptImage` if the header cannot be read, `unsupportedFormat` if the libraries lack a feature,
    ///   `tooManyPixels` if a drawing exceeds any possible image.
    ///
    /// - Parameters:
    ///   - toleratingCut: True if a truncated file is to be rendered.
    ///   - original: The source, if the file is an archive copy of it.
    init(
        _ file: EncodedImage, toleratingCut: Bool = false, original: ArchivedOriginal? = nil
    ) throws(JobError) {
        let isTruncated = toleratingCut && file.isTruncated
        try self.init(
            file, page: 1, ["access": "sequential", "fail-on": isTruncated ? "none" : "error"],
            isTruncated: isTruncated, original: original)
    }

    /// Reads the header of another page of the file.
    /// - Throws: `invalidJob` if there is no such page, and the errors of ``init(_:toleratingCut:original:)``.
    init(_ source: SourceImage, page: Int) throws(JobError) {
        let count = source.format.hasPages ? source.header.pages : 1
        guard page <= count else {
            let parts = source.format.hasAnimation ? ("frame", "frames") : ("page", "pages")
            throw JobError(
                .invalidJob,
                "page: there is no \(parts.0) \(page); the source has \(count) "
                    + (count == 1 ? parts.0 : parts.1))
        }
        try self.init(
            source.file, page: page, source.options.merging(["page": .int(page - 1)]) { $1 },
            isTruncated: source.isTruncated, original: nil)
    }

    private init(
        _ file: EncodedImage, page: Int, _ options: Operation.Arguments, isTruncated: Bool,
        original: ArchivedOriginal?
    ) throws(JobError) {
        self.file = file
        self.page = page
        self.options = options
        self.isTruncated = isTruncated
        do throws(VipsError) {
            header = try file.open(options)
        } catch {
            throw file.failure("the header: \(error.message)", error)
        }
        isCopy = original != nil
        storedFormat = ImageFormat(file.format, header)
        storedSize = header.size
        format = original?.format ?? storedFormat
        rawSize = original?.size ?? storedSize
        if file.isBeyondMeasure(header, page) {
            throw JobError(.tooManyPixels, "a side of the source exceeds the maximum number of pixels")
        }
        orientation = Orientation(exif: header.orientation)
        frames = storedFormat.hasAnimation ? max(1, header.pages - page + 1) : 1
    }

    /// The number of pixels of the source per pixel of the file along the side where it is larger; 1 unless the file is
    /// a copy.
    var reduction: Double {
        max(Double(rawSize.width) / Double(storedSize.width), Double(rawSize.height) / Double(storedSize.height))
    }

    /// The upright size.
    var size: PixelSize { orientation.upright(rawSize) }

    /// Opens the pixels for sequential access. Any damage is an error, unless the file is known to be truncated.
    /// Without `fail-on` libvips fills in missing pixels. EXIF is retained for images that have to be rotated, because
    /// `autorot` needs it.
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
    /// Creates the error for pixels that cannot be decoded, because the file is corrupt or the libraries lack a
    /// feature.
    func failure(_ message: String, _ cause: VipsError) -> JobError {
        guard let unsupportedFeature else { return JobError(.corruptImage, message, cause: cause) }
        return JobError(
            .unsupportedFormat,
            "the \(format.rawValue.uppercased()) has \(unsupportedFeature), which is not supported here", cause: cause)
    }

    /// Returns true if a drawing has a side that exceeds libvips' range. libvips reports 1 for such a side.
    fileprivate func isBeyondMeasure(_ header: Image, _ page: Int) -> Bool {
        // A drawing that cannot be opened at this scale is judged by its pixels.
        guard format == .svg || format == .pdf, header.width == 1 || header.height == 1,
            let small = try? open(
                format == .pdf ? ["scale": 0.001, "page": .int(page - 1)] : ["scale": 0.001])
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
            case .jp2: .jp2
            case .bmp: .bmp
            case .ico: .ico
            }
    }
}

extension EncodedImage {
    /// Step 1, identify: detects the format of the bytes by their content alone.
    ///
    /// - Throws: `unsupportedFormat` if the format is unknown or not allowed, with a description of the content.
    init(identifying bytes: [UInt8]) throws(JobError) {
        do throws(VipsError) {
            try self.init(bytes)
        } catch {
            throw JobError(.unsupportedFormat, Self.impression(of: bytes))
        }
    }

    /// Returns a description of bytes that are not an image.
    private static func impression(of bytes: [UInt8]) -> String {
        guard !bytes.isEmpty else { return "the source is empty" }
        let start = String(decoding: bytes.prefix(256), as: UTF8.self).lowercased()
        let kinds = [
            ("<!doctype html", "HTML"), ("<html", "HTML"), ("<svg", "SVG"), ("%pdf", "PDF"), ("<?xml", "XML"),
            ("{", "JSON"),
        ]
        let text = start.drop { $0.isWhitespace || $0 == "\u{feff}" }
        let kind = kinds.first { text.hasPrefix($0.0) }.map { "\($0.1), which is not" } ?? "not in"
        return "the bytes are \(kind) a supported image format"
    }
}
