import Glibc

/// The BlurHash of a picture: its lowest frequencies as a short text (https://blurha.sh, the algorithm's own description).
enum BlurHash {
    /// - Parameters:
    ///   - pixels: red, green and blue of each pixel, 0 to 255, row by row.
    ///   - components: how many frequencies across and down, each 1 to 9.
    static func text(of pixels: [UInt8], width: Int, height: Int, components: (x: Int, y: Int)) -> String {
        let light = pixels.map { linear[Int($0)] }
        let columns = cosines(components.x, width)
        let rows = cosines(components.y, height)
        var factors: [SIMD3<Double>] = []
        for j in 0..<components.y {
            for i in 0..<components.x {
                var sum = SIMD3<Double>.zero
                for y in 0..<height {
                    for x in 0..<width {
                        let place = (y * width + x) * 3
                        sum += columns[i][x] * rows[j][y] * SIMD3(light[place], light[place + 1], light[place + 2])
                    }
                }
                factors.append(sum * ((i == 0 && j == 0 ? 1 : 2) / Double(width * height)))
            }
        }
        let greatest = factors.dropFirst().map { max(abs($0.x), abs($0.y), abs($0.z)) }.max() ?? 0
        let quantized = max(0, min(82, Int(greatest * 166 - 0.5)))
        let scale = Double(quantized + 1) / 166
        var text = digits(components.x - 1 + (components.y - 1) * 9, 1) + digits(factors.count > 1 ? quantized : 0, 1)
        text += digits(signal(factors[0].x) << 16 + signal(factors[0].y) << 8 + signal(factors[0].z), 4)
        for factor in factors.dropFirst() {
            func level(_ value: Double) -> Int {
                let root = pow(abs(value / scale), 0.5)
                return max(0, min(18, Int((value < 0 ? -root : root) * 9 + 9.5)))
            }
            text += digits((level(factor.x) * 19 + level(factor.y)) * 19 + level(factor.z), 2)
        }
        return text
    }

    private static func cosines(_ count: Int, _ side: Int) -> [[Double]] {
        (0..<count).map { frequency in
            (0..<side).map { cos(.pi * Double(frequency) * Double($0) / Double(side)) }
        }
    }

    private static let linear: [Double] = (0..<256).map { SRGB.light(Double($0) / 255) }

    private static func signal(_ light: Double) -> Int { Int(SRGB.signal(max(0, min(1, light))) * 255 + 0.5) }

    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    private static func digits(_ number: Int, _ count: Int) -> String {
        var rest = number
        var digits: [UInt8] = []
        for _ in 0..<count {
            digits.append(alphabet[rest % 83])
            rest /= 83
        }
        return String(decoding: digits.reversed(), as: UTF8.self)
    }
}
