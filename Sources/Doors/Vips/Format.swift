/// The file formats that may be loaded, and can be saved.
///
/// libvips takes SVG, PDF and JPEG XL for untrusted: their libraries have not been fuzzed by it against hostile input.
/// Close them with ``VipsLibrary/allow(_:)`` where they are not wanted.
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
    /// SVG, compressed by gzip or not, through librsvg. It is drawn at the size that `scale` and `dpi` say; it cannot
    /// be saved.
    case svg
    /// PDF, through poppler or PDFium, a page at the size that `scale` and `dpi` say; it cannot be saved.
    case pdf

    /// The operation that decodes it from memory.
    var loader: String { "\(rawValue)load_buffer" }

    /// The operation that encodes it to memory; nil where there cannot be one.
    var saver: String? {
        switch self {
        case .svg, .pdf: nil
        default: "\(rawValue)save_buffer"
        }
    }

    /// The class above all loaders of the format.
    var loaderClass: String {
        switch self {
        case .gif: "VipsForeignLoadNsgif"
        default: "VipsForeignLoad\(capitalised)"
        }
    }

    /// The class above all savers of the format; nil where there cannot be one.
    var saverClass: String? {
        switch self {
        case .svg, .pdf: nil
        case .gif: "VipsForeignSaveCgif"
        default: "VipsForeignSave\(capitalised)"
        }
    }

    private var capitalised: String { "\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())" }

    /// Whether this build of libvips can decode it. For HEIF, whether libheif has a decoder for AV1 or HEVC: the first
    /// call decodes a tiny picture of each.
    public var canLoad: Bool {
        guard self != .heif else { return HEIFCodec.allCases.contains(where: \.canDecode) }
        return VipsLibrary.has(operation: loader)
    }

    /// Whether this build of libvips can encode it. For HEIF, whether libheif has an encoder for AV1: the first call
    /// encodes a tiny picture.
    public var canSave: Bool {
        guard self != .heif else { return HEIFCodec.encodesAV1 }
        return saver.map(VipsLibrary.has(operation:)) ?? false
    }
}

/// What a HEIF file may be coded with. libvips has operations for HEIF as soon as libheif is there; whether that can
/// decode or encode depends on its plugins, which on Debian 13 are packages of their own. So a tiny picture is tried.
public enum HEIFCodec: String, Sendable, CaseIterable {
    /// AV1: AVIF files.
    case av1
    /// HEVC: HEIC files.
    case hevc

    /// Whether pictures of this codec can be decoded. The first call decodes one. False while
    /// ``VipsLibrary/allow(_:)`` keeps HEIF closed.
    public var canDecode: Bool {
        guard VipsLibrary.allowed.contains(.heif) else { return false }
        return switch self {
        case .av1: Self.decodesAV1
        case .hevc: Self.decodesHEVC
        }
    }

    /// Whether libheif can encode AVIF. The first call encodes one.
    static let encodesAV1 =
        // A failure is the answer: the codec is not there.
        (try? Image(color: [0, 0, 0], width: 16, height: 16).encoded(
            as: .heif, ["compression": "av1", "effort": 0])) != nil

    private static let decodesAV1 = decodes(sampleAV1)
    private static let decodesHEVC = decodes(sampleHEVC)

    private static func decodes(_ sample: String) -> Bool {
        // A failure is the answer: the codec is not there.
        (try? EncodedImage(bytes(sample)).open().inMemory()) != nil
    }

    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.utf8.map { $0 < 0x40 ? $0 - 0x30 : $0 - 0x57 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    // A black picture of 16×16 each, made by `vips heifsave --strip --Q 10`.
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
