import Glibc
import HalcyonModel
import Vips

/// The results of analyzing an output.
struct ImageAnalysis {
    var blurhash: String?
    var dominantColor: String?

    /// Analyzes a small copy of the image, of at most 64 pixels per side, without alpha.
    init(_ wanted: Set<AnalysisKind>, of image: Image) throws(VipsError) {
        guard !wanted.isEmpty else { return }
        let small = try image.flattened(onto: .white).withTimeout(64).inColour()
        let (pixels, width, height) = (try small.pixels(), small.width, small.height)
        if wanted.contains(.blurhash) {
            // Four components along the longer side and three along the other, as the authors of BlurHash recommend.
            let components = width >= height ? (x: 4, y: 3) : (x: 3, y: 4)
            blurhash = BlurHash.text(of: pixels, width: width, height: height, components: components)
        }
        if wanted.contains(.dominantColor) {
            dominantColor = String(DominantColor.color(of: pixels).hexadecimal.prefix(7))
        }
    }
}

extension Image {
    fileprivate func withTimeout(_ side: Int) throws(VipsError) -> Image {
        let scale = Double(side) / Double(max(width, height))
        guard scale < 1 else { return self }
        // Neither side may become empty.
        let (across, down) = (max(scale, 1 / Double(width)), max(scale, 1 / Double(height)))
        return try calling("resize", ["scale": .double(across), "vscale": .double(down), "kernel": "linear"])
    }
}

/// The dominant color of an image.
enum DominantColor {
    /// Returns the mean of the fullest of 4096 boxes of similar colors, with 16 levels per channel.
    ///
    /// - Parameter pixels: The red, green and blue samples of each pixel, 0 to 255; at least one pixel.
    static func color(of pixels: [UInt8]) -> CSSColor {
        var boxes: [Int: SIMD4<Int>] = [:]
        for index in stride(from: 0, to: pixels.count - 2, by: 3) {
            let (red, green, blue) = (Int(pixels[index]), Int(pixels[index + 1]), Int(pixels[index + 2]))
            boxes[(red / 16 * 16 + green / 16) * 16 + blue / 16, default: .zero] &+= SIMD4(red, green, blue, 1)
        }
        // Of equally full boxes the first one is used, so that the result is deterministic.
        let fullest = boxes.max { ($0.value.w, -$0.key) < ($1.value.w, -$1.key) }?.value ?? SIMD4(0, 0, 0, 1)
        func mean(_ sum: Int) -> UInt8 { UInt8((sum + fullest.w / 2) / fullest.w) }
        return CSSColor(red: mean(fullest.x), green: mean(fullest.y), blue: mean(fullest.z))
    }
}

/// The BlurHash of an image: its lowest frequencies as a short text (https://blurha.sh).
enum BlurHash {
    /// - Parameters:
    ///   - pixels: The red, green and blue samples of each pixel, 0 to 255, row by row.
    ///   - components: The number of components across and down, each 1 to 9.
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
                        let index = (y * width + x) * 3
                        sum += columns[i][x] * rows[j][y] * SIMD3(light[index], light[index + 1], light[index + 2])
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
