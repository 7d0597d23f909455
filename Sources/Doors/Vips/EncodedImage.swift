import CVips

/// The bytes of an image file, recognised by what they are and never by a name.
public struct EncodedImage: Sendable {
    /// What the bytes were found to be.
    public let format: Format
    private let bytes: KeptBytes

    /// Looks at the first bytes, and nothing of libvips does; decodes nothing. The array is held, not copied; only
    /// compressed text of a PNG that is long is left out, which is no part of the picture.
    ///
    /// - Throws: ``VipsError`` of code `unsupportedFormat` when they are of no format of ``VipsLibrary/allowed``.
    public init(_ bytes: [UInt8]) throws(VipsError) {
        VipsLibrary.start()
        guard let format = Format(announcedBy: bytes), VipsLibrary.allowed.contains(format),
            VipsLibrary.has(operation: format.loader)
        else {
            throw VipsError(
                .unsupportedFormat, "foreign_find_load",
                bytes.isEmpty ? "there are no bytes" : "the bytes are of no image format that may be loaded")
        }
        self.format = format
        self.bytes = KeptBytes(PNGChunks.withoutCompressedText(bytes))
    }

    /// Bytes in the file.
    public var count: Int { bytes.count }

    /// The file itself.
    var content: [UInt8] { bytes.bytes }

    /// Reads the header; pixels follow when they are asked for. Can be called again with other options.
    ///
    /// - Parameter options: of the format's loader, such as `shrink` for JPEG, `scale` for WebP, SVG and PDF, `dpi` for
    ///   SVG and PDF, `page` (from 0) and `n` (-1 for all) for those with pages or frames, `access`, `fail-on`.
    ///
    /// Samples of a TIFF that are neither colour nor alpha are left out.
    /// - Throws: ``VipsError``, `failed` for a damaged header, and for what ``unsupportedFeature`` names.
    public func open(_ options: Operation.Arguments = [:]) throws(VipsError) -> Image {
        let image = try Operation.load(format.loader, bytes, options)
        guard format == .tiff, image.bands > 2, let directory = TIFFDirectory(content) else { return image }
        let samples = directory.meaningfulSamples(of: image.bands)
        guard samples < image.bands else { return image }
        return try Operation.call("extract_band", ["in": .image(image), "band": 0, "n": .int(samples)]).image()
    }

    /// The file for decoding: without EXIF, XMP and IPTC that are not kept. libvips parses them on loading, and copies
    /// their fields from each image of a pipeline to the next. The profile stays, because colours are converted by it.
    /// Other formats than JPEG are as they are.
    public func forDecoding(keeping kept: MetadataKept) -> EncodedImage {
        guard format == .jpeg else { return self }
        return EncodedImage(format, KeptBytes(JPEGSegments.keeping(kept.union(.icc), in: content)))
    }

    private init(_ format: Format, _ bytes: KeptBytes) {
        self.format = format
        self.bytes = bytes
    }

    /// A part of its format that the file makes use of and the libraries have not, such as `lossless coding`; nil where none is
    /// known. It tells what to think of a file that cannot be decoded: libraries differ, and another may know it.
    public var unsupportedFeature: String? {
        switch format {
        case .jpeg: JPEGSegments.unsupportedFeature(of: content)
        case .tiff: TIFFDirectory(content)?.unsupportedFeature
        default: nil
        }
    }

    /// The file itself without metadata, comments, thumbnails and what stands behind its end, its coded pixels as they are. nil for
    /// other formats than JPEG, WebP, GIF and AVIF, and for one that does not follow the format to its end. nil as well
    /// for an AVIF that is not a still image or has an unsupported layout, and for a GIF or AVIF whose size differs
    /// from that of its header here.
    ///
    /// - Parameters:
    ///   - header: of the file, as ``open(_:)`` gives it.
    ///   - keepingProfile: whether its colour profile stays.
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
        default: nil
        }
    }
}

extension Image {
    /// Encodes the picture, computing its pixels where that has not been done.
    ///
    /// - Parameters:
    ///   - options: of the format's saver, such as `Q`, `effort`, `lossless`; never `strip` or `keep`.
    ///   - kept: the metadata that goes into the file. What is not kept is not there, whichever libvips it is.
    /// - Throws: ``VipsError``, `unsupportedFormat` where libvips has no saver of the format, `cancelled` where
    ///   `cancellation` stopped it.
    public func encoded(
        as format: Format, _ options: Operation.Arguments = [:], keeping kept: MetadataKept = .all,
        _ cancellation: Cancellation? = nil
    ) throws(VipsError) -> [UInt8] {
        guard let saver = format.saver, VipsLibrary.has(operation: saver) else {
            throw VipsError(.unsupportedFormat, "foreign_find_save", "libvips cannot save \(format.rawValue)")
        }
        guard options["strip"] == nil, options["keep"] == nil else {
            throw VipsError(.misuse, saver, "which metadata is kept is not said by options")
        }
        // libvips 8.14 writes a quarter of it.
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

/// Encoded bytes that stay where they are for as long as any pipeline may read them.
///
/// libvips decodes lazily and keeps a pointer to its input. The pointer here goes straight into the array's storage,
/// which does not move while it is alive and unchanged: this object holds it, never changes it, and every blob made of
/// it holds this object. So nothing is copied.
final class KeptBytes: Sendable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    /// The first byte's place, good for as long as this object lives.
    var start: UnsafeRawPointer? { bytes.withUnsafeBytes { $0.baseAddress } }

    /// A blob over the bytes, with one reference for the caller to give back with `vips_area_unref`.
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
    Unmanaged<KeptBytes>.fromOpaque(area.pointee.client).release()
    return 0
}

/// The metadata of a picture that goes into its file. What a format has no place for is left out: GIF takes none, PNG,
/// WebP and HEIF no IPTC, TIFF neither EXIF nor IPTC, and libvips 8.14 writes nothing but the profile into JPEG XL.
public struct MetadataKept: OptionSet, Sendable {
    /// The bits of libvips' `VipsForeignKeep`.
    public let rawValue: Int

    /// These bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Camera, time, place, and the orientation.
    public static let exif = MetadataKept(rawValue: 1)
    /// XMP.
    public static let xmp = MetadataKept(rawValue: 2)
    /// IPTC-IIM.
    public static let iptc = MetadataKept(rawValue: 4)
    /// The ICC profile. Without it the pixels should be sRGB.
    public static let icc = MetadataKept(rawValue: 8)
    /// All four. Comments, descriptions and thumbnails are never kept.
    public static let all: MetadataKept = [.exif, .xmp, .iptc, .icc]

    /// Whether the field of a header may stay: it is kept, or no metadata.
    func keeps(field: String) -> Bool {
        switch field {
        case "xmp-data": contains(.xmp)
        case "iptc-data": contains(.iptc)
        case "icc-profile-data": contains(.icc)
        case "jpeg-thumbnail-data", "photoshop-data", "image-description", "gif-comment": false
        // libvips keeps each EXIF tag as a field too, and makes EXIF anew of those.
        case _ where field.hasPrefix("exif-"): contains(.exif)
        case _ where field.hasPrefix("png-comment-") || field.hasPrefix("jpeg-comment-"): false
        default: true
        }
    }
}

extension Image {
    /// Without the fields that are not kept.
    func keeping(_ kept: MetadataKept) throws(VipsError) -> Image {
        try without(fields: fields.filter { !kept.keeps(field: $0) })
    }
}
