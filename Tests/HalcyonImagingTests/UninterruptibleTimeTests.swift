import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// The estimated time for which a rendering ignores cancellation.
@Suite(.limitedParallelism) struct UninterruptibleTimeTests {
    static func unstoppable(_ source: [UInt8], _ variants: Variant...) throws -> Duration {
        try Renderer().plan(EncodedImage(source), variants).unstoppable
    }

    @Test func isZeroForInterruptibleCodecs() async throws {
        for format in [Format.jpeg, .png, .tiff] {
            let source = try await InvalidInputTests.photo(format)
            for output in [ImageFormat.jpeg, .png, .tiff] {
                #expect(try Self.unstoppable(source, filling(3000, 3000, as: output)) == .zero)
            }
        }
    }

    @Test func growsWithThePixelsForOtherCodecs() async throws {
        let jpeg = try await InvalidInputTests.photo(.jpeg)
        let small = try Self.unstoppable(jpeg, filling(400, 300, as: .webp))
        let large = try Self.unstoppable(jpeg, filling(4000, 3000, as: .webp))
        #expect(small > .zero && large == small * 100)
        #expect(try Self.unstoppable(jpeg, filling(400, 300, as: .webp), filling(4000, 3000, as: .webp)) == large)
        #expect(try Self.unstoppable(jpeg, filling(400, 300, as: .avif)) > .seconds(60))
        var progressive = filling(400, 300, as: .jpeg)
        progressive.output.progressive = true
        #expect(try Self.unstoppable(jpeg, progressive) > .zero)
        // The size after a processor counts.
        var enlarged = filling(400, 300, as: .webp)
        enlarged.processors = [.resize(PixelSize(width: 4000, height: 3000), .none)]
        #expect(try Self.unstoppable(jpeg, enlarged) == large)

        let interlaced = try await InvalidInputTests.photo(.jpeg, progressive: true)
        let webp = try await InvalidInputTests.photo(.webp)
        for source in [interlaced, webp] { #expect(try Self.unstoppable(source, filling(10, 10, as: .jpeg)) > .zero) }
    }
}
