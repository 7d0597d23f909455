import Glibc
import HalcyonModel
import Vips

/// A rectangle inside an image, with some rounded corners.
struct RoundedRectangle {
    /// The size of the image.
    let size: PixelSize
    /// The distance between the edges of the image and those of the rectangle, in pixels.
    let inset: Double
    /// The corner radius in pixels, at most half of the rectangle's shorter side.
    let radius: Double
    /// The rounded corners.
    let corners: Set<Corner>

    /// Returns the coverage of each pixel, 0 to 255, as one band.
    ///
    /// Corners are computed exactly, pixel by pixel. libvips repeats their last row and column for the straight edges.
    /// The cost does not depend on the size of the image.
    func mask() throws(VipsError) -> Image {
        let (left, top) = ((size.width + 1) / 2, (size.height + 1) / 2)
        let across = [left, size.width - left].filter { $0 > 0 }
        let down = [top, size.height - top].filter { $0 > 0 }
        let columns: [[Corner]] = [[.topLeft, .topRight], [.bottomLeft, .bottomRight]]
        var rows: [Image] = []
        for (row, height) in zip(columns, down) {
            let quarters = try zip(row, across).map { corner, width throws(VipsError) in
                try quarter(corner, PixelSize(width: width, height: height))
            }
            rows.append(try quarters.joined("horizontal"))
        }
        return try rows.joined("vertical")
    }

    /// Returns the quarter of the mask at a corner.
    private func quarter(_ corner: Corner, _ quarter: PixelSize) throws(VipsError) -> Image {
        let radius = corners.contains(corner) ? self.radius : 0
        let reach = Int((inset + radius).rounded(.up)) + 1
        let (width, height) = (min(reach, quarter.width), min(reach, quarter.height))
        let isRight = corner == .topRight || corner == .bottomRight
        let isBottom = corner == .bottomLeft || corner == .bottomRight
        var samples: [UInt8] = []
        samples.reserveCapacity(width * height)
        for y in 0..<height {
            for x in 0..<width {
                let share = share(
                    isRight ? width - 1 - x : x, isBottom ? height - 1 - y : y, radius: radius)
                samples.append(UInt8((share * 255).rounded()))
            }
        }
        return try Image(pixels: samples, width: width, height: height, bands: 1).calling(
            "embed",
            [
                "x": .int(isRight ? quarter.width - width : 0), "y": .int(isBottom ? quarter.height - height : 0),
                "width": .int(quarter.width), "height": .int(quarter.height), "extend": "copy",
            ])
    }

    /// Returns the coverage of a pixel, 0 to 1. x and y are counted from the corner.
    private func share(_ x: Int, _ y: Int, radius: Double) -> Double {
        // The distances of the pixel's sides from the center of the corner's circle, towards the corner.
        let (right, left) = (inset + radius - Double(x + 1), inset + radius - Double(x))
        let (lower, upper) = (inset + radius - Double(y + 1), inset + radius - Double(y))
        guard right < radius, lower < radius else { return 0 }
        // Most pixels lie entirely inside or outside.
        let (farX, farY, nearX, nearY) = (max(left, 0), max(upper, 0), max(right, 0), max(lower, 0))
        if left <= radius, upper <= radius, farX * farX + farY * farY <= radius * radius { return 1 }
        if nearX * nearX + nearY * nearY >= radius * radius, nearX > 0, nearY > 0 { return 0 }
        // Next to the circle's center the edge is straight.
        let beside = max(0, min(left, 0) - right) * max(0, min(upper, radius) - lower)
        return beside + Self.area(from: nearX, to: min(farX, radius), above: lower, upTo: upper, radius)
    }

    /// Returns the area between two verticals and two horizontals that lies inside a circle around the origin.
    private static func area(
        from start: Double, to end: Double, above lower: Double, upTo upper: Double, _ radius: Double
    ) -> Double {
        guard end > start else { return 0 }
        /// Returns the x coordinate of the circle at this height.
        func crossing(_ height: Double) -> Double {
            (max(radius * radius - height * height, 0)).squareRoot()
        }
        /// Returns the area under the circle from 0 to `x`.
        func under(_ x: Double) -> Double {
            let x = min(x, radius)
            return (x * crossing(x) + radius * radius * asin(radius > 0 ? x / radius : 0)) / 2
        }
        // Left of the first crossing the circle is above the pixel, right of the second one below it.
        let full = upper <= radius ? min(max(crossing(max(upper, 0)), start), end) : start
        let none = lower > 0 ? min(max(crossing(lower), start), end) : end
        return (full - start) * (upper - lower) + under(none) - under(full) - lower * (none - full)
    }
}

extension [Image] {
    /// Joins one or two images horizontally or vertically.
    func joined(_ direction: String) throws(VipsError) -> Image {
        guard count == 2 else { return self[0] }
        return try Operation.call(
            "join", ["in1": .image(self[0]), "in2": .image(self[1]), "direction": .string(direction)]
        ).image()
    }
}

extension Image {
    /// Multiplies alpha, or 255 without alpha, by a mask of one band.
    func masked(by mask: Image) throws(VipsError) -> Image {
        guard hasAlpha else { return try joined(with: mask) }
        let white = try Image(color: Array(repeating: 255, count: channels), width: width, height: height)
        return try combined("multiply", white.joined(with: mask)).inBytes(times: 1 / 255).calling(
            "copy", ["interpretation": channels < 3 ? "b-w" : "srgb"])
    }

    /// Adds `alpha` as the last band.
    func joined(with alpha: Image) throws(VipsError) -> Image {
        try Operation.call("bandjoin", ["in": .images([self, alpha])]).image()
            .calling("copy", ["interpretation": bands < 3 ? "b-w" : "srgb"])
    }
}

extension Image {
    /// Rounds the corners. The background, if any, fills them and shows through transparent pixels, as in Kingfisher.
    func rounded(_ round: RoundCorner) throws(VipsError) -> Image {
        let rectangle = RoundedRectangle(
            size: size, inset: 0, radius: round.radius.pixels(in: size), corners: round.corners)
        let cut = rectangle.radius > 0 ? try masked(by: rectangle.mask()) : self
        guard let background = round.background else { return cut }
        return try cut.laid(on: background)
    }

    /// Draws a line along the inside of the edge over the image, and clips both to the outer edge of the line.
    func bordered(_ border: Border) throws(VipsError) -> Image {
        let outer = border.radius.pixels(in: size)
        let inside = RoundedRectangle(
            size: size, inset: border.width, radius: max(0, outer - border.width), corners: border.corners)
        let opacity = Double(border.color.alpha) / 255
        let picture = try ready(for: border.color)
        var opaque = border.color
        opaque.alpha = 255
        let line = try inside.mask().mapped([.table { (255 - $0) * opacity }])
        let bordered = try picture.under(picture.filled(with: opaque).withoutAlpha().joined(with: line))
        guard outer > 0 else { return bordered }
        let edge = RoundedRectangle(size: size, inset: 0, radius: outer, corners: border.corners)
        return try bordered.masked(by: edge.mask())
    }
}

extension Mask.Shape {
    /// Returns the coverage of each pixel of an image, 0 to 255, as one band.
    func mask(of size: PixelSize) throws(VipsError) -> Image {
        let (width, height) = (Double(size.width), Double(size.height))
        let side = min(width, height)
        let outline = Self.fitted(outline).map { point in
            self == .circle
                ? (x: (width - side) / 2 + point.x * side, y: (height - side) / 2 + point.y * side)
                : (x: point.x * width, y: point.y * height)
        }
        return try Image(
            pixels: Self.coverage(of: outline, size), width: size.width, height: size.height, bands: 1)
    }

    /// The corners of the shape in any unit.
    private var outline: [(x: Double, y: Double)] {
        switch self {
        case .circle, .ellipse: Self.polygon(360)
        case .triangle: [(0.5, 0), (1, 1), (0, 1)]
        case .diamond: Self.polygon(4)
        case .pentagon: Self.polygon(5)
        case .hexagon: Self.polygon(6)
        // Flat sides at the top and at the bottom.
        case .octagon: Self.polygon(8, turned: .pi / 8)
        case .star:
            // The inner radius is that of a pentagram.
            (0..<10).map { index in
                let radius = index.isMultiple(of: 2) ? 0.5 : 0.5 * 0.381_966
                let angle = Double(index) * .pi / 5
                return (x: 0.5 + radius * sin(angle), y: 0.5 - radius * cos(angle))
            }
        case .heart:
            // x = 16 sin³ t, y = 13 cos t − 5 cos 2t − 2 cos 3t − cos 4t (mathworld.wolfram.com/HeartCurve.html)
            (0..<360).map { index in
                let angle = Double(index) * .pi / 180
                let sine = sin(angle)
                return (
                    x: 16 * sine * sine * sine,
                    y: -(13 * cos(angle) - 5 * cos(2 * angle) - 2 * cos(3 * angle) - cos(4 * angle))
                )
            }
        }
    }

    /// Returns the corners of a regular polygon in the unit square. The first is at the top.
    private static func polygon(_ corners: Int, turned: Double = 0) -> [(x: Double, y: Double)] {
        (0..<corners).map { index in
            let angle = Double(index) * 2 * .pi / Double(corners) + turned
            return (x: 0.5 + 0.5 * sin(angle), y: 0.5 - 0.5 * cos(angle))
        }
    }

    /// Stretches corners to the unit square.
    private static func fitted(_ corners: [(x: Double, y: Double)]) -> [(x: Double, y: Double)] {
        let (across, down) = (corners.map(\.x), corners.map(\.y))
        let (left, right) = (across.min() ?? 0, across.max() ?? 1)
        let (top, bottom) = (down.min() ?? 0, down.max() ?? 1)
        return corners.map { (x: ($0.x - left) / (right - left), y: ($0.y - top) / (bottom - top)) }
    }

    /// Returns the share of each pixel inside a polygon: exact along rows, and averaged over eight lines of each row.
    private static func coverage(of corners: [(x: Double, y: Double)], _ size: PixelSize) -> [UInt8] {
        let lines = 8
        var samples = [UInt8](repeating: 0, count: size.pixels)
        var shares = [Double](repeating: 0, count: size.width)
        let edges = zip(corners, corners.dropFirst() + corners.prefix(1))
        for row in 0..<size.height {
            for share in shares.indices { shares[share] = 0 }
            for line in 0..<lines {
                let y = Double(row) + (Double(line) + 0.5) / Double(lines)
                var crossings: [Double] = []
                for (start, end) in edges where (start.y <= y) != (end.y <= y) {
                    crossings.append(start.x + (y - start.y) / (end.y - start.y) * (end.x - start.x))
                }
                crossings.sort()
                for index in stride(from: 0, to: crossings.count - 1, by: 2) {
                    let (left, right) = (max(crossings[index], 0), min(crossings[index + 1], Double(size.width)))
                    guard left < right else { continue }
                    for column in Int(left)..<min(size.width, Int(right.rounded(.up))) {
                        shares[column] += min(right, Double(column + 1)) - max(left, Double(column))
                    }
                }
            }
            for column in 0..<size.width {
                samples[row * size.width + column] = UInt8((shares[column] * 255 / Double(lines)).rounded())
            }
        }
        return samples
    }
}

extension Image {
    /// Returns the opacity of the image, or its luminance if it is opaque, as one band of 8 bits.
    func asMask() throws(VipsError) -> Image {
        if hasAlpha { return try alpha() }
        return channels < 3 ? self : try calling("colourspace", ["space": "b-w"])
    }
}
