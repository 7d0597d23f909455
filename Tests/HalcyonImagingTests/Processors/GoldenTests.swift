import Foundation
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Compares every processor with golden images, which have been reviewed. They are written again by
/// `UPDATE_GOLDENS=1 swift test --filter GoldenTests`.
@Suite(.limitedParallelism) struct GoldenTests {
    static let folder = URL(filePath: Repository.path("Tests/HalcyonImagingTests/Processors/Goldens"))

    static func file(_ name: String) throws -> [UInt8] {
        let url = try #require(
            Bundle.module.url(forResource: name, withExtension: nil, subdirectory: "Goldens"), "no \(name)")
        return Array(try Data(contentsOf: url))
    }

    /// Returns the input of a case, made from the photograph in `Goldens`.
    static func input(_ input: GoldenCase.Input) throws -> Image {
        let photo = try EncodedImage(file("photo.webp")).open().inMemory()
        switch input {
        case .photo: return photo
        // Not the conversion of libvips, which differs between its versions.
        case .grey: return try photo.calling("extract_band", ["band": 1]).calling("copy", ["interpretation": "b-w"])
        case .veiled:
            let alpha = (0..<photo.width * photo.height).map { index -> UInt8 in
                let x = Double(index % photo.width) / Double(photo.width) - 0.5
                let y = Double(index / photo.width) / Double(photo.height) - 0.5
                return UInt8(min(max((0.3 - x * x - y * y) * 1200, 0), 255))
            }
            return try photo.joined(with: Image(pixels: alpha, width: photo.width, height: photo.height, bands: 1))
        }
    }

    /// A ring with a bar on a transparent background.
    static func mark() throws -> [UInt8] {
        var picture = Bitmap([0, 0, 0, 0], width: 96, height: 64)
        for y in 0..<64 {
            for x in 0..<96 {
                let distance = (pow(Double(x) - 31.5, 2) + pow(Double(y) - 31.5, 2)).squareRoot()
                if (18..<30).contains(distance) { picture[x, y] = [255, 210, 0, 255] }
                if x > 56, (24..<40).contains(y) { picture[x, y] = [255, 255, 255, 160] }
            }
        }
        return try picture.image.encoded(as: .png)
    }

    static func render(_ processors: [Processor], on input: GoldenCase.Input, _ quality: InterpolationQuality = .high)
        throws -> Image
    {
        _ = Fonts.use(folder: "/usr/share/fonts")
        let assets = [GoldenCase.mark: try mark(), GoldenCase.other: try file("other.jpg")]
        return try Self.input(input).processed(
            by: processors, with: ProcessingAssets(assets, within: ImageLimits()), Extensions(), quality: quality
        ).inMemory()
    }

    @Test(arguments: GoldenCase.all) func matchesTheGoldenImage(_ golden: GoldenCase) async throws {
        let file = "\(golden.name).webp"
        if ProcessInfo.processInfo.environment["UPDATE_GOLDENS"] != nil {
            let written = try await onRenderThread {
                try Self.render(golden.processors, on: golden.input)
                    .encoded(as: .webp, ["lossless": true, "effort": 6])
            }
            try Data(written).write(to: Self.folder.appending(path: file))
            return
        }
        let expected = try Self.file(file)
        #expect(expected.count <= 26_000)
        let distance = try await onRenderThread {
            let result = try Self.render(golden.processors, on: golden.input)
            let expected = try EncodedImage(expected).open()
            return try PerceptualDistance(result, expected)
        }
        #expect(try #require(distance, "the size or the alpha differs").isInvisible, "\(distance!)")
    }

    @Test func everyProcessorHasSeveralInputs() {
        let names = Set(GoldenCase.all.flatMap { $0.processors.map(\.name) })
        // Faces have to be found first: scripts/reference-images compares them with a second implementation.
        let expected = Processor.names.subtracting(["blurFaces", "pixelateFaces"])
        #expect(names == expected)
        for name in expected {
            let cases = GoldenCase.all.filter { $0.processors.contains { $0.name == name } }
            #expect(cases.count >= 2 && Set(cases.map(\.input.rawValue)).count >= 2, "\(name)")
        }
        #expect(Set(GoldenCase.all.map(\.name)).count == GoldenCase.all.count)
    }
}
