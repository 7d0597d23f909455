import TestSupport
import Testing

@testable import Vips

/// Small files of every format.
enum SampleFiles {
    static let svg = Array(
        """
        <svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'>\
        <rect width='40' height='20' fill='#0000ff'/><rect width='20' height='20' fill='#ff0000'/></svg>
        """.utf8)

    /// A PDF with pages of 40×20 points, red, then blue.
    static let pdf: [UInt8] = {
        let objects =
            ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>"]
            + [5, 6].map { "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 40 20] /Contents \($0) 0 R >>" }
            + ["1 0 0", "0 0 1"].map { color in
                let drawing = "\(color) rg 0 0 40 20 re f"
                return "<< /Length \(drawing.utf8.count) >>\nstream\n\(drawing)\nendstream"
            }
        var (file, offsets) = ("%PDF-1.4\n", [Int]())
        for (index, object) in objects.enumerated() {
            offsets.append(file.utf8.count)
            file += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let table = offsets.map { offset in
            String(repeating: "0", count: 10 - "\(offset)".count) + "\(offset) 00000 n \n"
        }.joined()
        let start = file.utf8.count
        file += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n\(table)"
        file += "trailer\n<< /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
        return Array(file.utf8)
    }()

    /// A red picture of 40×20 pixels, encoded with OpenJPEG.
    static let jp2: [UInt8] = [
        0x00, 0x00, 0x00, 0x0c, 0x6a, 0x50, 0x20, 0x20, 0x0d, 0x0a, 0x87, 0x0a, 0x00, 0x00, 0x00, 0x14,
        0x66, 0x74, 0x79, 0x70, 0x6a, 0x70, 0x32, 0x20, 0x00, 0x00, 0x00, 0x00, 0x6a, 0x70, 0x32, 0x20,
        0x00, 0x00, 0x00, 0x2d, 0x6a, 0x70, 0x32, 0x68, 0x00, 0x00, 0x00, 0x16, 0x69, 0x68, 0x64, 0x72,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x28, 0x00, 0x03, 0x07, 0x07, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x0f, 0x63, 0x6f, 0x6c, 0x72, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
        0xa9, 0x6a, 0x70, 0x32, 0x63, 0xff, 0x4f, 0xff, 0x51, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x28, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
        0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x07,
        0x01, 0x01, 0x07, 0x01, 0x01, 0x07, 0x01, 0x01, 0xff, 0x52, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x01,
        0x01, 0x00, 0x04, 0x04, 0x00, 0x01, 0xff, 0x5c, 0x00, 0x04, 0x40, 0x40, 0xff, 0x64, 0x00, 0x25,
        0x00, 0x01, 0x43, 0x72, 0x65, 0x61, 0x74, 0x65, 0x64, 0x20, 0x62, 0x79, 0x20, 0x4f, 0x70, 0x65,
        0x6e, 0x4a, 0x50, 0x45, 0x47, 0x20, 0x76, 0x65, 0x72, 0x73, 0x69, 0x6f, 0x6e, 0x20, 0x32, 0x2e,
        0x35, 0x2e, 0x30, 0xff, 0x90, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x31, 0x00, 0x01, 0xff,
        0x93, 0xcf, 0xb4, 0x50, 0x11, 0x50, 0x54, 0xaf, 0xff, 0x65, 0x25, 0xfe, 0x67, 0x40, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x0c, 0x24, 0x25, 0xff, 0x7f, 0x80, 0xdf, 0x80, 0x40, 0x14, 0x00, 0x5c, 0xaf,
        0xff, 0x3a, 0x4a, 0x7f, 0xff, 0xd9,
    ]

    /// A blue picture of 40×20 pixels, whose rows are padded to 120 bytes.
    static let bmp: [UInt8] =
        Array("BM".utf8) + little(54 + 2400) + little(0) + little(54) + little(40) + little(40) + little(20)
        + [1, 0, 24, 0] + little(0) + little(2400) + little(0) + little(0) + little(0) + little(0)
        + (0..<800).flatMap { _ in [255, 0, 0] as [UInt8] }

    /// An icon with the picture of a BMP file of 40×20 pixels, without a mask.
    static func icon(_ bmp: [UInt8]) -> [UInt8] {
        var picture = Array(bmp.dropFirst(14))
        // The rows of the mask count.
        picture.replaceSubrange(8..<12, with: little(40))
        return [0, 0, 1, 0, 1, 0, 40, 20, 0, 0, 1, 0, 24, 0] + little(picture.count) + little(22) + picture
    }

    static func little(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }

    static func file(_ format: Format) throws -> [UInt8] {
        switch format {
        case .svg: svg
        case .pdf: pdf
        case .jp2: jp2
        case .bmp: bmp
        case .ico: icon(bmp)
        case .heif: try EncodedImageTests.testImage().encoded(as: .heif, ["compression": "av1", "effort": 0])
        default: try EncodedImageTests.testImage().encoded(as: format)
        }
    }

    /// Files that other loaders of libvips recognize. No ``Format`` covers them.
    static let unsupported: [[UInt8]] =
        [
            "P6\n1 1\n255\nabc", "/* XPM */\nstatic char *x[] = {\"1 1 1 1\", \"a c #ff0000\", \"a\"};",
            "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\nabcd",
            "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "GIMP xcf file", "push graphic-context\nviewbox 0 0 9 9\npop graphic-context",
            "SIMPLE  =                    T", "1 2\n3 4\n", "8BPS\0\u{1}",
        ].map { Array($0.utf8) } + [
            [0x08, 0xf2, 0xa6, 0xb6] + [UInt8](repeating: 0, count: 96),  // libvips' own
            [0x76, 0x2f, 0x31, 0x01] + [UInt8](repeating: 0, count: 96),  // OpenEXR
            [0x42, 0x4d] + [UInt8](repeating: 1, count: 96),  // BMP with an unknown header
            [0, 0, 1, 0, 1, 0, 1, 1] + [UInt8](repeating: 0, count: 96),  // ICO without an image
            [0, 0, 2, 0, 1, 0, 1, 1] + [UInt8](repeating: 1, count: 96),  // a cursor
        ]
}

@Suite(.limitedParallelism) struct FormatTests {
    @Test(arguments: Format.allCases)
    func detectsEveryFormatByItsBytes(_ format: Format) throws {
        #expect(format.canLoad)
        let image = try EncodedImage(SampleFiles.file(format))
        #expect(image.format == format)
        let opened = try image.open()
        let size = format.canSave ? (60, 40) : (40, 20)
        #expect((opened.width, opened.height, opened.orientation) == (size.0, size.1, 1))
        #expect(opened.pages == (format == .pdf ? 2 : 1))
    }

    @Test func rejectsSavingInputFormats() throws {
        #expect(Format.allCases.filter { !$0.canSave } == [.svg, .pdf, .jp2, .bmp, .ico])
        for format in [Format.svg, .pdf, .jp2, .bmp, .ico] {
            let error = #expect(throws: VipsError.self) { try EncodedImageTests.testImage().encoded(as: format) }
            #expect(error?.code == .unsupportedFormat)
        }
    }

    @Test func rendersVectorFormatsAtTheRequestedSize() throws {
        let drawing = try EncodedImage(SampleFiles.svg)
        let large = try drawing.open(["scale": 2.5])
        #expect((large.width, large.height, large.bands) == (100, 50, 4))
        #expect(try large.samples(x: 10, y: 10) == [255, 0, 0, 255])
        #expect(try large.samples(x: 90, y: 10) == [0, 0, 255, 255])
        let document = try EncodedImage(SampleFiles.pdf)
        let second = try document.open(["page": 1, "dpi": 144])
        #expect((second.width, second.height, second.pages) == (80, 40, 2))
        #expect(try second.samples(x: 40, y: 20).prefix(3) == [0, 0, 255])
        let both = try document.open(["n": -1])
        #expect((both.height, both.pageHeight, both.frames) == (40, 20, 2))
        #expect(try both.page(0).samples(x: 5, y: 5).prefix(3) == [255, 0, 0])
    }

    @Test func detectsHEIFCodecs() throws {
        #expect(HEIFCodec.av1.canDecode && Format.heif.canSave)
        let image = try EncodedImage(SampleFiles.file(.heif)).open()
        #expect(image.text(of: "heif-compression") == "av1")
        #expect(try image.pixels().count == 60 * 40 * 3)
        // libheif of Debian 12 has built-in decoders. In later versions they are plugins, which may be missing.
        if VipsLibrary.version.hasPrefix("8.14.") { #expect(HEIFCodec.hevc.canDecode) }
    }

    /// Formats that this libvips can load but must not: those of ImageMagick, and those whose loaders are not fuzzed.
    @Test func otherLoadersAreBlocked() throws {
        for bytes in SampleFiles.unsupported {
            let error = #expect(throws: VipsError.self) { try EncodedImage(bytes) }
            #expect(error?.code == .unsupportedFormat, "\(bytes.prefix(12))")
        }
        // Calling their loaders by name fails too.
        let loaders = ["magickload", "openslideload", "ppmload", "vipsload", "csvload", "matrixload", "rawload"]
        for loader in loaders where VipsLibrary.has(operation: loader) {
            #expect(throws: VipsError.self) { try Operation.call(loader, ["filename": "/dev/null"]) }
            #expect(!VipsLibrary.openLoaders.contains(loader), "\(loader)")
        }
    }

    @Test func openLoadersMatchTheFormats() {
        let names = VipsLibrary.openLoaders
        let operations = Set(names.map { String($0.prefix { $0 != "_" }) })
        #expect(operations == Set(Format.allCases.filter(\.canLoad).compactMap(\.operation)), "\(names)")
    }

    // The allowed formats apply to the whole process, so each of these tests runs in its own.

    @Test func rejectsFormatsThatAreNotAllowed() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                let files = try Format.allCases.map { ($0, try SampleFiles.file($0)) }
                for allowed: Set<Format> in [
                    [.jpeg, .png], [.svg], [.pdf, .jxl, .heif], [.bmp], [.jp2, .ico], [], Set(Format.allCases),
                ] {
                    VipsLibrary.allow(allowed)
                    #expect(VipsLibrary.allowed == allowed)
                    for (format, file) in files {
                        if allowed.contains(format) {
                            #expect(try EncodedImage(file).open().inMemory().width > 0)
                        } else {
                            let error = #expect(throws: VipsError.self) { try EncodedImage(file) }
                            #expect(error?.code == .unsupportedFormat, "\(format)")
                        }
                    }
                    for bytes in SampleFiles.unsupported { #expect(throws: VipsError.self) { try EncodedImage(bytes) } }
                    #expect(
                        Set(
                            VipsLibrary.openLoaders.compactMap { name in
                                Format.allCases.first { $0.operation.map(name.hasPrefix) ?? false }
                            }) == allowed.filter { $0.operation != nil })
                    #expect(Format.png.canSave && Format.heif.canSave)
                }
            }
        }
    }

    @Test func formatsCanBeAllowedBeforeStart() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                VipsLibrary.allow([.png])
                VipsLibrary.start()
                #expect(!HEIFCodec.av1.canDecode)
                let error = #expect(throws: VipsError.self) { try EncodedImage(SampleFiles.svg) }
                #expect(error?.code == .unsupportedFormat)
                VipsLibrary.allow([.png, .heif])
                #expect(HEIFCodec.av1.canDecode)
            }
        }
    }
}
