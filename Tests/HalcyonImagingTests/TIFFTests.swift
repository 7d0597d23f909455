import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging
@testable import MalformedImages

/// TIFFs as cameras, scanners and instruments write them, according to TIFF 6.0.
@Suite(.limitedParallelism) struct TIFFTests {
    /// A TIFF of 32×32 equal pixels.
    struct TIFF: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var photometric: Int
        var pixel: [UInt8]
        var bits = 8
        var extras: [Int] = []
        var planes = 1
        var isTiled = false
        var compression = 1
        var subsampling: [Int]?
        /// The number of bytes of the pixels, if it does not follow from `pixel`.
        var size: Int?

        init(_ name: String, _ photometric: Int, _ pixel: [UInt8], _ change: (inout TIFF) -> Void = { _ in }) {
            testDescription = name
            self.photometric = photometric
            self.pixel = pixel
            change(&self)
        }

        /// The file in little-endian order: header, pixels, directory, and values that do not fit into its entries.
        var bytes: [UInt8] {
            let samples = pixel.count / (bits == 16 ? 2 : 1)
            let all = (0..<32 * 32).flatMap { _ in pixel }
            let pixels = Array(all.prefix(size ?? all.count))
            let parts = planes == 2 ? samples : 1
            var fields: [Int: [Int]] = [
                256: [32], 257: [32], 258: Array(repeating: bits, count: samples), 259: [compression],
                262: [photometric], 277: [samples], 284: [planes],
            ]
            let starts = (0..<parts).map { 8 + $0 * pixels.count / parts }
            let counts = Array(repeating: pixels.count / parts, count: parts)
            if isTiled {
                (fields[322], fields[323], fields[324], fields[325]) = ([32], [32], starts, counts)
            } else {
                (fields[273], fields[278], fields[279]) = (starts, [32], counts)
            }
            if !extras.isEmpty { fields[338] = extras }
            if let subsampling { fields[530] = subsampling }
            let directory = 8 + pixels.count
            var (entries, more): ([UInt8], [UInt8]) = ([], [])
            for (tag, values) in fields.sorted(by: { $0.key < $1.key }) {
                // Offsets and lengths have the type LONG, others SHORT.
                let isLong = [273, 279, 324, 325].contains(tag)
                let content = values.flatMap { Self.little($0, isLong ? 4 : 2) }
                entries += Self.little(tag, 2) + Self.little(isLong ? 4 : 3, 2) + Self.little(values.count, 4)
                if content.count <= 4 {
                    entries += content + Array(repeating: 0, count: 4 - content.count)
                } else {
                    entries += Self.little(directory + 2 + fields.count * 12 + 4 + more.count, 4)
                    more += content
                }
            }
            return Array("II*\0".utf8) + Self.little(directory, 4) + pixels + Self.little(fields.count, 2) + entries
                + Self.little(0, 4) + more
        }

        private static func little(_ number: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
    }

    /// Files, and the opaque or transparent color that they show.
    static let readable: [(TIFF, [Int])] = [
        (TIFF("gray and two more", 1, [200, 0, 0]), [200, 200, 200]),
        (TIFF("gray and alpha", 1, [200, 128]) { $0.extras = [2] }, [200, 200, 200, 128]),
        (TIFF("gray, alpha and one more", 1, [200, 128, 7]) { $0.extras = [2, 0] }, [200, 200, 200, 128]),
        (TIFF("gray and three more", 1, [200, 9, 9, 9]) { $0.extras = [0, 0, 0] }, [200, 200, 200]),
        (TIFF("RGB and two more", 2, [200, 100, 50, 0, 0]) { $0.extras = [0, 0] }, [200, 100, 50]),
        (TIFF("RGB, alpha and one more", 2, [200, 100, 50, 128, 0]) { $0.extras = [2, 0] }, [200, 100, 50, 128]),
        (TIFF("RGB and three more", 2, [200, 100, 50, 1, 2, 3]) { $0.extras = [0, 0, 0] }, [200, 100, 50]),
        (
            TIFF("RGB of 16 bits and two more", 2, [0, 200, 0, 100, 0, 50, 0, 0, 0, 0]) {
                $0.bits = 16
                $0.extras = [0, 0]
            }, [200, 100, 50]
        ),
    ]

    @Test(arguments: readable)
    func ignoresExtraSamples(_ tiff: TIFF, _ color: [Int]) async throws {
        for format in [ImageFormat.png, .jpeg] {
            let image = try await render(tiff.bytes, filling(8, 8, as: format))
            guard format == .png else { continue }
            let pixels = try Pixels(image.body)
            let found = pixels.bands < 3 ? [0, 0, 0] + Array(1..<pixels.bands) : Array(0..<pixels.bands)
            #expect(found.map { pixels[4, 4][$0] } == color)
        }
    }

    static let unreadable: [(TIFF, String)] = [
        (
            TIFF("subsampled YCbCr", 6, [128, 128, 128]) {
                $0.subsampling = [2, 2]
                $0.size = 32 * 32 * 3 / 2
            }, "subsampled YCbCr"
        ),
        (TIFF("12 bits", 1, [9, 9]) { $0.bits = 12 }, "12 bits per sample"),
        (TIFF("RGB of 4 bits", 2, [9, 9, 9]) { $0.bits = 4 }, "4 bits per sample"),
        (
            TIFF("tiles of separate planes", 2, [9, 9, 9]) {
                $0.isTiled = true
                $0.planes = 2
            }, "tiles with a plane"
        ),
        (TIFF("unknown compression", 1, [9]) { $0.compression = 9999 }, "unknown compression (9999)"),
        (TIFF("a mask", 4, [9]) { $0.bits = 1 }, "photometric interpretation 4"),
    ]

    @Test(arguments: unreadable)
    func unsupportedTIFFsAreNotCorrupt(_ tiff: TIFF, _ word: String) async throws {
        let failure = await InvalidInputTests().failure(tiff.bytes)
        #expect(failure?.code == .unsupportedFormat)
        #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "")")
    }

    @Test func readsBigTIFF() async throws {
        let source = try await onRenderThread {
            let colors = try Image(color: [200, 100, 50], width: 16, height: 16)
            return try Operation.call("bandjoin", ["in": .images([colors, colors])]).image()
                .calling("copy", ["interpretation": "srgb"]).encoded(as: .tiff, ["bigtiff": true])
        }
        let pixels = try await renderedPixels(source, filling(8, 8))
        #expect(pixels[4, 4].prefix(3) == [200, 100, 50])
    }

    @Test(arguments: [8, Int.max]) func ignoresValuesBeyondTheEndOfTheFile(_ count: Int) throws {
        let file = try EncodedImage(TIFFFile.bigTIFF((258, TIFFFile.short, count, .max)))
        #expect(file.unsupportedFeature == nil)
    }
}
