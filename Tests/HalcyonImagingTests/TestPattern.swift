import HalcyonModel
import Vips

@testable import HalcyonImaging

/// A test image whose colors encode positions: red grows from 0 to 255 across `part`, and green down it. Blue is 0
/// inside `part` and, if `marked`, 255 outside, so that pixels that bleed in from outside are visible.
struct TestPattern: Sendable {
    let size: PixelSize
    let part: PixelRect
    var marked = false

    /// The color at each position along one side: 0 before the part, 255 after it.
    private static func ramp(_ count: Int, _ start: Int, _ length: Int) -> [UInt8] {
        (0..<count).map { (position: Int) -> UInt8 in
            let value = 255 * (Double(position - start) + 0.5) / Double(length)
            return UInt8(min(max(0, value), 255).rounded())
        }
    }

    /// The image as stored by a camera that writes this EXIF orientation.
    func image(orientation: Int = 1) throws -> Image {
        let swaps = orientation >= 5
        let (width, height) = swaps ? (size.height, size.width) : (size.width, size.height)
        let red = Self.ramp(size.width, part.x, part.width)
        let green = Self.ramp(size.height, part.y, part.height)
        let (columns, rows) = (part.x..<part.x + part.width, part.y..<part.y + part.height)
        var pixels: [UInt8] = []
        pixels.reserveCapacity(width * height * 3)
        for row in 0..<height {
            for column in 0..<width {
                // CIPA DC-008 table 4.6.4 A: the sides of the scene in the stored row 0 and column 0.
                let (x, y) =
                    switch orientation {
                    case 2: (size.width - 1 - column, row)  // row 0 top, column 0 right
                    case 3: (size.width - 1 - column, size.height - 1 - row)  // bottom, right
                    case 4: (column, size.height - 1 - row)  // bottom, left
                    case 5: (row, column)  // left, top
                    case 6: (size.width - 1 - row, column)  // right, top
                    case 7: (size.width - 1 - row, size.height - 1 - column)  // right, bottom
                    case 8: (row, size.height - 1 - column)  // left, bottom
                    default: (column, row)  // top, left
                    }
                pixels.append(red[x])
                pixels.append(green[y])
                pixels.append(!marked || columns.contains(x) && rows.contains(y) ? 0 : 255)
            }
        }
        return try Image(pixels: pixels, width: width, height: height, bands: 3)
    }
}

/// The pixels of a file, decoded.
struct Pixels: Sendable {
    let width: Int
    let height: Int
    let bands: Int
    let bytes: [UInt8]

    init(_ file: [UInt8]) throws {
        let image = try EncodedImage(file).open()
        width = image.width
        height = image.height
        bands = image.bands
        bytes = try image.pixels()
    }

    subscript(x: Int, y: Int) -> [Int] {
        let start = (y * width + x) * bands
        return bytes[start..<start + bands].map(Int.init)
    }
}

extension SizingPlan {
    /// The expected red and green at a position of the output, and their change by a shift of half an output pixel. nil
    /// if the position is excess.
    func expected(at x: Int, _ y: Int) -> (red: Double, green: Double, half: (Double, Double))? {
        let (column, row) = (x - destRect.x, y - destRect.y)
        guard column >= 0, column < destRect.width, row >= 0, row < destRect.height else { return nil }
        let (across, down) = (255 / Double(destRect.width), 255 / Double(destRect.height))
        // Beyond the centers of its outermost pixels, an enlarged image repeats them.
        func fraction(_ position: Int, of target: Int, from source: Int) -> Double {
            let edge = 0.5 / Double(source)
            return min(max((Double(position) + 0.5) / Double(target), edge), 1 - edge)
        }
        let red = 255 * fraction(column, of: destRect.width, from: sourceRect.width)
        let green = 255 * fraction(row, of: destRect.height, from: sourceRect.height)
        // Bicubic enlarging overshoots at the edges by a fraction of the step between two source pixels.
        let overshoot = (0.1 * 255 / Double(sourceRect.width), 0.1 * 255 / Double(sourceRect.height))
        return (red, green, (max(across / 2, overshoot.0), max(down / 2, overshoot.1)))
    }

    /// The corners, the midpoints of the sides and the center of the part that the image covers.
    var samplePositions: [(x: Int, y: Int)] {
        [0, destRect.width / 2, destRect.width - 1].flatMap { x in
            [0, destRect.height / 2, destRect.height - 1].map { (destRect.x + x, destRect.y + $0) }
        }
    }
}

/// Returns a JPEG with an EXIF block of this `orientation`, followed by more segments.
func withEXIF(_ jpeg: [UInt8], orientation: UInt8, more: [[UInt8]] = []) -> [UInt8] {
    let tiff: [UInt8] =
        [0x49, 0x49, 0x2a, 0, 8, 0, 0, 0]  // little endian, first directory at 8
        + [1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0]  // one entry: Orientation, one SHORT
        + [0, 0, 0, 0]
    return [0xff, 0xd8] + segment(0xe1, Array("Exif\0\0".utf8) + tiff) + more.flatMap { $0 } + jpeg.dropFirst(2)
}

/// Returns a JPEG segment.
func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    let length = content.count + 2
    return [0xff, marker, UInt8(length >> 8), UInt8(length & 255)] + content
}

/// Returns a variant that fills a display of whole points at one pixel per point.
func filling(_ width: Double, _ height: Double, _ mode: ContentMode = .scaleAspectFill, as format: ImageFormat? = .png)
    -> Variant
{
    Variant(
        sizing: Sizing(goal: .display(Display(width: width, height: height, contentMode: mode))),
        output: OutputOptions(format: format))
}
