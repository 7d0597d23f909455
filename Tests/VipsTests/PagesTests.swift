import TestSupport
import Testing

@testable import Vips

@Suite(.limitedParallelism) struct PagesTests {
    static let colors: [[Double]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255]]

    static func animation(loop: Int = 3) throws -> Image {
        let frames = try colors.map { try Image(color: $0, width: 30, height: 20) }
        return try Image.strip(frames, delays: [100, 250, 40], loop: loop)
    }

    @Test(arguments: [Format.gif, .webp])
    func animationsRoundTrip(_ format: Format) throws {
        for loop in [0, 3] {
            let options: Operation.Arguments = format == .webp ? ["lossless": true] : ["dither": 0]
            let file = try EncodedImage(Self.animation(loop: loop).encoded(as: format, options))
            let all = try file.open(["n": -1])
            #expect((all.width, all.height, all.pageHeight, all.pages, all.frames) == (30, 60, 20, 3, 3))
            #expect(all.frameDelays == [100, 250, 40])
            #expect(all.loopCount == loop)
            for (index, color) in Self.colors.enumerated() {
                let frame = try all.page(index)
                #expect((frame.height, frame.pageHeight, frame.frames, frame.pages) == (20, 20, 1, 1))
                #expect(frame.frameDelays.isEmpty && frame.loopCount == nil)
                #expect(try frame.samples(x: 15, y: 10).prefix(3) == color[...])
            }
            let second = try file.open(["page": 1])
            #expect((second.height, second.frames, second.pages) == (20, 1, 3))
            #expect(try second.samples(x: 15, y: 10).prefix(3) == [0, 255, 0])
        }
    }

    @Test func readsFramesInOrderFromASequentialImage() throws {
        let file = try EncodedImage(Self.animation().encoded(as: .gif, ["dither": 0]))
        let all = try file.open(["n": -1, "access": "sequential"])
        for index in 0..<3 {
            #expect(try all.page(index).averages().prefix(3) == Self.colors[index][...])
        }
    }

    @Test func readsTIFFPagesAsFrames() throws {
        let file = try EncodedImage(Self.animation().encoded(as: .tiff, ["page-height": 20]))
        #expect(try file.open().pages == 3)
        let all = try file.open(["n": -1])
        #expect((all.frames, all.pageHeight) == (3, 20))
        #expect(try all.page(2).samples(x: 0, y: 0) == [0, 0, 255])
    }

    @Test func stillImageHasOneFrame() throws {
        let still = try EncodedImageTests.testImage()
        #expect((still.pages, still.frames, still.pageHeight) == (1, 1, 40))
        #expect(still.frameDelays.isEmpty && still.loopCount == nil)
        #expect(try still.page(0).pixels() == still.pixels())
        let alone = try Image.strip([still])
        #expect((alone.frames, alone.loopCount) == (1, 0))
    }

    @Test func rejectsMismatchedFramesAndInvalidPages() throws {
        let still = try EncodedImageTests.testImage()
        let small = try Image(color: [1, 2, 3], width: 30, height: 40)
        func isMisuse(_ attempt: () throws -> Image) -> Bool {
            do {
                _ = try attempt()
                return false
            } catch {
                return (error as? VipsError)?.code == .misuse
            }
        }
        #expect(isMisuse { try Image.strip([]) })
        #expect(isMisuse { try Image.strip([still, small]) })
        #expect(isMisuse { try Image.strip([still, still], delays: [10]) })
        #expect(isMisuse { try still.page(1) })
        #expect(isMisuse { try still.page(-1) })
    }

    @Test func changesTheHeaderOfACopyOnly() throws {
        let image = try EncodedImageTests.testImage()
        let changed = try image.with(header: [
            "orientation": 6, "delay": .ints([1, 2]), "loop": 7, "page-height": 20,
            "xmp-data": .bytes([1, 2, 3]), "image-description": .text("a card"),
        ])
        #expect((changed.orientation, changed.loopCount, changed.pageHeight) == (6, 7, 20))
        #expect(changed.frameDelays == [1, 2])
        #expect(changed.bytes(of: "xmp-data") == [1, 2, 3])
        #expect(changed.text(of: "image-description") == "a card")
        #expect(try changed.pixels() == image.pixels())
        for field in ["orientation", "delay", "loop", "page-height", "xmp-data"] { #expect(!image.has(field: field)) }

        let less = try changed.without(fields: ["delay", "xmp-data", "no-such"])
        #expect(less.frameDelays.isEmpty && !less.has(field: "xmp-data") && less.orientation == 6)
        #expect(changed.has(field: "delay") && changed.has(field: "xmp-data"))
    }
}
