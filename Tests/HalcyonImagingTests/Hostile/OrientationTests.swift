import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging
@testable import MalformedImages

/// A format that can store an EXIF orientation.
private enum OrientedFormat: String, CaseIterable {
    case jpeg, png, webp, tiff

    func file(_ pattern: TestPattern, orientation: Int) async throws -> [UInt8] {
        try await onRenderThread {
            let image = try pattern.image(orientation: orientation)
            switch self {
            case .jpeg:
                return withEXIF(try image.encoded(as: .jpeg, ["Q": 95]), orientation: UInt8(orientation))
            case .png:
                return try image.encoded(as: .png).withEXIFInPNG(orientation)
            case .webp:
                return try image.encoded(as: .webp, ["lossless": true]).withEXIFInWebP(
                    orientation, image.width, image.height)
            case .tiff:
                return try image.encoded(as: .tiff).withOrientationInTIFF(orientation)
            }
        }
    }
}

@Suite(.limitedParallelism) struct OrientationTests {
    static let whole = PixelSize(width: 240, height: 160)
    static let part = PixelRect(x: 60, y: 40, width: 120, height: 80)

    @Test(arguments: OrientedFormat.allCases, 1...8)
    private func rendersEveryOrientationUpright(_ format: OrientedFormat, _ orientation: Int) async throws {
        for part in [PixelRect(Self.whole), Self.part] {
            let pattern = TestPattern(size: Self.whole, part: part, marked: true)
            let file = try await format.file(pattern, orientation: orientation)
            #expect(try await onRenderThread { try EncodedImage(file).open().orientation } == orientation)
            var variant = filling(60, 40)
            variant.sizing.cropRect = CropRect(
                x: Double(part.x) / 240, y: Double(part.y) / 160, width: Double(part.width) / 240,
                height: Double(part.height) / 160)
            for format in [ImageFormat.png, .jpeg, .webp] {
                variant.output.format = format
                variant.output.quality = 95
                let rendering = try await render(file, [variant])
                #expect(rendering.sourceSize == Self.whole)
                let image = rendering.images[0]
                let (pixels, left) = try await onRenderThread {
                    (try Pixels(image.body), try EncodedImage(image.body).open().orientation)
                }
                #expect(left == 1)
                #expect((pixels.width, pixels.height) == (60, 40))
                // Red grows to the right and green downwards, so that the colors of all corners differ.
                for (x, y) in [(1, 1), (58, 1), (1, 38), (58, 38), (30, 20)] {
                    let (red, green) = (255 * (Double(x) + 0.5) / 60, 255 * (Double(y) + 0.5) / 40)
                    let pixel = pixels[x, y]
                    #expect(
                        abs(Double(pixel[0]) - red) < 14 && abs(Double(pixel[1]) - green) < 14, "\(pixel) at \(x), \(y)"
                    )
                }
            }
        }
    }

    /// The chunk must precede the pixels, and decoders look for it there (PNG, third edition, section 5.6).
    @Test func ignoresAnOrientationAfterThePixelsOfAPNG() async throws {
        let png = try await OrientedFormat.png.file(
            TestPattern(size: Self.whole, part: PixelRect(Self.whole)), orientation: 1)
        let moved = Array(png.dropLast(12)) + [UInt8].eXIf(6) + png.suffix(12)
        #expect(try await render(moved, [filling(60, 40)]).sourceSize == Self.whole)
    }
}

extension [UInt8] {
    /// An EXIF block of one entry, the orientation, in big-endian order.
    private static func exif(_ orientation: Int) -> [UInt8] {
        Array("MM\0*".utf8) + [0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0, 0, 0, 0, 0]
    }

    /// The EXIF block as a PNG chunk.
    fileprivate static func eXIf(_ orientation: Int) -> [UInt8] { PNGFile.chunk("eXIf", exif(orientation)) }

    /// Returns the PNG with an EXIF chunk directly after its header.
    fileprivate func withEXIFInPNG(_ orientation: Int) -> [UInt8] {
        Array(self[..<33]) + .eXIf(orientation) + self[33...]
    }

    /// Returns the simple WebP as an extended one with EXIF.
    fileprivate func withEXIFInWebP(_ orientation: Int, _ width: Int, _ height: Int) -> [UInt8] {
        let pictures = chunks.filter { $0.starts(with: "VP8 ".utf8) || $0.starts(with: "VP8L".utf8) }.flatMap { $0 }
        return WebPFile.container(
            WebPFile.extended(8, width, height) + pictures + WebPFile.chunk("EXIF", .exif(orientation)))
    }

    /// The chunks of a WebP.
    private var chunks: [[UInt8]] {
        var chunks: [[UInt8]] = []
        var offset = 12
        while offset + 8 <= count {
            let size = (0..<4).reduce(0) { $0 | Int(self[offset + 4 + $1]) << (8 * $1) }
            let end = Swift.min(offset + 8 + size + size % 2, count)
            chunks.append(Array(self[offset..<end]))
            offset = end
        }
        return chunks
    }

    /// Returns the little-endian TIFF with another value in the orientation entry that libvips has written.
    fileprivate func withOrientationInTIFF(_ orientation: Int) -> [UInt8] {
        func number(_ offset: Int, _ count: Int) -> Int {
            (0..<count).reduce(0) { $0 | Int(self[offset + $1]) << (8 * $1) }
        }
        let directory = number(4, 4)
        var copy = self
        for index in 0..<number(directory, 2) where number(directory + 2 + index * 12, 2) == 274 {
            copy[directory + 2 + index * 12 + 8] = UInt8(orientation)
        }
        return copy
    }
}
