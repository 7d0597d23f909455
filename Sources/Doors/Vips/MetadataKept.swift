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
