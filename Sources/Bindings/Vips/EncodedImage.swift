import CVips

/// The bytes of an image file, identified by their content and never by a name.
public struct EncodedImage: Sendable {
    /// The detected format.
    public let format: Format
    /// The size of the file in bytes, as it was given.
    public let fileSize: Int
    private let bytes: RetainedBlob

    /// Identifies the format from the first bytes, without libvips and without decoding. The array is retained, not
    /// copied. Only long compressed text of a PNG is removed, which does not affect the picture.
    ///
    /// - Throws: ``VipsError`` with code `unsupportedFormat` if the bytes have none of the formats in
    ///   ``VipsLibrary/allowed``.
    public init(_ bytes: [UInt8]) throws(VipsError) {
        VipsLibrary.start()
        guard let format = Format(announcedBy: bytes), VipsLibrary.allowed.contains(format),
            format.loader.map(VipsLibrary.has(operation:)) ?? true
        else {
            throw VipsError(
                .unsupportedFormat, "foreign_find_load",
                bytes.isEmpty ? "the file is empty" : "the bytes are not in an image format that may be loaded")
        }
        self.format = format
        fileSize = bytes.count
        self.bytes = RetainedBlob(PNGChunks.withoutCompressedText(bytes))
    }

    /// The size of the retained bytes.
    public var count: Int { bytes.count }

    /// The bytes of the file.
    var content: [UInt8] { bytes.bytes }

    /// Reads the header. Pixels are decoded when they are needed. May be called again with other options.
    ///
    /// - Parameter options: options of the format's loader, such as `shrink` for JPEG, `scale` for WebP, SVG and PDF,
    ///   `dpi` for SVG and PDF, `page` (from 0) and `n` (-1 for all) for formats with pages or frames, `access`,
    ///   `fail-on`.
    ///
    /// TIFF samples that are neither color nor alpha are dropped. The largest image of an icon is opened.
    /// - Throws: ``VipsError`` with code `failed` for a damaged header, or a feature named by ``unsupportedFeature``.
    public func open(_ options: Operation.Arguments = [:]) throws(VipsError) -> Image {
        guard let loader = format.loader else {
            return try bitmap(options)
        }
        let image = try Operation.load(loader, bytes, options)
        guard format == .tiff, image.bands > 2, let directory = TIFFDirectory(content) else { return image }
        let samples = directory.meaningfulSamples(of: image.bands)
        guard samples < image.bands else { return image }
        return try Operation.call("extract_band", ["in": .image(image), "band": 0, "n": .int(samples)]).image()
    }

    private func bitmap(_ options: Operation.Arguments) throws(VipsError) -> Image {
        let toleratesCut = if case .string("none") = options["fail-on"] { true } else { false }
        guard format == .ico else { return try Bitmap(file: content).image(of: bytes, toleratingCut: toleratesCut) }
        let icon = try IconFile(content)
        guard let png = icon.png else { return try icon.bitmap().image(of: bytes, toleratingCut: toleratesCut) }
        return try EncodedImage(png).open(options)
    }

    /// The file for decoding, without EXIF, XMP and IPTC that `kept` excludes. libvips parses them on loading, and
    /// copies their fields to each image of a pipeline. The ICC profile stays, because it is used to convert colors.
    /// Formats other than JPEG are returned unchanged.
    public func forDecoding(keeping kept: MetadataPolicy) -> EncodedImage {
        guard format == .jpeg else { return self }
        return EncodedImage(format, fileSize, RetainedBlob(JPEGSegments.keeping(kept.union(.icc), in: content)))
    }

    private init(_ format: Format, _ fileSize: Int, _ bytes: RetainedBlob) {
        self.format = format
        self.fileSize = fileSize
        self.bytes = bytes
    }

    /// A feature of its format that the file uses and the libraries do not support, such as `lossless coding`; nil if
    /// none is known. It explains the failure of a file that cannot be decoded here, but possibly by other libraries.
    public var unsupportedFeature: String? {
        switch format {
        case .jpeg: JPEGSegments.unsupportedFeature(of: content)
        case .tiff: TIFFDirectory(content)?.unsupportedFeature
        // A malformed header is no missing feature.
        case .bmp: try? Bitmap(file: content).unsupportedFeature
        case .ico: try? IconFile(content).bitmap().unsupportedFeature
        default: nil
        }
    }

    /// The EXIF of a TIFF, which is in its first directory and which libvips does not read; nil for other formats.
    public var exifFields: EXIFFields? { format == .tiff ? EXIFFields(content) : nil }

    /// The file without metadata, comments, thumbnails and trailing bytes, with its coded pixels unchanged. nil for
    /// formats other than JPEG, WebP, GIF, AVIF and PNG with a palette, and for a file that violates its format. nil as
    /// well for an AVIF that is not a still image or has an unsupported layout, and for a GIF or AVIF whose size differs
    /// from that of `header`.
    ///
    /// - Parameters:
    ///   - header: the file's header from ``open(_:)``.
    ///   - keepingProfile: true if the color profile is retained.
    public func withoutMetadata(of header: Image, keepingProfile: Bool) -> [UInt8]? {
        switch format {
        case .jpeg: JPEGSegments.pixels(of: content, keepingProfile: keepingProfile)
        case .webp: WebPChunks.pixels(of: content, keepingProfile: keepingProfile)
        case .gif:
            GIFBlocks.pixels(
                of: content, width: header.width, height: header.pageHeight, frames: header.pages,
                keepingProfile: keepingProfile)
        case .heif:
            AVIFPicture.pixels(
                of: content, width: header.width, height: header.pageHeight, keepingProfile: keepingProfile)
        case .png: PNGChunks.pixels(of: content, keepingProfile: keepingProfile)
        default: nil
        }
    }
}

extension Image {
    /// Encodes the picture, and computes its pixels if necessary.
    ///
    /// - Parameters:
    ///   - options: options of the format's saver, such as `Q`, `effort`, `lossless`; never `strip` or `keep`.
    ///   - kept: the metadata to write. All other metadata is removed with every version of libvips.
    /// - Throws: ``VipsError`` with code `unsupportedFormat` if libvips has no saver for the format, or `cancelled` if
    ///   `cancellation` stopped it.
    public func encoded(
        as format: Format, _ options: Operation.Arguments = [:], keeping kept: MetadataPolicy = .all,
        _ cancellation: Cancellation? = nil
    ) throws(VipsError) -> [UInt8] {
        guard let saver = format.saver, VipsLibrary.has(operation: saver) else {
            throw VipsError(.unsupportedFormat, "foreign_find_save", "libvips cannot save \(format.rawValue)")
        }
        guard options["strip"] == nil, options["keep"] == nil else {
            throw VipsError(.misuse, saver, "strip and keep are not allowed in the options; use the metadata policy")
        }
        // libvips 8.14 writes only a quarter of the IPTC data.
        let kept = format == .tiff ? kept.subtracting(.iptc) : kept
        let image = try keeping(kept)
        let file = try image.running(cancellation, saver) { () throws(VipsError) in
            try Operation.save(saver, image, options, keeping: kept)
        }
        return switch format {
        case .jpeg: JPEGSegments.keeping(kept, in: file)
        case .webp: WebPChunks.keeping(kept, in: file)
        case .heif where !kept.contains(.exif): try HEIFItems.withoutEXIF(file)
        default: file
        }
    }
}

/// Encoded bytes whose address stays valid while any pipeline may read them.
///
/// libvips decodes lazily and holds a pointer to its input. The pointer here refers to the array's storage, which does
/// not move while it is alive and unchanged. This object retains the array and never changes it, and every blob created
/// from it retains this object. So the bytes are not copied.
final class RetainedBlob: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    /// The address of the first byte, valid as long as this object lives.
    var start: UnsafeRawPointer? { bytes.withUnsafeBytes { $0.baseAddress } }

    /// Creates a blob over the bytes. The caller owns one reference and releases it with `vips_area_unref`.
    func blob() -> UnsafeMutablePointer<VipsArea> {
        let blob = vips_blob_new(releaseKeptBytes, start, bytes.count)!
        let area = UnsafeMutableRawPointer(blob).assumingMemoryBound(to: VipsArea.self)
        area.pointee.client = Unmanaged.passRetained(self).toOpaque()
        return area
    }
}

// libvips passes the area itself as the second argument of an area's free function (`vips_area_free_cb`).
private func releaseKeptBytes(_ data: UnsafeMutableRawPointer?, _ area: UnsafeMutableRawPointer?) -> Int32 {
    let area = area!.assumingMemoryBound(to: VipsArea.self)
    Unmanaged<RetainedBlob>.fromOpaque(area.pointee.client).release()
    return 0
}

/// The metadata of a picture that is written to its file. Metadata that a format does not support is dropped. GIF
/// supports none, PNG, WebP and HEIF lack IPTC, TIFF lacks EXIF and IPTC, and libvips 8.14 writes only the profile into
/// JPEG XL.
public struct MetadataPolicy: OptionSet, Sendable {
    /// The bits of libvips' `VipsForeignKeep`.
    public let rawValue: Int

    /// Creates a policy from the bits of `VipsForeignKeep`.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// EXIF: camera, time, location and orientation.
    public static let exif = MetadataPolicy(rawValue: 1)
    /// The XMP packet.
    public static let xmp = MetadataPolicy(rawValue: 2)
    /// The IPTC-IIM data.
    public static let iptc = MetadataPolicy(rawValue: 4)
    /// The ICC profile. Without it the pixels should be sRGB.
    public static let icc = MetadataPolicy(rawValue: 8)
    /// All four kinds. Comments, descriptions and thumbnails are never written.
    public static let all: MetadataPolicy = [.exif, .xmp, .iptc, .icc]

    /// True if a header field is retained: it is included in the policy, or is not metadata.
    func keeps(field: String) -> Bool {
        switch field {
        case "xmp-data": contains(.xmp)
        case "iptc-data": contains(.iptc)
        case "icc-profile-data": contains(.icc)
        case "jpeg-thumbnail-data", "photoshop-data", "image-description", "gif-comment": false
        // libvips stores each EXIF tag in a separate field too, and rebuilds EXIF from these fields.
        case _ where field.hasPrefix("exif-"): contains(.exif)
        case _ where field.hasPrefix("png-comment-") || field.hasPrefix("jpeg-comment-"): false
        default: true
        }
    }
}

extension Image {
    /// A picture without the metadata fields that the policy excludes.
    func keeping(_ kept: MetadataPolicy) throws(VipsError) -> Image {
        try without(fields: fields.filter { !kept.keeps(field: $0) })
    }
}
