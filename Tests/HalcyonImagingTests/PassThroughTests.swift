import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// JPEGs and WebPs whose pixels pass through because the job requests no change.
@Suite(.limitedParallelism) struct PassThroughTests {
    static func natural(_ change: (inout Variant) -> Void = { _ in }) -> Variant {
        var variant = Variant(sizing: Sizing(goal: .sizer(.natural)))
        change(&variant)
        return variant
    }

    /// A file of quality 97, whose pixels would change if it were encoded again.
    static func photo(progressive: Bool = false) async throws -> [UInt8] {
        let pixels = try Pixels(try await InvalidInputTests.photo(.jpeg))
        return try await onRenderThread {
            try Image(pixels: pixels.bytes, width: pixels.width, height: pixels.height, bands: pixels.bands)
                .encoded(as: .jpeg, ["Q": 97, "interlace": .bool(progressive)], keeping: [])
        }
    }

    @Test(arguments: [false, true])
    func passesJPEGsWithoutMetadata(progressive: Bool) async throws {
        let plain = try await Self.photo(progressive: progressive)
        let metadata = Array("a place".utf8)
        let exif = withEXIF(
            plain, orientation: 1, more: [segment(0xfe, metadata), segment(0xe7, metadata), segment(0xed, metadata)])
        let source = exif + metadata
        for variant in [
            Self.natural(), Self.natural { $0.output.format = .jpeg }, Self.natural { $0.sizing.goal = .original },
            Self.natural { $0.findings = [.blurhash] }, filling(640, 480, as: .jpeg),
        ] {
            let image = try await render(source, variant)
            #expect(image.body == plain && image.format == .jpeg && image.size == PixelSize(width: 640, height: 480))
            #expect((image.blurhash != nil) == variant.findings.contains(.blurhash))
        }
    }

    /// A WebP file of an extended header for 640×480 pixels and these chunks.
    static func webP(flags: UInt8, _ chunks: [(tag: String, body: [UInt8])]) -> [UInt8] {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(value >> (8 * $0) & 0xff) } }
        let header = ("VP8X", [flags, 0, 0, 0] + number(639, 3) + number(479, 3))
        var body: [UInt8] = []
        for (tag, content) in [header] + chunks {
            body += Array(tag.utf8) + number(content.count, 4) + content
            if content.count % 2 == 1 { body.append(0) }
        }
        return Array("RIFF".utf8) + number(body.count + 4, 4) + Array("WEBP".utf8) + body
    }

    @Test func passesWebPsWithoutMetadata() async throws {
        let pixels = try Pixels(try await InvalidInputTests.photo(.jpeg))
        let plain = try await onRenderThread {
            try Image(pixels: pixels.bytes, width: pixels.width, height: pixels.height, bands: pixels.bands)
                .encoded(as: .webp, ["Q": 60], keeping: [])
        }
        let picture = ("VP8 ", Array(plain[38...]))
        #expect(plain == Self.webP(flags: 0, [picture]))
        let source =
            Self.webP(
                flags: 0b1100, [picture, ("EXIF", [1, 2, 3]), ("XMP ", [4]), ("junk", [5, 6])]) + Array("behind".utf8)
        for variant in [Self.natural(), Self.natural { $0.output.format = .webp }, filling(640, 480, as: .webp)] {
            let image = try await render(source, variant)
            #expect(image.body == plain && image.format == .webp)
            #expect(try Pixels(image.body).bytes == Pixels(plain).bytes)
        }
        for variant in [
            Self.natural { $0.output.quality = 60 }, Self.natural { $0.output.lossless = true },
            Self.natural { $0.processors = [.flip(.horizontal)] }, Self.natural { $0.output.format = .jpeg },
        ] {
            #expect(try await render(source, variant).body != plain)
        }
        let cut = await InvalidInputTests().failure(Array(source.prefix(plain.count / 2)), Self.natural())
        #expect(cut?.code == .corruptImage)
    }

    @Test func encodesAgainForRequestedChanges() async throws {
        let plain = try await Self.photo()
        let turned = withEXIF(plain, orientation: 6)
        #expect(try await render(turned, Self.natural()).size == PixelSize(width: 480, height: 640))
        for variant in [
            Self.natural { $0.output.quality = 97 }, Self.natural { $0.output.effort = 3 },
            Self.natural { $0.output.progressive = true }, Self.natural { $0.output.stripMetadata = false },
            Self.natural { $0.processors = [.flip(.horizontal)] }, filling(639, 480, as: .jpeg),
            Self.natural { $0.sizing.cropRect = CropRect(x: 0, y: 0, width: 0.5, height: 1) },
            Self.natural { $0.output.format = .webp },
        ] {
            #expect(try await render(plain, variant).body != plain)
        }
    }

    @Test func appliesProfilesUnlessKept() async throws {
        let wide = try await OutputTests.plain([200, 100, 50], in: "p3", as: .jpeg)
        let converted = try await renderedPixels(wide, Self.natural { $0.output.format = .jpeg })
        #expect(zip(converted[20, 20], [200, 100, 50]).allSatisfy { abs($0 - $1) <= 6 })
        let kept = try await render(wide, Self.natural { $0.output.keepProfile = true })
        #expect(try Pixels(kept.body).bytes == Pixels(wide).bytes)
        #expect(
            try EncodedImage(kept.body).open().bytes(of: "icc-profile-data")
                == EncodedImage(wide).open().bytes(of: "icc-profile-data"))
    }

    @Test func rejectsTruncatedFiles() async throws {
        let plain = try await Self.photo()
        let failure = await InvalidInputTests().failure(Array(plain.prefix(plain.count / 2)), Self.natural())
        #expect(failure?.code == .corruptImage)
    }
}
