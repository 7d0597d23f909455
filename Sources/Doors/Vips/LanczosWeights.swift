import Glibc

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
