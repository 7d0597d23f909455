import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Metadata that is kept on request. `OutputTests` shows that it is removed otherwise.
@Suite(.limitedParallelism) struct MetadataTests {
    /// A Display P3 image with an EXIF orientation and XMP.
    static func source() async throws -> [UInt8] {
        let jpeg = try await OutputTests.plain([200, 100, 50], in: "p3", as: .jpeg)
        let xmp = segment(0xe1, Array("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>a place</x:xmpmeta>".utf8))
        return withEXIF(jpeg, orientation: 6, more: [xmp])
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif])
    func keepsMetadataOnRequestWithoutTheOrientation(_ format: ImageFormat) async throws {
        var variant = filling(40, 60, as: format)
        variant.output.stripMetadata = false
        let body = try await render(try await Self.source(), variant).body
        let again = try EncodedImage(body).open()
        #expect(again.has(field: "exif-data") && again.has(field: "xmp-data"))
        #expect(again.orientation == 1, "rotated once, and not again by a viewer")
        #expect((again.width, again.height) == (40, 60))
        #expect(!again.has(field: "icc-profile-data"))
        let pixel = try Pixels(body)[20, 20]
        #expect(zip(pixel, [200, 100, 50]).allSatisfy { abs($0 - $1) <= 6 }, "\(pixel)")
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif, .tiff])
    func keepsTheProfileAndItsSamplesOnRequest(_ format: ImageFormat) async throws {
        let source = try await Self.source()
        let stored = try Pixels(source)[20, 20]
        var variant = filling(40, 60, as: format)
        variant.output.keepProfile = true
        let body = try await render(source, variant).body
        let again = try EncodedImage(body).open()
        #expect(again.bytes(of: "icc-profile-data") == (try EncodedImage(source).open().bytes(of: "icc-profile-data")))
        #expect(!again.has(field: "exif-data") && !again.has(field: "xmp-data"))
        let pixel = try Pixels(body)[20, 20]
        #expect(zip(pixel, stored).allSatisfy { abs($0 - $1) <= 6 }, "\(pixel)")
        #expect(abs(pixel[0] - 200) > 5, "the samples are in the color space of the profile")
    }

    @Test func analysesDoNotDependOnTheProfile() async throws {
        let source = try await Self.source()
        var variant = filling(40, 60, as: .png)
        variant.findings = [.dominantColor, .palette, .blurhash, .thumbhash, .phash]
        let plain = try await render(source, variant)
        variant.output.keepProfile = true
        let kept = try await render(source, variant)
        #expect(plain.dominantColor != nil && kept.dominantColor == plain.dominantColor)
        #expect(kept.palette == plain.palette && kept.phash == plain.phash)
        #expect(kept.blurhash == plain.blurhash && kept.thumbhash == plain.thumbhash)
    }

    @Test func linearLightDistinguishesOutputsByTheirProfile() async throws {
        let source = try await Self.source()
        var (plain, kept) = (filling(20, 30, as: .png), filling(20, 30, as: .png))
        (plain.linearLight, kept.linearLight, kept.output.keepProfile) = (true, true, true)
        let alone = [try await render(source, plain).sha256, try await render(source, kept).sha256]
        #expect(alone[0] != alone[1])
        #expect(try await render(source, [plain, kept]).images.map(\.sha256) == alone)
        #expect(try await render(source, [kept, plain]).images.map(\.sha256) == [alone[1], alone[0]])
    }

    @Test func convertsCMYKEvenIfTheProfileIsRequested() async throws {
        let source = try await OutputTests.plain([200, 100, 50], in: "cmyk", as: .jpeg)
        var variant = filling(40, 60, as: .png)
        variant.output.keepProfile = true
        let pixels = try await renderedPixels(source, variant)
        #expect(pixels.bands == 3)
        #expect(zip(pixels[20, 20], [200, 100, 50]).allSatisfy { abs($0 - $1) <= 12 }, "\(pixels[20, 20])")
    }
}
