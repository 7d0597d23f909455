import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonImaging

/// Processors that move pixels.
@Suite(.limitedParallelism) struct GeometryProcessorTests {
    /// An image with a different value in each pixel.
    static func numbered(_ width: Int, _ height: Int) -> Bitmap {
        Bitmap((0..<width * height).map(UInt8.init), width: width, height: height, bands: 1)
    }

    @Test func flipMirrorsTheImage() async throws {
        let picture = Self.numbered(3, 2)
        #expect(try await applied(.flip(.horizontal), to: picture).bytes == [2, 1, 0, 5, 4, 3])
        #expect(try await applied(.flip(.vertical), to: picture).bytes == [3, 4, 5, 0, 1, 2])
        #expect(try await applied(.flip(.both), to: picture).bytes == [5, 4, 3, 2, 1, 0])
    }

    @Test func quarterTurnsMovePixels() async throws {
        let picture = Self.numbered(3, 2)
        func turned(_ degrees: Double) async throws -> Bitmap {
            try await applied(.rotate(degrees: degrees, background: .transparent), to: picture)
        }
        #expect(try await turned(0).bytes == picture.bytes)
        let quarter = try await turned(90)
        #expect(quarter.bytes == [3, 0, 4, 1, 5, 2] && quarter.width == 2 && quarter.bands == 1)
        #expect(try await turned(180).bytes == [5, 4, 3, 2, 1, 0])
        #expect(try await turned(270).bytes == [2, 5, 1, 4, 0, 3])
    }

    @Test func appliesProcessorsInOrder() async throws {
        let picture = Self.numbered(3, 2)
        let rotation = Processor.rotate(degrees: 90, background: .transparent)
        #expect(try await applied(rotation, .flip(.horizontal), to: picture).bytes == [0, 3, 1, 4, 2, 5])
        #expect(try await applied(.flip(.horizontal), rotation, to: picture).bytes == [5, 2, 4, 1, 3, 0])
    }

    @Test func rotatesClockwiseAboutTheCenter() async throws {
        // The upper half is red. After a rotation by 45° it is at the upper right.
        var picture = Bitmap([0, 0, 255], width: 60, height: 60)
        for y in 0..<30 { for x in 0..<60 { picture[x, y] = [255, 0, 0] } }
        let turned = try await applied(.rotate(degrees: 45, background: .transparent), to: picture)
        #expect(turned.width == 85 && turned.height == 85 && turned.bands == 4)
        #expect(turned[0, 0] == [0, 0, 0, 0] && turned[84, 84][3] == 0)
        #expect(turned[60, 25] == [255, 0, 0, 255] && turned[42, 10] == [255, 0, 0, 255])
        #expect(turned[25, 60] == [0, 0, 255, 255] && turned[42, 74] == [0, 0, 255, 255])
        // Nothing of the image is lost, so its area is unchanged.
        let area = stride(from: 3, to: turned.bytes.count, by: 4).reduce(0.0) { $0 + Double(turned.bytes[$1]) / 255 }
        #expect(abs(area - 3600) < 30, "\(area)")
        let flipped = try await applied(
            .rotate(degrees: 45, background: .transparent), .flip(.both), .rotate(degrees: 180, background: .white),
            to: picture)
        #expect(flipped.bytes == turned.bytes)
    }

    @Test func rotationHasABackgroundAndSmoothEdges() async throws {
        let picture = Bitmap([200, 100, 50], width: 40, height: 40)
        let blue = CSSColor(red: 0, green: 0, blue: 255)
        let opaque = try await applied(.rotate(degrees: 30, background: blue), to: picture)
        #expect(opaque.bands == 3 && opaque[0, 0] == [0, 0, 255] && opaque[27, 27] == [200, 100, 50])
        // All pixels are mixtures of the two.
        for offset in stride(from: 0, to: opaque.bytes.count, by: 3) {
            let share = Double(opaque.bytes[offset]) / 200
            #expect(abs(Double(opaque.bytes[offset + 1]) - share * 100) <= 2)
            #expect(abs(Double(opaque.bytes[offset + 2]) - (share * 50 + (1 - share) * 255)) <= 3)
        }
        let half = CSSColor(red: 0, green: 0, blue: 255, alpha: 128)
        let translucent = try await applied(.rotate(degrees: 30, background: half), to: picture)
        #expect(translucent[0, 0] == [0, 0, 255, 128] && translucent[27, 27] == [200, 100, 50, 255])
        let grey = try await applied(
            .rotate(degrees: 30, background: .white), to: Bitmap([100], width: 40, height: 40))
        #expect(grey.bands == 1 && grey[0, 0] == [255] && grey[27, 27] == [100])
    }

    @Test func ignoresColorsOfTransparentPixels() async throws {
        // The right half is red and transparent.
        var picture = Bitmap([0, 0, 255, 255], width: 40, height: 40)
        for y in 0..<40 { for x in 20..<40 { picture[x, y] = [255, 0, 0, 0] } }
        for processor: Processor in [
            .blur(radius: 3), .blur(radius: 30), .resize(PixelSize(width: 55, height: 31), .none),
            .rotate(degrees: 20, background: .transparent), .pixelate(7),
        ] {
            let result = try await applied(processor, to: picture)
            for offset in stride(from: 0, to: result.bytes.count, by: 4) where result.bytes[offset + 3] > 8 {
                #expect(result.bytes[offset] <= 12, "\(processor.name)")
            }
        }
    }

    @Test func resizeFollowsItsMode() async throws {
        let picture = Bitmap([9, 8, 7], width: 50, height: 25)
        let target = PixelSize(width: 100, height: 100)
        func size(_ processor: Processor) async throws -> PixelSize {
            let result = try await applied(processor, to: picture)
            #expect(result.size == processor.size(of: picture.size) && result[0, 0] == [9, 8, 7])
            return result.size
        }
        #expect(try await size(.resize(target, .none)) == target)
        #expect(try await size(.resize(target, .aspectFit)) == PixelSize(width: 100, height: 50))
        #expect(try await size(.resize(target, .aspectFill)) == PixelSize(width: 200, height: 100))
        #expect(try await size(.downsample(target)) == picture.size)
        #expect(
            try await size(.downsample(PixelSize(width: 20, height: 100))) == PixelSize(width: 20, height: 10))
    }

    @Test func resizeFollowsTheInterpolationQuality() async throws {
        let picture = Bitmap([0, 255], width: 2, height: 1, bands: 1)
        let target = Processor.resize(PixelSize(width: 8, height: 1), .none)
        let nearest = try await applied(target, to: picture, .none)
        #expect(nearest.bytes == [0, 0, 0, 0, 255, 255, 255, 255])
        let linear = try await applied(target, to: picture, .low)
        #expect(Set(linear.bytes).count > 2 && linear.bytes == linear.bytes.sorted())
    }

    @Test func cropKeepsThePartAroundItsAnchor() async throws {
        let picture = Self.numbered(5, 4)
        func part(_ width: Int, _ height: Int, _ x: Double, _ y: Double) async throws -> Bitmap {
            try await applied(
                .crop(PixelSize(width: width, height: height), anchor: UnitPoint(x: x, y: y)), to: picture)
        }
        #expect(try await part(2, 2, 0, 0).bytes == [0, 1, 5, 6])
        #expect(try await part(2, 2, 1, 1).bytes == [13, 14, 18, 19])
        #expect(try await part(1, 2, 0.5, 0.5).bytes == [7, 12])
        #expect(try await part(100, 1, 0, 1).bytes == [15, 16, 17, 18, 19])
        #expect(try await part(100, 100, 0.5, 0.5).bytes == picture.bytes)
    }

    @Test func pixelateAveragesEachBlock() async throws {
        let picture = Bitmap(
            [
                0, 10, 20, 30, 100,
                0, 10, 20, 30, 200,
                8, 8, 4, 4, 60,
            ], width: 5, height: 3, bands: 1)
        #expect(
            try await applied(.pixelate(2), to: picture).bytes == [
                5, 5, 25, 25, 150,
                5, 5, 25, 25, 150,
                8, 8, 4, 4, 60,
            ])
        #expect(Set(try await applied(.pixelate(99), to: picture).bytes).count == 1)
        #expect(try await applied(.pixelate(1), to: picture).bytes == picture.bytes)
    }

    @Test func pixelateWeightsColorsByTheirAlpha() async throws {
        let picture = Bitmap([255, 0, 0, 255, 0, 0, 255, 85], width: 2, height: 1, bands: 4)
        let block = try await applied(.pixelate(2), to: picture)
        #expect(block[0, 0] == block[1, 0] && abs(Int(block[0, 0][0]) - 191) <= 1 && block[0, 0][3] == 170)
    }
}
