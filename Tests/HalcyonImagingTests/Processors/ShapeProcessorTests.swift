import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonImaging

/// Processors that change the outline: corners, borders.
@Suite(.limitedParallelism) struct ShapeProcessorTests {
    static let blue = CSSColor(red: 0, green: 0, blue: 255)

    func corner(_ radius: CornerRadius, _ corners: Set<Corner> = Set(Corner.allCases), _ background: CSSColor? = nil)
        -> Processor
    {
        .roundCorner(RoundCorner(radius: radius, corners: corners, background: background))
    }

    @Test func roundsCornersAndKeepsTheRest() async throws {
        let picture = Bitmap([200, 100, 50], width: 40, height: 30)
        let round = try await applied(corner(.pixels(10)), to: picture)
        #expect(round.bands == 4)
        for (x, y) in [(0, 0), (39, 0), (0, 29), (39, 29)] { #expect(round[x, y][3] == 0) }
        for (x, y) in [(20, 15), (20, 0), (0, 15), (39, 15), (20, 29), (10, 0), (0, 10)] {
            #expect(round[x, y] == [200, 100, 50, 255], "\(x),\(y)")
        }
    }

    @Test func roundsOnlySelectedCorners() async throws {
        let picture = Bitmap([200], width: 41, height: 31)
        for corner in Corner.allCases {
            let round = try await applied(self.corner(.pixels(9.5), [corner]), to: picture)
            let alphas = [(0, 0), (40, 0), (0, 30), (40, 30)].map { round[$0, $1][1] }
            #expect(alphas == Corner.allCases.map { $0 == corner ? 0 : 255 })
        }
    }

    /// Compares each pixel with many points in it, and checks the area.
    @Test(arguments: [1.0, 2.5, 7, 10, 14.7, 20])
    func coverageIsExact(_ radius: Double) async throws {
        let size = PixelSize(width: 40, height: 40)
        let mask = try await onRenderThread {
            try Bitmap(
                RoundedRectangle(size: size, inset: 0, radius: radius, corners: Set(Corner.allCases)).mask())
        }
        #expect((mask.width, mask.height, mask.bands) == (40, 40, 1))
        let steps = 40
        for y in 0..<20 {
            for x in 0..<20 {
                var inside = 0
                for row in 0..<steps {
                    for column in 0..<steps {
                        let across = radius - (Double(x) + (Double(column) + 0.5) / Double(steps))
                        let down = radius - (Double(y) + (Double(row) + 0.5) / Double(steps))
                        let isOut = across > 0 && down > 0 && across * across + down * down > radius * radius
                        if !isOut { inside += 1 }
                    }
                }
                let expected = Double(inside) / Double(steps * steps) * 255
                #expect(abs(Double(mask[x, y][0]) - expected) <= 3, "\(x),\(y): \(mask[x, y][0]), not \(expected)")
                #expect(mask[x, y] == mask[39 - x, y] && mask[x, y] == mask[x, 39 - y] && mask[x, y] == mask[y, x])
            }
        }
        let area = mask.bytes.reduce(0.0) { $0 + Double($1) / 255 }
        #expect(abs(area - (1600 - (4 - .pi) * radius * radius)) < 1.5)
    }

    @Test func radiusIsAFractionOfASideAndAtMostHalf() async throws {
        let picture = Bitmap([200], width: 40, height: 20)
        func same(_ first: CornerRadius, _ second: CornerRadius) async throws -> Bool {
            try await applied(corner(first), to: picture).bytes == applied(corner(second), to: picture).bytes
        }
        #expect(try await same(.widthFraction(0.1), .pixels(4)))
        #expect(try await same(.heightFraction(0.1), .pixels(2)))
        #expect(try await same(.widthFraction(1), .pixels(10)))
        #expect(try await same(.pixels(1000), .pixels(10)))
        #expect(try await !same(.pixels(4), .pixels(5)))
    }

    @Test func fillsCornersWithTheBackground() async throws {
        let opaque = try await applied(
            corner(.pixels(5), Set(Corner.allCases), Self.blue), to: Bitmap([200, 100, 50], width: 20, height: 20))
        #expect(opaque.bands == 3 && opaque[0, 0] == [0, 0, 255] && opaque[10, 10] == [200, 100, 50])
        let grey = try await applied(
            corner(.pixels(5), Set(Corner.allCases), .white), to: Bitmap([200], width: 20, height: 20))
        #expect(grey.bands == 1 && grey[0, 0] == [255] && grey[10, 10] == [200])
        let half = CSSColor(red: 0, green: 0, blue: 255, alpha: 128)
        let translucent = try await applied(
            corner(.pixels(5), Set(Corner.allCases), half), to: Bitmap([200], width: 20, height: 20))
        #expect(translucent[0, 0] == [0, 0, 255, 128] && translucent[10, 10] == [200, 200, 200, 255])
    }

    @Test func cornersReduceExistingAlpha() async throws {
        let picture = Bitmap([200, 100, 50, 100], width: 40, height: 30)
        let round = try await applied(corner(.pixels(10)), to: picture)
        let opaque = try await applied(corner(.pixels(10)), to: Bitmap([200, 100, 50], width: 40, height: 30))
        for x in 0..<12 {
            for y in 0..<12 {
                let expected = (Double(opaque[x, y][3]) * 100 / 255).rounded()
                #expect(Double(round[x, y][3]) == expected && round[x, y].prefix(3) == [200, 100, 50])
            }
        }
    }

    @Test func borderIsInsideTheImage() async throws {
        let border = Processor.border(Border(width: 3, color: Self.blue))
        let framed = try await applied(border, to: Bitmap([200, 100, 50], width: 20, height: 12))
        #expect(framed.bands == 3)
        for y in 0..<12 {
            for x in 0..<20 {
                let isInside = (3..<17).contains(x) && (3..<9).contains(y)
                #expect(framed[x, y] == (isInside ? [200, 100, 50] : [0, 0, 255]), "\(x),\(y)")
            }
        }
    }

    @Test func fractionalBorderIsAntialiased() async throws {
        let border = Processor.border(Border(width: 1.5, color: .black))
        let framed = try await applied(border, to: Bitmap([200], width: 20, height: 12))
        #expect(framed.bands == 1)
        #expect(framed[0, 6] == [0] && abs(Int(framed[1, 6][0]) - 100) <= 1 && framed[2, 6] == [200])
    }

    @Test func borderAppliesItsOpacityOnTransparentPixelsToo() async throws {
        let half = CSSColor(red: 0, green: 0, blue: 255, alpha: 51)
        let opaque = try await applied(
            .border(Border(width: 2, color: half)), to: Bitmap([100, 200, 50], width: 9, height: 9))
        #expect(zip(opaque[0, 4], [80, 160, 91]).allSatisfy { abs(Int($0) - $1) <= 1 })
        let empty = try await applied(
            .border(Border(width: 2, color: half)), to: Bitmap([0, 0, 0, 0], width: 9, height: 9))
        #expect(empty[0, 4] == [0, 0, 255, 51] && empty[4, 4][3] == 0)
    }

    @Test func roundBorderRoundsTheImage() async throws {
        let border = Processor.border(Border(width: 3, color: Self.blue, radius: .widthFraction(0.5)))
        let framed = try await applied(border, to: Bitmap([200, 100, 50], width: 40, height: 40))
        #expect(framed[0, 0][3] == 0 && framed[20, 20] == [200, 100, 50, 255])
        #expect(framed[20, 0].prefix(3) == [0, 0, 255] && framed[20, 0][3] > 250)
        // On the diagonal the border is between 17 and 20 pixels from the center.
        func diagonal(_ distance: Double) -> [UInt8] {
            let position = Int((20 - distance * 0.5.squareRoot()).rounded(.down))
            return framed[position, position]
        }
        #expect(diagonal(18.5) == [0, 0, 255, 255] && diagonal(15.5) == [200, 100, 50, 255] && diagonal(21.5)[3] == 0)
    }

    @Test func borderWiderThanTheImageCoversIt() async throws {
        let border = Processor.border(Border(width: 500, color: Self.blue, radius: .pixels(3), corners: [.topLeft]))
        let framed = try await applied(border, to: Bitmap([200, 100, 50], width: 7, height: 5))
        #expect(framed[3, 2] == [0, 0, 255, 255] && framed[6, 4] == [0, 0, 255, 255] && framed[0, 0][3] < 128)
    }

    @Test(arguments: [(1, 1), (1, 9), (2, 1), (3, 3), (9, 2)])
    func keepsTheSizeOfTinyImages(_ width: Int, _ height: Int) async throws {
        for pixel: [UInt8] in [[200], [200, 100], [1, 2, 3], [1, 2, 3, 4]] {
            let picture = Bitmap(pixel, width: width, height: height)
            let round = try await applied(
                corner(.pixels(50)), .border(Border(width: 0.3, color: Self.blue, radius: .widthFraction(0.5))),
                to: picture)
            #expect(round.size == picture.size)
        }
    }
}
