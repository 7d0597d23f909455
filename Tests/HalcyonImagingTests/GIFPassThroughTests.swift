import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging
@testable import MalformedImages

/// GIFs whose frames pass through because the job requests no change.
@Suite(.limitedParallelism) struct GIFPassThroughTests {
    private static let secret = text("a secret place")

    /// An extension (GIF89a, section 23) of these blocks.
    private static func ext(_ label: UInt8, _ blocks: [UInt8]...) -> [UInt8] {
        let contents: [UInt8] = blocks.flatMap { [UInt8($0.count)] + $0 }
        return [0x21, label] + contents + [0]
    }

    private static func repeated(_ count: Int, by application: String = "NETSCAPE2.0") -> [UInt8] {
        ext(0xff, text(application), [1] + little(count, 2))
    }

    private static let comment = ext(0xfe, secret, secret)
    private static let xmp = ext(0xff, text("XMP DataXMP"), secret)
    private static let profile = ext(0xff, text("ICCRGBG1012"), secret)
    /// A delay of 0.2 s, after which the canvas is cleared.
    private static let control = ext(0xf9, [2 << 2] + little(20, 2) + [0])

    /// Frames in an encoding that no encoder here would choose: one that covers the canvas, and others in its middle.
    private static func gif(_ repeated: [UInt8] = [], extra: [UInt8] = [], frames: Int = 2) -> [UInt8] {
        let first = control + extra + GIFFile.frame(60, 40)
        let others = (1..<frames).flatMap { _ in extra + control + GIFFile.frame(20, 10, x: 30, y: 20) }
        return GIFFile.canvas(60, 40) + extra + repeated + first + others + extra + GIFFile.end
    }

    private static func natural(_ change: (inout Variant) -> Void = { _ in }) -> Variant {
        PassThroughTests.natural {
            $0.output.format = .gif
            change(&$0)
        }
    }

    private static func frames(_ body: [UInt8]) async throws -> [[Int]] {
        try await onRenderThread {
            let strip = try AnimationTests.strip(body)
            return [
                try strip.pixels().map(Int.init), strip.frameDelays,
                [strip.loopCount ?? -1, strip.width, strip.pageHeight],
            ]
        }
    }

    @Test(arguments: [1, 2, 5], ["NETSCAPE2.0", "ANIMEXTS1.0"])
    func removesMetadataAndKeepsFrames(_ frames: Int, _ application: String) async throws {
        let repeated = Self.repeated(7, by: application)
        let plain = Self.gif(repeated, frames: frames)
        let extra = Self.comment + Self.xmp + Self.profile + Self.ext(0xc3, [9])
        let tagged = Self.gif(repeated, extra: extra, frames: frames)
        // libnsgif looks for a frame after the trailer if an extension precedes it.
        for source in [plain, plain + Self.secret, tagged] {
            for variant in [Self.natural(), Self.natural { $0.sizing.goal = .original }, filling(60, 40, as: .gif)] {
                let image = try await render(source, variant)
                #expect(image.body == plain && image.format == .gif && image.frames == (frames > 1 ? frames : nil))
                #expect(image.size == PixelSize(width: 60, height: 40))
            }
            #expect(try await Self.frames(source) == Self.frames(plain))
        }
        let automatic = try await render(tagged, PassThroughTests.natural())
        #expect(frames > 1 ? automatic.body == plain : automatic.format == .png)
    }

    @Test func passesEncodedAnimationsUnchanged() async throws {
        let plain = try await AnimationTests.animation(as: .gif)
        let start = 13 + (plain[10] & 0x80 == 0 ? 0 : 3 << (Int(plain[10] & 7) + 1))
        let source = Array(plain[..<start]) + Self.comment + plain[start...] + Self.secret
        let image = try await render(source, PassThroughTests.natural())
        #expect(image.body == plain && image.frames == 4)
        let found = try await Self.frames(image.body)
        #expect(try await found == Self.frames(source) && found[1] == [50, 60, 70, 80] && found[2][0] == 3)
    }

    @Test func keepsOnlyTheLoopCountOfExtensions() async throws {
        // The size of a buffer precedes the loop count.
        let both = Self.ext(0xff, text("NETSCAPE2.0"), [2, 0, 1, 0, 0], [1, 3, 0], Self.secret)
        let none = Self.ext(0xff, text("NETSCAPE2.0"), Self.secret)
        let short = Self.ext(0xff, text("NETSCAPE"), [1, 3, 0])
        #expect(try await render(Self.gif(both + none + short), Self.natural()).body == Self.gif(Self.repeated(3)))
    }

    @Test func keepsTheProfileOnRequest() async throws {
        let kept = Self.natural { $0.output.keepProfile = true }
        #expect(try await render(Self.gif(Self.xmp + Self.profile), kept).body == Self.gif(Self.profile))
    }

    @Test func encodesAgainForRequestedChanges() async throws {
        let source = Self.gif(Self.repeated(7))
        for variant in [
            Self.natural { $0.output.quality = 80 }, Self.natural { $0.output.effort = 3 },
            Self.natural { $0.output.frames = 1 }, Self.natural { $0.output.stripMetadata = false },
            Self.natural { $0.background = .black }, Self.natural { $0.output.format = .webp },
            Self.natural { $0.processors = [.flip(.horizontal)] }, filling(59, 40, as: .gif),
        ] {
            #expect(try await render(source, variant).body != source)
        }
    }

    /// Decoders and specifications differ in how they show these files, or a file contradicts its header.
    @Test func doesNotPassAmbiguousFiles() async throws {
        let frame = GIFFile.frame(60, 40)
        let canvas = GIFFile.canvas(60, 40)
        let written = Self.ext(0x01, [UInt8](repeating: 0, count: 12), Self.secret)
        for source in [
            canvas + written + frame + GIFFile.end,
            canvas + frame + GIFFile.frame(30, 30, x: 40, y: 20) + GIFFile.end,
            canvas + Self.ext(0xf9, [0, 0, 0]) + frame + GIFFile.end,
        ] {
            #expect(EncodedImage.passed(source) == nil)
            let image = try? await render(source, Self.natural())
            #expect(image?.body != source)
        }
        // libnsgif takes 640×480 for the size of a screen, and uses the size of the frame for the canvas.
        let screen = GIFFile.canvas(640, 480) + frame + GIFFile.end
        let isBelieved = try EncodedImage(screen).open().width == 640
        #expect((EncodedImage.passed(screen) != nil) == isBelieved)
        for cut in 1..<Self.gif().count {
            #expect(EncodedImage.passed(Self.gif().cut(cut), as: Self.gif()) == nil, "without \(cut) bytes")
        }
    }

    @Test func damagedFilesNeverGrow() async throws {
        let source = Self.gif(Self.repeated(7), extra: Self.comment + Self.xmp)
        try await onRenderThread {
            let header = try EncodedImage(source).open()
            for offset in 6..<source.count {
                for byte in [0, 1, 3, 0x21, 0x2c, 0x3b, 0x7f, 0xff, source[offset] ^ 1, source[offset] ^ 0x80] {
                    guard let file = try? EncodedImage(source.with([byte], at: offset)),
                        let passed = file.withoutMetadata(of: header, keepingProfile: false)
                    else { continue }
                    #expect(passed.count <= source.count, "\(byte) at \(offset)")
                }
            }
        }
    }
}

extension EncodedImage {
    /// Returns the file without metadata, checked against the header of `other`, or against its own.
    static func passed(_ bytes: [UInt8], as other: [UInt8]? = nil, keepingProfile: Bool = false) -> [UInt8]? {
        guard let file = try? EncodedImage(bytes), let header = try? EncodedImage(other ?? bytes).open() else {
            return nil
        }
        return file.withoutMetadata(of: header, keepingProfile: keepingProfile)
    }
}
