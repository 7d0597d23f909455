/// The file formats that may be loaded, and those that can be saved.
///
/// libvips marks SVG, PDF, JPEG XL and JPEG 2000 as untrusted, because it has not fuzzed their libraries against
/// hostile input. Disable them with ``VipsLibrary/allow(_:)`` if they are not needed.
public enum Format: String, Sendable, CaseIterable {
    /// JPEG, through libjpeg-turbo.
    case jpeg
    /// PNG, through libspng or libpng.
    case png
    /// WebP, still or animated, through libwebp.
    case webp
    /// GIF, through libnsgif; saved by cgif.
    case gif
    /// TIFF, through libtiff.
    case tiff
    /// The HEIF container with AVIF or HEIC inside, through libheif; see ``HEIFCodec``.
    case heif
    /// JPEG XL, through libjxl.
    case jxl
    /// SVG, optionally compressed with gzip, through librsvg. `scale` and `dpi` determine the size at which it is
    /// rendered. It cannot be saved.
    case svg
    /// PDF, through poppler or PDFium. `scale` and `dpi` determine the size at which a page is rendered. It cannot be
    /// saved.
    case pdf
    /// JPEG 2000, through OpenJPEG. It is not saved.
    case jp2
    /// BMP without compression. It is not saved.
    case bmp
    /// An icon of Windows, of which the largest image is read. It is not saved.
    case ico

    /// The operation that decodes the format, without the kind of its input; nil if ``Bitmap`` describes the pixels to
    /// libvips.
    var operation: String? {
        switch self {
        case .bmp, .ico: nil
        case .jp2: "jp2kload"
        default: "\(rawValue)load"
        }
    }

    /// The operation that decodes the format from memory; nil if none is needed.
    var loader: String? { operation.map { "\($0)_buffer" } }

    /// The operation that encodes the format to memory; nil if it cannot be saved.
    var saver: String? {
        switch self {
        case .svg, .pdf, .jp2, .bmp, .ico: nil
        default: "\(rawValue)save_buffer"
        }
    }

    /// The base class of all loaders of the format; nil if none is needed.
    var loaderClass: String? {
        switch self {
        case .bmp, .ico: nil
        case .jp2: "VipsForeignLoadJp2k"
        case .gif: "VipsForeignLoadNsgif"
        default: "VipsForeignLoad\(capitalised)"
        }
    }

    /// The base class of all savers of the format; nil if it cannot be saved.
    var saverClass: String? {
        switch self {
        case .svg, .pdf, .jp2, .bmp, .ico: nil
        case .gif: "VipsForeignSaveCgif"
        default: "VipsForeignSave\(capitalised)"
        }
    }

    private var capitalised: String { "\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())" }

    /// True if this build of libvips can decode the format. For HEIF: true if libheif has a decoder for AV1 or HEVC.
    /// The first call decodes a tiny picture of each.
    public var canLoad: Bool {
        guard self != .heif else { return HEIFCodec.allCases.contains(where: \.canDecode) }
        return loader.map(VipsLibrary.has(operation:)) ?? true
    }

    /// True if this build of libvips can encode the format. For HEIF: true if libheif has an encoder for AV1. The first
    /// call encodes a tiny picture.
    public var canSave: Bool {
        guard self != .heif else { return HEIFCodec.encodesAV1 }
        return saver.map(VipsLibrary.has(operation:)) ?? false
    }
}

/// A codec of HEIF files. libvips has operations for HEIF whenever libheif is installed, but libheif needs plugins to
/// decode or encode, which on Debian 13 are separate packages. So support is tested with a tiny picture.
public enum HEIFCodec: String, Sendable, CaseIterable {
    /// AV1, used by AVIF files.
    case av1
    /// HEVC, used by HEIC files.
    case hevc

    /// True if pictures of this codec can be decoded. The first call decodes one. False while HEIF is disabled by
    /// ``VipsLibrary/allow(_:)``.
    public var canDecode: Bool {
        guard VipsLibrary.allowed.contains(.heif) else { return false }
        return switch self {
        case .av1: Self.decodesAV1
        case .hevc: Self.decodesHEVC
        }
    }

    /// True if libheif can encode AVIF. The first call encodes a picture.
    static let encodesAV1 =
        // A failure means that the codec is missing.
        (try? Image(color: [0, 0, 0], width: 16, height: 16).encoded(
            as: .heif, ["compression": "av1", "effort": 0])) != nil

    private static let decodesAV1 = decodes(sampleAV1)
    private static let decodesHEVC = decodes(sampleHEVC)

    private static func decodes(_ sample: String) -> Bool {
        // A failure means that the codec is missing.
        (try? EncodedImage(bytes(sample)).open().inMemory()) != nil
    }

    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.utf8.map { $0 < 0x40 ? $0 - 0x30 : $0 - 0x57 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    // Black pictures of 16×16 pixels, created with `vips heifsave --strip --Q 10`.
    private static let sampleAV1 =
        """
        0000001c667479706176696600000000617669666d6966316d696166000000ea6d657461000000000000002168646c7200000000\
        0000000070696374000000000000000000000000000000000e7069746d00000000000100000022696c6f63000000004440000100\
        0100000000010e000100000000000000180000002369696e6600000000000100000015696e666502000000000100006176303100\
        0000006a697072700000004b6970636f00000013636f6c726e636c78000200020006800000000c6176314381000c000000001469\
        737065000000000000001000000010000000107069786900000000030808080000001769706d6100000000000000010001048182\
        0384000000206d64617412000a09180cffd8204040d08032091e4000004000a98e81
        """

    private static let sampleHEVC =
        """
        0000001c6674797068656963000000006d696631686569636d696166000001ad6d657461000000000000002168646c7200000000\
        0000000070696374000000000000000000000000000000000e7069746d0000000000020000001069646174000000000010001000\
        000038696c6f630100000044400002000100000000000001d1000100000000000000220002000100000000000000010000000000\
        0000080000003869696e6600000000000200000015696e66650200000100010000687663310000000015696e6665020000000002\
        00006772696400000000d869707270000000b66970636f00000076687663430103700000000000000000001ef000fcfdf8f80000\
        0f03200001001840010c01ffff03700000030090000003000003001eba0240210001002a42010103700000030090000003000003\
        001ea020810596eaae9ae6e04040c0800000030080000003008422000100064401c173c189000000146973706500000000000000\
        40000000400000001469737065000000000000001000000010000000107069786900000000030808080000001a69706d61000000\
        0000000002000102810200020203840000001a69726566000000000000000e64696d670002000100010000002a6d646174000000\
        1e2801af0412124ce0f8044e63fee954550120ace8b474a1c8971093bb6ac0
        """
}
