import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Every processor on images of many sizes and kinds.
@Suite(.limitedParallelism) struct ProcessorSizeTests {
    @Test(arguments: [(1, 1), (1, 7), (7, 1), (2, 2), (3, 200), (200, 3), (41, 33)])
    func outputsHaveTheAnnouncedSize(_ width: Int, _ height: Int) async throws {
        _ = Fonts.use(folder: "/usr/share/fonts")
        let mark = try await onRenderThread { try GoldenTests.mark() }
        let assets = [GoldenCase.mark: mark, GoldenCase.other: try GoldenTests.file("other.jpg")]
        for pixel: [UInt8] in [[90], [90, 120], [10, 150, 200], [10, 150, 200, 30]] {
            let picture = Bitmap(pixel, width: width, height: height)
            for golden in GoldenCase.all {
                let size = golden.processors.reduce(picture.size) { $1.size(of: $0) }
                let result = try await onRenderThread {
                    try picture.image.processed(
                        by: golden.processors, with: ProcessingAssets(assets, within: ImageLimits()), Extensions(),
                        quality: .high
                    ).inMemory()
                        .size
                }
                #expect(result == size, "\(golden.name) on \(width)×\(height) of \(pixel.count) bands")
            }
        }
    }

    @Test func addsAlphaOnlyWhereAnnounced() async throws {
        _ = Fonts.use(folder: "/usr/share/fonts")
        let assets = [
            GoldenCase.mark: try await onRenderThread { try GoldenTests.mark() },
            GoldenCase.other: try GoldenTests.file("other.jpg"),
        ]
        for golden in GoldenCase.all where golden.input != .veiled {
            let result = try await onRenderThread {
                try GoldenTests.input(golden.input).processed(
                    by: golden.processors, with: ProcessingAssets(assets, within: ImageLimits()), Extensions(),
                    quality: .high
                ).hasAlpha
            }
            // An opaque background after a processor removes the alpha that the processor added.
            let isLost = golden.name == "several-photo"
            let makes = golden.processors.contains(where: \.makesTransparency) && !isLost
            #expect(result == makes, "\(golden.name)")
        }
    }
}
