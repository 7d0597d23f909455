import TestSupport
import Testing

@testable import Vips

/// Files contain the metadata that the policy keeps, and no other.
@Suite(.limitedParallelism) struct MetadataTests {
    static let saved: [Format] = [.jpeg, .png, .webp, .heif, .tiff, .gif, .jxl]

    static let choices: [MetadataPolicy] = [
        [], .exif, .xmp, .iptc, .icc, [.exif, .icc], [.xmp, .iptc], [.xmp, .icc], .all,
    ]

    /// The metadata that a format can store. (libvips writes EXIF and XMP into JPEG XL since 8.15.)
    static func supported(in format: Format) -> MetadataPolicy {
        switch format {
        case .jpeg: .all
        case .png, .webp, .heif: [.exif, .xmp, .icc]
        case .tiff: [.xmp, .icc]
        default: []
        }
    }

    /// EXIF with one tag, the description "a secret place".
    static let exif: [UInt8] =
        Array("Exif\0\0II*\0".utf8) + [8, 0, 0, 0, 1, 0, 0x0e, 1, 2, 0, 15, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        + Array("a secret place\0".utf8)
    static let xmp = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'>a secret thought</x:xmpmeta>".utf8)
    static let iptc: [UInt8] =
        Array("Photoshop 3.0\u{0}8BIM".utf8) + [4, 4, 0, 0, 0, 0, 0, 20, 0x1c, 2, 120, 0, 15]
        + Array("a secret person".utf8)

    static func profile() throws -> [UInt8] {
        try Operation.call("profile_load", ["name": "p3"]).bytes("profile")
    }

    /// An image with metadata of all four kinds, and with comments.
    static func taggedImage() throws -> Image {
        try EncodedImageTests.testImage().with(header: [
            "exif-data": .bytes(exif), "xmp-data": .bytes(xmp), "iptc-data": .bytes(iptc),
            "icc-profile-data": .bytes(profile()), "png-comment-0-Author": .text("a secret name"),
            "image-description": .text("a secret note"), "jpeg-thumbnail-data": .bytes([1, 2, 3]),
        ])
    }

    static func options(_ format: Format) -> Operation.Arguments {
        switch format {
        case .heif: ["compression": "av1", "effort": 0]
        case .webp, .jxl: ["lossless": true]
        default: [:]
        }
    }

    @Test(arguments: saved, choices)
    func keepsOnlyTheRequestedMetadata(_ format: Format, _ kept: MetadataPolicy) throws {
        let file = try Self.taggedImage().encoded(as: format, Self.options(format), keeping: kept)
        let present = kept.intersection(Self.supported(in: format))
        let image = try EncodedImage(file).open()

        // As read back from the file.
        if format != .jxl {
            #expect(image.has(field: "exif-data") == present.contains(.exif))
            #expect(image.has(field: "xmp-data") == present.contains(.xmp))
            #expect(image.has(field: "iptc-data") == present.contains(.iptc))
            #expect(image.has(field: "icc-profile-data") == present.contains(.icc))
        }
        if present.contains(.exif) {
            #expect(image.text(of: "exif-ifd0-ImageDescription")?.hasPrefix("a secret place") == true)
        }
        if present.contains(.xmp) { #expect(image.bytes(of: "xmp-data") == Self.xmp) }
        if present.contains(.iptc) { #expect(image.bytes(of: "iptc-data")?.starts(with: Self.iptc) == true) }
        if present.contains(.icc) { #expect(try image.bytes(of: "icc-profile-data") == Self.profile()) }

        // As found in the bytes. PNG compresses XMP and the profile, but not the names of their chunks.
        let markers: [(String, MetadataPolicy)] =
            [
                ("a secret place", .exif), ("a secret thought", .xmp), ("a secret person", .iptc),
                ("Exif", .exif), ("eXIf", .exif), ("ns.adobe.com/xap", .xmp), ("XML:com.adobe.xmp", .xmp),
                ("XMP ", .xmp), ("application/rdf", .xmp), ("Photoshop 3.0", .iptc), ("iCCP", .icc), ("ICCP", .icc),
                ("ICC_PROFILE", .icc), ("acsp", .icc),
            ] + (format == .webp ? [("EXIF", .exif)] : [])
        let unwanted = markers.filter { !kept.contains($0.1) }.map(\.0) + ["a secret name", "a secret note"]
        #expect(Self.found(unwanted, in: file) == [])
        let wanted = format == .png ? [] : markers.prefix(3).filter { present.contains($0.1) }.map(\.0)
        #expect(Self.found(wanted, in: file) == wanted)

        // The pixels do not depend on the policy.
        let plain = try EncodedImageTests.testImage().encoded(as: format, Self.options(format), keeping: [])
        #expect(try image.pixels() == EncodedImage(plain).open().pixels())
        // If the image has EXIF, libvips 8.16 writes the density of a TIFF in inches, and creates EXIF for JPEG XL.
        let mayDiffer = format == .jxl && !kept.isEmpty || format == .tiff && kept.contains(.exif)
        if present.isEmpty, !mayDiffer { #expect(file == plain) }
    }

    /// Returns the texts that occur in the file.
    static func found(_ texts: [String], in file: [UInt8]) -> [String] { texts.filter { contains($0, file) } }

    static func contains(_ text: String, _ file: [UInt8]) -> Bool {
        let text = Array(text.utf8)
        return file.indices.contains { file[$0] == text[0] && file[$0...].starts(with: text) }
    }

    @Test(arguments: saved)
    func addsNoMetadataOfItsOwn(_ format: Format) throws {
        for kept: MetadataPolicy in [[], .icc, .xmp] {
            let file = try EncodedImageTests.testImage().encoded(as: format, Self.options(format), keeping: kept)
            #expect(try file == EncodedImageTests.testImage().encoded(as: format, Self.options(format), keeping: []))
            #expect(Self.found(["Exif", "EXIF", "eXIf"], in: file) == [])
        }
    }

    @Test func jpegXLOmitsProfilesThatAreNotKept() throws {
        let options = Self.options(.jxl)
        let without = try Self.taggedImage().encoded(as: .jxl, options, keeping: [])
        let with = try Self.taggedImage().encoded(as: .jxl, options, keeping: .icc)
        // libjxl encodes profiles. For a known one it writes only the name.
        #expect(try without == EncodedImageTests.testImage().encoded(as: .jxl, options, keeping: []))
        #expect(with != without)
        #expect(
            try EncodedImage(with).open().bytes(of: "icc-profile-data")
                != EncodedImage(without).open().bytes(of: "icc-profile-data"))
    }

    @Test(arguments: [Format.gif, .webp])
    func keepsFramesDelaysAndLoopsOfAnimations(_ format: Format) throws {
        for kept: MetadataPolicy in [[], .icc] {
            let strip = try PagesTests.animation().with(header: ["icc-profile-data": .bytes(Self.profile())])
            let file = try EncodedImage(strip.encoded(as: format, keeping: kept)).open(["n": -1])
            #expect((file.frames, file.loopCount) == (3, 3))
            #expect(file.frameDelays == [100, 250, 40])
            #expect(try file.pixels().count == 30 * 60 * file.bands)
        }
    }

    @Test func keepsAlphaInWebPAndAVIF() throws {
        let clear = try Image(color: [200, 100, 50, 128], width: 40, height: 30).with(header: [
            "icc-profile-data": .bytes(Self.profile())
        ])
        for format in [Format.webp, .heif] {
            for kept: MetadataPolicy in [[], .icc, .all] {
                let file = try clear.encoded(as: format, Self.options(format), keeping: kept)
                let image = try EncodedImage(file).open()
                #expect(image.hasAlpha)
                #expect(try image.samples(x: 20, y: 15)[3] == 128, "\(format)")
                #expect(image.has(field: "icc-profile-data") == kept.contains(.icc))
            }
        }
    }

    @Test func encodingKeepsTheMetadataOfTheImage() throws {
        let image = try Self.taggedImage()
        _ = try image.encoded(as: .jpeg, keeping: [])
        #expect(image.bytes(of: "exif-data")?.isEmpty == false && image.has(field: "exif-ifd0-ImageDescription"))
    }

    @Test func rejectsStripAndKeepOptions() throws {
        for option in ["strip", "keep"] {
            let error = #expect(throws: VipsError.self) { try Self.taggedImage().encoded(as: .png, [option: true]) }
            #expect(error?.code == .misuse)
        }
    }
}
