import CVips
import Glibc

/// Lanczos resizing across, with vector instructions, as an operation of libvips' pipelines: rows are computed as they are
/// asked for, and a ``Cancellation`` stops it like any other.
///
/// The horizontal step of `resize` has no vector code in libvips 8.14, and takes most of the time of a thumbnail's resize: 55
/// of 66 ms from 2000×1500 to 1600×1200, where this takes 17. Weights are of each column's own place, not of the nearest 64th
/// of a pixel, and nothing is rounded but the result.
extension Image {
    /// Scaled by factors above 0, by `resize` or by what gives the same sooner. Nothing is computed yet.
    ///
    /// - Parameter kernel: libvips' name: `nearest`, `linear`, `cubic`, `lanczos3`.
    public func resampled(across: Double, down: Double, kernel: String) throws(VipsError) -> Image {
        guard VectorCode.isTranslated, kernel == "lanczos3", isNarrowable, across < 1, down <= 1 else {
            return try resized(across, down, kernel)
        }
        // The order of libvips: fewer rows first, which a picture that is being decoded can give one by one.
        return try (down < 1 ? resized(1, down, kernel) : self).narrowed(by: across)
    }

    /// Whether ``narrowed(by:)`` knows the pixels.
    private var isNarrowable: Bool { bands == 3 && sampleFormat == .uint8 }

    private func resized(_ across: Double, _ down: Double, _ kernel: String) throws(VipsError) -> Image {
        try Operation.call(
            "resize",
            ["in": .image(self), "scale": .double(across), "vscale": .double(down), "kernel": .string(kernel)]
        ).image()
    }

    /// Three bands of 8 bits, scaled across by a factor below 1 about the middle.
    func narrowed(by scale: Double) throws(VipsError) -> Image {
        guard let target = vips_image_new() else { throw .last(in: "narrowed") }
        let image = Image(owning: target)
        var origin: [UnsafeMutablePointer<CVips.VipsImage>?] = [handle, nil]
        guard vips_image_pipeline_array(target, VIPS_DEMAND_STYLE_FATSTRIP, &origin) == 0 else {
            throw .last(in: "narrowed")
        }
        let narrowing = Narrowing(of: handle, by: scale)
        target.pointee.Xsize = Int32(narrowing.weights.columns)
        // It goes with the picture.
        let kept = Unmanaged.passRetained(narrowing).toOpaque()
        g_object_set_data_full(
            UnsafeMutableRawPointer(target).assumingMemoryBound(to: GObject.self), "halcyon-narrowing", kept, release)
        guard vips_image_generate(target, vips_start_one, narrow, vips_stop_one, handle, kept) == 0 else {
            throw .last(in: "narrowed")
        }
        return image
    }
}

/// A picture of libvips that is being narrowed, and how. It is used and let go by libvips, on the thread of the job.
private final class Narrowing {
    private let source: UnsafeMutablePointer<CVips.VipsImage>
    let weights: LanczosWeights

    init(of source: UnsafeMutablePointer<CVips.VipsImage>, by scale: Double) {
        g_object_ref(source)
        self.source = source
        weights = LanczosWeights(of: Int(source.pointee.Xsize), by: scale)
    }

    // Whoever lets go of the narrowed picture is inside `VectorCode.alone` already.
    deinit { g_object_unref(source) }
}

private func release(_ narrowing: UnsafeMutableRawPointer?) {
    if let narrowing { Unmanaged<Narrowing>.fromOpaque(narrowing).release() }
}

/// Computes a part of the narrowed picture: libvips' generate function.
private func narrow(
    _ target: UnsafeMutablePointer<VipsRegion>?, _ sequence: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?,
    _ narrowing: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<gboolean>?
) -> Int32 {
    guard let target, let narrowing, let source = sequence?.assumingMemoryBound(to: VipsRegion.self) else { return -1 }
    let weights = Unmanaged<Narrowing>.fromOpaque(narrowing).takeUnretainedValue().weights
    let wanted = target.pointee.valid
    let columns = Int(wanted.left)..<Int(wanted.left + wanted.width)
    let needed = weights.needed(for: columns)
    var part = VipsRect(
        left: Int32(needed.lowerBound), top: wanted.top, width: Int32(needed.count), height: wanted.height)
    guard vips_region_prepare(source, &part) == 0 else { return -1 }
    let stretch = needed.count
    let line = UnsafeMutablePointer<Pixel>.allocate(capacity: 4 * stretch)
    defer { line.deallocate() }
    for row in stride(from: 0, to: Int(wanted.height), by: 4) {
        // Four rows at a time share the weights; the last of a part may be fewer, and are done twice.
        let rows = (0..<4).map { Int32(min(row + $0, Int(wanted.height) - 1)) }
        let from = rows.map { source.pointee.row(part.top + $0, from: part.left) }
        let to = rows.map { target.pointee.row(wanted.top + $0, from: wanted.left) }
        spread(from, stretch, into: line)
        weights.apply(to: line, from: needed.lowerBound, columns, into: to)
    }
    return 0
}

extension VipsRegion {
    /// Where a row of pixels of three bytes begins.
    fileprivate func row(_ y: Int32, from x: Int32) -> UnsafeMutablePointer<UInt8> {
        data + (Int(y - valid.top) * Int(bpl) + 3 * Int(x - valid.left))
    }
}

/// Red, green and blue, and nothing.
typealias Pixel = SIMD4<Float>

/// How columns of a picture become fewer by Lanczos' kernel of three lobes: for each new column where the old ones begin that
/// it is made of, and how much each of them counts. Beyond its edges a picture is what it is at the edge.
struct LanczosWeights {
    /// How many columns come out.
    let columns: Int
    /// How many go into each.
    private let count: Int
    private let starts: [Int]
    private let weights: [Float]

    /// - Parameters:
    ///   - width: columns that there are.
    ///   - scale: above 0, below 1. The middle stays the middle.
    init(of width: Int, by scale: Double) {
        let radius = 3 / scale
        let columns = max(1, Int((Double(width) * scale).rounded()))
        let count = min(width, Int((2 * radius).rounded(.up)) + 1)
        var (starts, weights): ([Int], [Float]) = ([], [])
        starts.reserveCapacity(columns)
        weights.reserveCapacity(columns * count)
        var row = [Double](repeating: 0, count: count)
        for column in 0..<columns {
            let middle = (Double(column) + 0.5 - Double(columns) / 2) / scale + Double(width) / 2 - 0.5
            let first = Int((middle - radius).rounded(.up))
            let start = min(max(0, first), width - count)
            for place in 0..<count { row[place] = 0 }
            var sum = 0.0
            for old in first...Int((middle + radius).rounded(.down)) {
                let weight = Self.kernel((Double(old) - middle) * scale)
                row[min(max(0, old), width - 1) - start] += weight
                sum += weight
            }
            starts.append(start)
            for weight in row { weights.append(Float(weight / sum)) }
        }
        (self.columns, self.count, self.starts, self.weights) = (columns, count, starts, weights)
    }

    /// Lanczos' kernel (Duchon, 1979) at a distance of at most 3: sinc(x) sinc(x/3).
    private static func kernel(_ x: Double) -> Double {
        guard abs(x) > 1e-6 else { return 1 }
        // sin(3a) = 3 sin a - 4 sin³ a saves the other sine.
        let sine = sin(.pi * x / 3)
        return 3 * sine * sine * (3 - 4 * sine * sine) / (.pi * .pi * x * x)
    }

    /// The old columns of which these new ones are made.
    func needed(for columns: Range<Int>) -> Range<Int> {
        starts[columns.lowerBound]..<starts[columns.upperBound - 1] + count
    }

    /// Makes these columns of four rows.
    ///
    /// - Parameters:
    ///   - line: the old pixels, from the column `first` on, of each column the four rows'.
    ///   - rows: where the new pixels of the four rows go, three bytes each.
    func apply(
        to line: UnsafePointer<Pixel>, from first: Int, _ columns: Range<Int>, into rows: [UnsafeMutablePointer<UInt8>]
    ) {
        let (top, second, third, bottom) = (rows[0], rows[1], rows[2], rows[3])
        weights.withUnsafeBufferPointer { weights in
            guard var weight = weights.baseAddress else { return }
            weight += columns.lowerBound * count
            for column in columns {
                var from = line + 4 &* (starts[column] &- first)
                var (a, b, c, d) = (Pixel(), Pixel(), Pixel(), Pixel())
                for place in 0..<count {
                    let share = Pixel(repeating: weight[place])
                    a += from[0] * share
                    b += from[1] * share
                    c += from[2] * share
                    d += from[3] * share
                    from += 4
                }
                weight += count
                let place = 3 &* (column &- columns.lowerBound)
                put(a, top + place)
                put(b, second + place)
                put(c, third + place)
                put(d, bottom + place)
            }
        }
    }
}

/// Lays four rows of `count` pixels of three bytes beside each other.
func spread(_ rows: [UnsafeMutablePointer<UInt8>], _ count: Int, into line: UnsafeMutablePointer<Pixel>) {
    let (top, second, third, bottom) = (rows[0], rows[1], rows[2], rows[3])
    for column in 0..<count {
        let (place, to) = (3 &* column, line + 4 &* column)
        to[0] = pixel(top + place)
        to[1] = pixel(second + place)
        to[2] = pixel(third + place)
        to[3] = pixel(bottom + place)
    }
}

// Between 2^23 and 2^24 the last bits of a Float are its whole number. Where SSE2 is all there is, that is the fast way
// between bytes and Floats.

@inline(__always)
private func pixel(_ bytes: UnsafePointer<UInt8>) -> Pixel {
    let bits = SIMD4<UInt32>(UInt32(bytes[0]), UInt32(bytes[1]), UInt32(bytes[2]), 0) | SIMD4(repeating: 0x4b00_0000)
    return unsafeBitCast(bits, to: Pixel.self) - Pixel(repeating: 8_388_608)
}

/// Rounds to the nearest whole number, and stays within what a byte holds. Half of the range is for what is below 0.
@inline(__always)
private func put(_ pixel: Pixel, _ bytes: UnsafeMutablePointer<UInt8>) {
    let bits = unsafeBitCast(pixel + Pixel(repeating: 12_582_912), to: SIMD4<Int32>.self)
    let numbers = bits &- SIMD4(repeating: 0x4b40_0000)
    bytes[0] = UInt8(clamping: numbers[0])
    bytes[1] = UInt8(clamping: numbers[1])
    bytes[2] = UInt8(clamping: numbers[2])
}
