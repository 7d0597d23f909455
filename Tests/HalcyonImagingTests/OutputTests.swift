import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct OutputTests {
    /// 120×80 equal pixels of 8-bit samples.
    static func plain(_ pixel: [UInt8]) throws -> Image {
        let pixels = [[UInt8]](repeating: pixel, count: 120 * 80).flatMap { $0 }
        return try Image(pixels: pixels, width: 120, height: 80, bands: pixel.count)
    }

    /// The same image as a file.
    static func plain(_ pixel: [UInt8], as format: Format) async throws -> [UInt8] {
        try await onRenderThread { try plain(pixel).encoded(as: format) }
    }

    /// The same image as a file, converted to a built-in profile of libvips, which is embedded unless `strip`.
    static func plain(_ pixel: [UInt8], in profile: String, as format: Format, strip: Bool = false) async throws
        -> [UInt8]
    {
        try await onRenderThread {
            try Operation.call(
                "icc_transform",
                ["in": .image(try plain(pixel)), "input-profile": "srgb", "output-profile": .string(profile)]
            ).image().encoded(as: format, keeping: strip ? [] : .all)
        }
    }

    @Test func automaticFormatFollowsTheSource() async throws {
        let (opaque, translucent): ([UInt8], [UInt8]) = ([200, 100, 50], [200, 100, 50, 128])
        let fill = filling(50, 50, as: nil)
        let fit = filling(50, 50, .scaleAspectFit, as: nil)
        func format(_ pixel: [UInt8], _ format: Format, _ variant: Variant) async throws -> ImageFormat {
            try await render(try await Self.plain(pixel, as: format), variant).format
        }
        #expect(try await format(opaque, .jpeg, fill) == .jpeg)
        #expect(try await format(opaque, .tiff, fill) == .jpeg)
        #expect(try await format(opaque, .jpeg, fit) == .png)
        #expect(try await format(opaque, .png, fill) == .png)
        #expect(try await format(opaque, .gif, fill) == .png)
        #expect(try await format(translucent, .png, fill) == .png)
        #expect(try await format(translucent, .tiff, fill) == .png)
        #expect(try await format(opaque, .webp, fill) == .webp)
        #expect(try await format(translucent, .webp, fit) == .webp)
    }

    @Test(arguments: ImageFormat.writable)
    func writesAndReportsEveryFormat(_ format: ImageFormat) async throws {
        let source = try await Self.plain([200, 100, 50], as: .png)
        let rendering = try await render(source, [filling(60, 40, as: format)])
        let image = rendering.images[0]
        let again = try SourceImage(EncodedImage(identifying: image.body))
        #expect(again.format == format)
        #expect(image.format == format)
        #expect(again.rawSize == PixelSize(width: 60, height: 40))
        #expect(image.size == again.rawSize)
        #expect(rendering.sourceFormat == .png)
        #expect(rendering.sourceSize == PixelSize(width: 120, height: 80))
        #expect(image.sha256.count == 64)
        let pixel = try Pixels(image.body)[30, 20]
        #expect(zip(pixel, [200, 100, 50]).allSatisfy { abs($0 - $1) <= 6 }, "\(pixel)")
    }

    @Test func keepsTransparencyOrFlattensToWhite() async throws {
        let source = try await Self.plain([200, 100, 50, 0], as: .png)
        #expect(try await renderedPixels(source, filling(60, 40, as: .png))[5, 5][3] == 0)
        #expect(try await renderedPixels(source, filling(60, 40, as: .webp))[5, 5][3] == 0)
        #expect(try await renderedPixels(source, filling(60, 40, as: .avif))[5, 5][3] == 0)
        #expect(try await renderedPixels(source, filling(60, 40, as: .jpeg))[5, 5] == [255, 255, 255])
        // The same for excess.
        let opaque = try await Self.plain([0, 0, 0], as: .png)
        let jpeg = try await renderedPixels(opaque, filling(100, 100, .scaleAspectFit, as: .jpeg))
        #expect(jpeg[50, 2].allSatisfy { $0 > 250 })
        #expect(jpeg[50, 50].allSatisfy { $0 < 5 })
    }

    @Test func keepsGrayAndAddsAlphaForExcess() async throws {
        let source = try await Self.plain([77], as: .jpeg)
        #expect(try await renderedPixels(source, filling(60, 40, as: .jpeg)).bands == 1)
        let placed = try await renderedPixels(source, filling(100, 100, .scaleAspectFit, as: .png))
        #expect(placed[50, 50] == [77, 255])
        #expect(placed[50, 0] == [0, 0])
    }

    @Test func colorsOfTransparentPixelsDoNotBleed() async throws {
        // Left half opaque red, right half invisible green.
        let pixels = (0..<100 * 100).flatMap { $0 % 100 < 50 ? [255, 0, 0, 255] : [0, 255, 0, 0] as [UInt8] }
        let source = try await onRenderThread {
            try Image(pixels: pixels, width: 100, height: 100, bands: 4).encoded(as: .png)
        }
        let output = try await renderedPixels(source, filling(33, 33))
        for x in 0..<33 where output[x, 16][3] > 0 { #expect(output[x, 16][1] == 0, "green at \(x)") }
    }

    @Test func converts16BitsTo8() async throws {
        for pixel: [UInt8] in [[200, 100, 50], [200, 100, 50, 128], [90], [90, 60]] {
            let source = try await onRenderThread {
                try Operation.call(
                    "colourspace", ["in": .image(try Self.plain(pixel)), "space": pixel.count < 3 ? "grey16" : "rgb16"]
                ).image().encoded(as: .png)
            }
            #expect(try EncodedImage(source).open().sampleFormat == .uint16)
            for variant in [filling(60, 40), filling(120, 80)] {
                let output = try await renderedPixels(source, variant)
                #expect(zip(output[20, 20], pixel).allSatisfy { abs($0 - Int($1)) <= 1 }, "\(output[20, 20])")
                #expect(output.bands == pixel.count)
            }
        }
    }

    @Test func keepsAlphaOf16BitsWithAProfile() async throws {
        for alpha in [0, 1, 60, 128, 254, 255] {
            let source = try await onRenderThread {
                try Operation.call(
                    "colourspace", ["in": .image(try Self.plain([90, UInt8(alpha)])), "space": "grey16"]
                ).image().with(header: ["icc-profile-data": .bytes(Self.greyProfile)]).encoded(as: .tiff)
            }
            let opened = try EncodedImage(source).open()
            #expect(opened.sampleFormat == .uint16 && opened.has(field: "icc-profile-data"))
            let output = try await renderedPixels(source, filling(60, 40))[20, 20]
            #expect(output.last == alpha, "\(output)")
            #expect(alpha == 0 || abs(output[0] - 90) <= 3, "\(output)")
        }
    }

    /// A minimal gray profile (ICC.1:2001-04, 6.3.2): a white point, and a gamma of 2.2.
    static let greyProfile: [UInt8] = {
        func big(_ numbers: Int...) -> [UInt8] {
            numbers.flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        }
        let white = big(0xf6d6, 0x10000, 0xd32d)
        let tags =
            big(2) + Array("wtpt".utf8) + big(156, 20) + Array("kTRC".utf8) + big(176, 16)
            + Array("XYZ ".utf8) + big(0) + white + Array("curv".utf8) + big(0, 1) + [0x02, 0x33, 0, 0]
        let header =
            big(128 + tags.count, 0, 0x0210_0000) + Array("mntrGRAYXYZ ".utf8) + big(0, 0, 0) + Array("acsp".utf8)
            + big(0, 0, 0, 0, 0, 0, 0) + white
        return header + [UInt8](repeating: 0, count: 128 - header.count) + tags
    }()

    @Test func convertsCMYKToSRGB() async throws {
        for strip in [false, true] {
            let source = try await Self.plain([200, 100, 50], in: "cmyk", as: .jpeg, strip: strip)
            let opened = try EncodedImage(source).open()
            #expect(opened.bands == 4)
            #expect(opened.has(field: "icc-profile-data") == !strip)
            let output = try await renderedPixels(source, filling(60, 40))
            #expect(output.bands == 3)
            #expect(zip(output[20, 20], [200, 100, 50]).allSatisfy { abs($0 - $1) <= 12 }, "\(output[20, 20])")
        }
    }

    @Test func appliesEmbeddedProfilesOtherThanSRGB() async throws {
        let wide = try await Self.plain([200, 100, 50], in: "p3", as: .png)
        let raw = try Pixels(wide)[20, 20]
        #expect(abs(raw[0] - 200) > 5, "the stored samples are not sRGB's: \(raw)")
        let output = try await renderedPixels(wide, filling(60, 40))[20, 20]
        #expect(zip(output, [200, 100, 50]).allSatisfy { abs($0 - $1) <= 2 }, "\(output)")

        let plain = try await Self.plain([200, 100, 50], in: "srgb", as: .png)
        let profile = try #require(try EncodedImage(plain).open().bytes(of: "icc-profile-data"))
        #expect(ICCProfile(profile).isSRGB)
        let other = try #require(try EncodedImage(wide).open().bytes(of: "icc-profile-data"))
        #expect(!ICCProfile(other).isSRGB)
        for length in 0..<200 { #expect(!ICCProfile(Array(profile.prefix(length))).isSRGB) }
    }

    @Test(arguments: ImageFormat.writable)
    func removesAllMetadata(_ format: ImageFormat) async throws {
        let jpeg = try await Self.plain([200, 100, 50], in: "p3", as: .jpeg)
        let xmp = segment(0xe1, Array("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>secret place</x:xmpmeta>".utf8))
        let iptc = segment(0xed, Array("Photoshop 3.0\08BIM\u{4}\u{4}\0\0\0\0\0\u{c}secret place".utf8))
        let comment = segment(0xfe, Array("secret place".utf8))
        let source = withEXIF(jpeg, orientation: 6, more: [xmp, iptc, comment])
        let opened = try EncodedImage(source).open()
        #expect(opened.orientation == 6)
        #expect(
            opened.has(field: "exif-data") && opened.has(field: "xmp-data") && opened.has(field: "icc-profile-data"))

        let body = try await render(source, filling(40, 60, as: format)).body
        let text = String(decoding: body, as: Unicode.ASCII.self)
        for trace in [
            "secret", "Exif", "EXIF", "xmp", "XMP ", "ICCP", "ICC_PROFILE", "iCCP", "eXIf", "8BIM", "tEXt", "iTXt",
        ] {
            #expect(!text.contains(trace), "\(trace) in a \(format)")
        }
        let again = try EncodedImage(body).open()
        #expect(again.orientation == 1)
        #expect((again.width, again.height) == (40, 60))
    }

    @Test func passesQualityAndProgressionToTheEncoder() async throws {
        let source = try await InvalidInputTests.photo(.png)
        func size(_ format: ImageFormat, _ quality: Int) async throws -> Int {
            var variant = filling(200, 150, as: format)
            variant.output.quality = quality
            return try await render(source, variant).body.count
        }
        for format in [ImageFormat.jpeg, .webp, .avif] { #expect(try await size(format, 20) < size(format, 90)) }
        var variant = filling(200, 150, as: .jpeg)
        variant.output.progressive = true
        let progressive = try await render(source, variant).body
        #expect(try EncodedImage(progressive).open().text(of: "jpeg-multiscan") == "1")
        variant = filling(200, 150, as: .webp)
        variant.output.lossless = true
        let lossless = try await renderedPixels(source, variant)
        let png = try await renderedPixels(source, filling(200, 150))
        #expect(lossless.bytes == png.bytes)
    }
}
