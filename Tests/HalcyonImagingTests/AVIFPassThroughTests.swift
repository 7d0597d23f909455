import Glibc
import HalcyonModel
import TestSupport
import Testing
import Vips

import struct Foundation.Data

@testable import HalcyonImaging
@testable import MalformedImages

/// AVIFs whose pixels pass through because the job requests no change.
@Suite(.limitedParallelism) struct AVIFPassThroughTests {
    private static let secret = "a secret"
    /// EXIF (CIPA DC-008) of one tag, the description.
    private static let exif =
        text("II*\0") + [8, 0, 0, 0, 1, 0, 0x0e, 1, 2, 0, 15, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        + text("a secret place\0")
    private static let xmp = text("<x:xmpmeta xmlns:x='adobe:ns:meta/'>a secret thought</x:xmpmeta>")

    private static func natural(_ change: (inout Variant) -> Void = { _ in }) -> Variant {
        PassThroughTests.natural {
            $0.output.format = .avif
            change(&$0)
        }
    }

    /// A file written by libheif, with metadata, and with a profile if one is named.
    private static func written(
        bands: Int = 3, profile: String? = nil
    ) async throws -> [UInt8] {
        try await onRenderThread {
            let pixels = (0..<90 * 70 * bands).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
            var header: [String: HeaderValue] = [
                "exif-data": .bytes(text("Exif\0\0") + exif), "xmp-data": .bytes(xmp),
            ]
            if let profile {
                header["icc-profile-data"] = .bytes(
                    try Operation.call("profile_load", ["name": .string(profile)]).bytes("profile"))
            }
            let coding: Operation.Arguments = ["compression": "av1", "effort": 0, "Q": 60]
            return try Image(pixels: pixels, width: 90, height: 70, bands: bands).with(header: header)
                .encoded(as: .heif, coding)
        }
    }

    private static func holdsSecret(_ bytes: [UInt8]) -> Bool { Data(bytes).firstRange(of: secret.utf8) != nil }

    /// Expects that a file passes through with the same pixels and without the secret.
    @discardableResult private func expectPassThrough(_ source: [UInt8], keepingProfile: Bool = false) async throws
        -> [UInt8]
    {
        let variant = Self.natural { $0.output.keepProfile = keepingProfile }
        let image = try await render(source, variant)
        let passed = try #require(EncodedImage.passed(source, keepingProfile: keepingProfile))
        #expect(image.body == passed && image.format == .avif && !Self.holdsSecret(passed))
        let (original, result) = try await onRenderThread { (try Pixels(source), try Pixels(passed)) }
        #expect(result.bytes == original.bytes && result.bands == original.bands)
        #expect(image.size == PixelSize(width: result.width, height: result.height))
        // A second pass changes nothing.
        #expect(EncodedImage.passed(passed, keepingProfile: keepingProfile) == passed)
        return passed
    }

    @Test(arguments: [1, 2, 3, 4]) func removesMetadataAndKeepsPixels(bands: Int) async throws {
        let source = try await Self.written(bands: bands)
        #expect(Self.holdsSecret(source))
        let passed = try await expectPassThrough(source)
        let header = try EncodedImage(passed).open()
        #expect(!header.has(field: "exif-data") && !header.has(field: "xmp-data"))
        #expect(passed.count < source.count - Self.exif.count - Self.xmp.count)
        for variant in [
            Self.natural { $0.sizing.goal = .original }, Self.natural { $0.findings = [.blurhash] },
            filling(90, 70, as: .avif),
        ] {
            #expect(try await render(source, variant).body == passed)
        }
        #expect(EncodedImage.passed(source + text("behind")) == nil)
    }

    @Test func encodesAgainForRequestedChanges() async throws {
        let source = try await Self.written(bands: 4)
        let passed = try await expectPassThrough(source)
        for variant in [
            Self.natural { $0.output.quality = 60 }, Self.natural { $0.output.effort = 3 },
            Self.natural { $0.output.lossless = true }, Self.natural { $0.output.stripMetadata = false },
            Self.natural { $0.processors = [.flip(.horizontal)] }, Self.natural { $0.background = .black },
            filling(89, 70, as: .avif), Self.natural { $0.output.format = .png },
        ] {
            #expect(try await render(source, variant).body != passed)
        }
    }

    @Test func removesAnSRGBProfileUnlessKept() async throws {
        let source = try await Self.written(profile: "srgb")
        let kept = try EncodedImage(try await expectPassThrough(source, keepingProfile: true)).open()
        #expect(kept.bytes(of: "icc-profile-data") == (try EncodedImage(source).open().bytes(of: "icc-profile-data")))
        #expect(!(try EncodedImage(try await expectPassThrough(source)).open().has(field: "icc-profile-data")))
    }

    @Test func appliesOtherProfilesUnlessKept() async throws {
        let source = try await Self.written(profile: "p3")
        let kept = try EncodedImage(try await expectPassThrough(source, keepingProfile: true)).open()
        #expect(kept.bytes(of: "icc-profile-data") == (try EncodedImage(source).open().bytes(of: "icc-profile-data")))
        let converted = try await render(source, Self.natural()).body
        #expect(try await onRenderThread { try Pixels(converted).bytes != Pixels(source).bytes })
        #expect(!(try EncodedImage(converted).open().has(field: "icc-profile-data")))
    }

    @Test func encodesTenBitsAsEight() async throws {
        let digits = Self.tenBits.utf8.map { $0 < 0x40 ? $0 - 0x30 : $0 - 0x57 }
        let source = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        let image = try await render(source, Self.natural())
        #expect(try EncodedImage(source).open().sampleFormat == .uint16)
        #expect(try EncodedImage(image.body).open().sampleFormat == .uint8)
    }

    // 16×16 pixels, made by `avifenc -s 6 -d 10 --min 50 --max 63`: libheif 1.15 writes no more than 8 bits.
    private static let tenBits =
        """
        00000020667479706176696600000000617669666d6966316d6961664d413141000000f26d65746100000000000000286864\
        6c720000000000000000706963740000000000000000000000006c696261766966000000000e7069746d0000000000010000\
        001e696c6f6300000000440000010001000000010000011a000000160000002869696e660000000000010000001a696e6665\
        020000000001000061763031436f6c6f72000000006a697072700000004b6970636f00000014697370650000000000000010\
        00000010000000107069786900000000030a0a0a0000000c617631438120400000000013636f6c726e636c780001000d0006\
        800000001769706d610000000000000001000104010283040000001e6d64617412000a08380cffd8c04341a432081e003fff\
        ffc50005
        """

    // MARK: Other layouts

    @Test func acceptsLargeItemIDs() async throws {
        var file = AVIFFile(try AV1Image(64, 48))
        file.describe(0x1_0005, "Exif", zeros(4) + Self.exif)
        file.describe(0x1_0006, "mime", Self.xmp)
        file.idSize = 4
        file.unused = text(Self.secret)
        file.moreOutside = HEIFFile.box("free", text(Self.secret)) + HEIFFile.box("uuid", zeros(16) + text(Self.secret))
        file.moreInside = HEIFFile.box("free", text(Self.secret))
        try await expectPassThrough(file.bytes)
    }

    /// Alpha, a depth map and a thumbnail.
    @Test func keepsAlphaAndRemovesOtherAuxiliaryImages() async throws {
        let (color, grey) = (try AV1Image(64, 48), try AV1Image(64, 48, bands: 1, seed: 3))
        for alpha in ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"] {
            var file = AVIFFile(color)
            file.properties += grey.properties
            for kind in [alpha, "urn:mpeg:mpegB:cicp:systems:auxiliary:depth"] {
                file.properties.append(AVIFFile.full("auxC", 0, text(kind) + [0]))
            }
            file.items.append(.init(id: 2, data: grey.data, properties: [5, 0x86, 7, 8, 9]))
            file.items.append(.init(id: 3, data: grey.data + [0], properties: [5, 0x86, 7, 8, 10]))
            file.items.append(.init(id: 4, data: color.data + [0], properties: [1, 0x82, 3, 4]))
            file.references = [("auxl", 2, [1]), ("auxl", 3, [1]), ("thmb", 4, [1]), ("prem", 1, [2])]
            file.describe(5, "Exif", zeros(4) + Self.exif)
            let passed = try await expectPassThrough(file.bytes)
            #expect(try EncodedImage(passed).open().hasAlpha)
            for word in ["auxl", "prem", alpha] { #expect(passed.offset(of: word) > 0) }
            #expect(passed.count < 2 * color.data.count + 2 * grey.data.count)
        }
    }

    /// A grid of two images, with its own data in `idat` or not, and each image in one extent or in several.
    @Test(arguments: [true, false], [1, 3]) func keepsGrids(_ isInDescription: Bool, _ parts: Int) async throws {
        let tiles = [try AV1Image(64, 64), try AV1Image(64, 64, seed: 5)]
        var file = AVIFFile()
        file.properties = tiles[0].properties + [AVIFFile.full("ispe", 0, big(128, 4) + big(64, 4))]
        file.items = [
            .init(
                id: 1, type: "grid", data: [0, 0, 0, 1] + big(128, 2) + big(64, 2), properties: [5, 4, 1],
                isInDescription: isInDescription),
            .init(id: 2, data: tiles[0].data, properties: [0x82, 3, 4], parts: parts),
            .init(id: 3, data: tiles[1].data, properties: [0x82, 3, 4], parts: parts),
        ]
        file.references = [("dimg", 1, [2, 3])]
        file.describe(4, "Exif", zeros(4) + Self.exif)
        file.unused = text(Self.secret)
        let passed = try await expectPassThrough(file.bytes)
        #expect(try EncodedImage(passed).open().width == 128)
    }

    /// Encoders write identical tiles once.
    @Test func acceptsTilesThatShareBytes() async throws {
        let tile = try AV1Image(64, 64)
        var file = AVIFFile()
        file.properties = tile.properties + [AVIFFile.full("ispe", 0, big(128, 4) + big(64, 4))]
        file.items = [
            .init(id: 1, type: "grid", data: [0, 0, 0, 1] + big(128, 2) + big(64, 2), properties: [5, 4, 1]),
            .init(id: 2, data: tile.data, properties: [0x82, 3, 4]),
            .init(id: 3, data: tile.data, properties: [0x82, 3, 4]),
        ]
        file.references = [("dimg", 1, [2, 3])]
        let whole = file.bytes
        // The third item gets the location of the second.
        let entry = whole.offset(of: "iloc") + 12 + 32
        let shared = whole.with(Array(whole[entry - 8..<entry]), at: entry + 8)
        let passed = try await expectPassThrough(shared)
        #expect(passed.count < whole.count - tile.data.count + 100)
    }

    @Test(arguments: 0...3) func keepsRotationAndMirroring(quarters: Int) async throws {
        var file = AVIFFile(try AV1Image(64, 48))
        file.properties += [HEIFFile.box("irot", [UInt8(quarters)]), HEIFFile.box("imir", [1])]
        file.items[0].properties += [0x85, 0x86]
        let passed = try await expectPassThrough(file.bytes)
        #expect(try EncodedImage(passed).open().width == (quarters % 2 == 0 ? 64 : 48))
        #expect(passed.offset(of: "irot") > 0 && passed.offset(of: "imir") > 0)
    }

    /// The orientation of an AVIF is not in EXIF (MIAF, section 7.3.7).
    @Test func ignoresTheEXIFOrientation() async throws {
        var file = AVIFFile(try AV1Image(64, 48))
        let turned: [UInt8] = [0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0]
        file.describe(2, "Exif", zeros(4) + text("II*\0") + [8, 0, 0, 0, 1, 0] + turned + zeros(4))
        let passed = try await expectPassThrough(file.bytes)
        #expect(try EncodedImage(passed).open().width == 64)
    }

    @Test func removesDescriptiveProperties() async throws {
        var file = AVIFFile(try AV1Image(64, 48))
        file.properties.insert(AVIFFile.full("udes", 0, text("en\0a secret\0\0\0")), at: 0)
        file.items[0].properties = [1, 2, 0x83, 4, 5]
        try await expectPassThrough(file.bytes)
    }

    // MARK: Refusals

    private static func with(_ change: (inout AVIFFile) throws -> Void) throws -> [UInt8] {
        var file = AVIFFile(try AV1Image(64, 48))
        file.describe(2, "Exif", zeros(4) + exif)
        try change(&file)
        return file.bytes
    }

    @Test func doesNotPassUnsupportedLayouts() throws {
        let plain = try Self.with { _ in }
        #expect(EncodedImage.passed(plain) != nil)
        let first = plain.offset(of: "iloc") + 12
        let color = plain.offset(of: "nclx") + 4
        let (large, length) = (big(0x7fff_ffff, 4), try AV1Image(64, 48).data.count)
        let changed: [(String, [UInt8])] = [
            ("a sequence", try Self.with { $0.moreOutside = HEIFFile.box("moov", zeros(8)) }),
            ("the brand of a sequence", try Self.with { $0.brands = "avifmif1avis" }),
            ("another brand", plain.with(text("mif1"), at: 8).with(text("mif1"), at: 16)),
            ("two `meta` boxes", try Self.with { $0.moreOutside = AVIFFile.full("meta", 0, []) }),
            ("groups", try Self.with { $0.moreInside = HEIFFile.box("grpl", []) }),
            ("two lists of items", try Self.with { $0.moreInside = AVIFFile.full("iinf", 0, zeros(2)) }),
            ("items made of items", plain.with([2], at: first + 3)),
            ("data in another file", plain.with([1], at: first + 5)),
            ("no extents", plain.with(zeros(2), at: first + 6)),
            ("a location after the end", plain.with(large, at: first + 8)),
            ("a location before the data", plain.with(big(16, 4), at: first + 8)),
            ("a length beyond the end", plain.with(large, at: first + 12)),
            ("a length of zero", plain.with(zeros(4), at: first + 12)),
            ("a length into the metadata", plain.with(big(length + 1, 4), at: first + 12)),
            ("metadata inside the image", plain.with(Array(plain[first + 8..<first + 16]), at: first + 24)),
            ("a protected item", plain.with([0, 1], at: plain.offset(of: "infe") + 10)),
            ("an HEVC image", plain.with(text("hvc1"), at: plain.offset(of: "infe") + 12)),
            ("a wrong size", plain.with(big(65, 4), at: plain.offset(of: "ispe") + 8)),
            ("the primaries of BT.2020", plain.with([0, 9], at: color)),
            ("the transfer function of PQ", plain.with([0, 16], at: color + 2)),
            ("colors of an unknown type", plain.with(text("abcd"), at: color - 4)),
            ("a missing property", plain.with([0x7f], at: plain.offset(of: "ipma") + 15)),
            (
                "an unknown essential property",
                try Self.with {
                    $0.properties.append(HEIFFile.box("abcd", []))
                    $0.items[0].properties.append(0x85)
                }
            ),
            (
                "a clean aperture",
                try Self.with {
                    $0.properties.append(HEIFFile.box("clap", zeros(32)))
                    $0.items[0].properties.append(5)
                }
            ),
            ("a layered image", try Self.with { $0.references.append(("base", 1, [2])) }),
            (
                "missing tiles",
                try Self.with { $0.references.append(("dimg", 1, [77])) }
            ),
            ("tiles of metadata", try Self.with { $0.references.append(("dimg", 1, [2])) }),
        ]
        for (name, file) in changed {
            #expect(file != plain, "\(name)")
            #expect(EncodedImage.passed(file, as: plain) == nil, "\(name)")
        }
        // Other primaries are allowed if the profile is kept.
        #expect(EncodedImage.passed(plain.with([0, 9], at: color), as: plain, keepingProfile: true) != nil)
    }

    /// An image whose data declares other colors than its sRGB profile would look different without the profile.
    @Test func doesNotPassAProfileThatContradictsTheData() throws {
        let profile = try Operation.call("profile_load", ["name": "srgb"]).bytes("profile")
        let picture = try AV1Image(64, 48, colors: false)
        let file = AVIFFile(picture, profile: profile).bytes
        #expect(EncodedImage.passed(file) != nil)
        // The sequence header has a flag for the description of colors. Without it the colors are unknown.
        let data = file.offset(of: "mdat") + 4
        var unknown = file
        for offset in data..<data + 8 where file[offset] >> 3 == 1 { unknown[offset] = 0x7a }
        #expect(unknown != file && EncodedImage.passed(unknown, as: file) == nil)
        #expect(EncodedImage.passed(unknown, as: file, keepingProfile: true) != nil)
    }

    @Test func doesNotPassTruncatedFiles() async throws {
        let whole = try await Self.written(bands: 4)
        for count in 12..<whole.count { #expect(EncodedImage.passed(whole.first(count), as: whole) == nil) }
        let failure = await InvalidInputTests().failure(whole.fraction(0.5), Self.natural())
        #expect(failure?.code == .corruptImage)
    }

    /// No change of a byte causes a trap or passes metadata.
    @Test func damagedFilesNeverPassMetadata() async throws {
        var layouts = [try await Self.written(bands: 4), try Self.with { $0.idSize = 4 }]
        layouts.append(try Self.with { $0.items[1].isInDescription = true })
        for source in layouts {
            let end = source.offset(of: "mdat") + 4
            try await onRenderThread {
                let header = try EncodedImage(source).open()
                for offset in 8..<end {
                    for byte in [
                        0, 1, 2, 0x7f, 0x80, 0xff, source[offset] ^ 1, source[offset] &+ 1, source[offset] ^ 0x40,
                    ] {
                        guard let file = try? EncodedImage(source.with([byte], at: offset)),
                            let passed = file.withoutMetadata(of: header, keepingProfile: false)
                        else { continue }
                        #expect(!Self.holdsSecret(passed), "\(byte) at \(offset)")
                    }
                }
            }
        }
    }

    /// The processor time of this thread, which does not depend on the load of the machine.
    private static func threadTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test func rejectsLongListsQuickly() throws {
        let plain = try Self.with { _ in }
        for file in [
            try Self.with { $0.moreOutside = (0..<100_000).flatMap { _ in HEIFFile.box("free", []) } },
            try Self.with { $0.properties += (0..<100_000).map { _ in HEIFFile.box("abcd", []) } },
            try Self.with { file in file.references += (0..<30_000).map { ("cdsc", $0, [1]) } },
        ] {
            let start = Self.threadTime()
            #expect(EncodedImage.passed(file, as: plain) == nil)
            #expect(Self.threadTime() - start < .seconds(5))
        }
    }
}
