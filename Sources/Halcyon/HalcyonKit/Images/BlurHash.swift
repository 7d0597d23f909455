import Foundation

/// A BlurHash: the lowest frequencies of an image as a short text (https://blurha.sh). Jobs with
/// ``ImageJob/Output/blurhash`` get one in their event. A pure value.
public struct BlurHash: Sendable, Hashable {
    /// The text.
    public let text: String
    /// The number of components across and down, each 1 to 9.
    public let columns, rows: Int
    /// The mean color of the image, in sRGB.
    public let averageColor: Bitmap
    /// The factors of the cosines, row by row: red, green and blue light, 0 to 1.
    private let factors: [SIMD3<Double>]

    /// Parses a BlurHash.
    /// - Throws: `HalcyonError.invalidRequest` if the text is not a BlurHash.
    public init(_ text: String) throws(HalcyonError) {
        func refusal(_ reason: String) -> HalcyonError {
            .invalidRequest("\"\(text.prefix(60))\" is not a BlurHash: \(reason)")
        }
        var digits: [Int] = []
        for byte in text.utf8 {
            guard let digit = Self.digits[byte] else { throw refusal("it has a character that is not a digit") }
            digits.append(digit)
        }
        guard digits.count >= 6 else { throw refusal("it has fewer than 6 characters") }
        guard digits[0] < 81 else { throw refusal("it has more than 9 components across or down") }
        (columns, rows) = (digits[0] % 9 + 1, digits[0] / 9 + 1)
        let count = 4 + 2 * columns * rows
        guard digits.count == count else {
            throw refusal("\(columns) by \(rows) components need \(count) characters, not \(digits.count)")
        }
        let average = digits[2..<6].reduce(0) { $0 * 83 + $1 }
        guard average < 1 << 24 else { throw refusal("its mean color is out of range") }
        let channels = [average >> 16, average >> 8 & 255, average & 255].map { UInt8($0) }
        var factors = [SIMD3(Self.light[Int(channels[0])], Self.light[Int(channels[1])], Self.light[Int(channels[2])])]
        let scale = Double(digits[1] + 1) / 166
        for index in stride(from: 6, to: digits.count, by: 2) {
            let levels = digits[index] * 83 + digits[index + 1]
            guard levels < 19 * 19 * 19 else { throw refusal("component \(index / 2 - 2) is out of range") }
            func factor(_ level: Int) -> Double {
                let root = Double(level - 9) / 9
                return (root < 0 ? -1 : 1) * root * root * scale
            }
            factors.append(SIMD3(factor(levels / 361), factor(levels / 19 % 19), factor(levels % 19)))
        }
        self.text = text
        self.factors = factors
        averageColor = Bitmap(width: 1, height: 1, pixels: Data(channels + [255]))
    }

    /// Decodes the BlurHash into a bitmap, which is blurred: 32 pixels per side are enough for any view.
    /// - Parameters:
    ///   - width: The width of the bitmap in pixels, 1 to 1024.
    ///   - height: The height of the bitmap in pixels, 1 to 1024.
    ///   - punch: The contrast: 1 is that of the image, and a larger number has more.
    /// - Throws: `HalcyonError.invalidRequest` if a side is out of range.
    public func bitmap(width: Int, height: Int, punch: Double = 1) throws(HalcyonError) -> Bitmap {
        guard (1...1024).contains(width), (1...1024).contains(height) else {
            throw .invalidRequest("\(width) by \(height) pixels: each side of a placeholder has 1 to 1024")
        }
        func cosines(_ count: Int, _ side: Int) -> [[Double]] {
            (0..<side).map { place in
                (0..<count).map { cos(.pi * Double($0) * Double(place) / Double(side)) }
            }
        }
        let (across, down) = (cosines(columns, width), cosines(rows, height))
        let scaled = [factors[0]] + factors.dropFirst().map { $0 * punch }
        var pixels = Data(capacity: width * height * 4)
        for y in 0..<height {
            // The part of each column of factors that is the same in the whole row of pixels.
            let row = (0..<columns).map { column in
                (0..<rows).reduce(SIMD3<Double>.zero) { $0 + scaled[$1 * columns + column] * down[y][$1] }
            }
            for x in 0..<width {
                let light = zip(row, across[x]).reduce(SIMD3<Double>.zero) { $0 + $1.0 * $1.1 }
                pixels.append(contentsOf: [Self.sample(light.x), Self.sample(light.y), Self.sample(light.z), 255])
            }
        }
        return Bitmap(width: width, height: height, pixels: pixels)
    }

    /// The values of the digits, by their ASCII codes.
    private static let digits: [UInt8: Int] = Dictionary(
        uniqueKeysWithValues: zip(
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8, 0...))

    /// The light of each sRGB sample (IEC 61966-2-1).
    private static let light: [Double] = (0...255).map { sample in
        let signal = Double(sample) / 255
        return signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
    }

    /// The sRGB sample for a light, which is limited to 0 to 1.
    private static func sample(_ light: Double) -> UInt8 {
        let light = max(0, min(1, light))
        let signal = light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
        return UInt8(signal * 255 + 0.5)
    }
}

/// A small image without compression, such as a decoded ``BlurHash``.
public struct Bitmap: Sendable, Hashable {
    /// The size in pixels.
    public let width, height: Int
    /// The pixels row by row, from the top left corner: red, green, blue and alpha, 8 bits each, in sRGB. They are
    /// opaque, so that it does not matter whether alpha is premultiplied.
    public let pixels: Data

    init(width: Int, height: Int, pixels: Data) { (self.width, self.height, self.pixels) = (width, height, pixels) }

    /// Creates a bitmap of one pixel.
    /// - Parameter color: A color as `#rrggbb`, such as ``ImageEvent/Variant/dominantColor``.
    /// - Throws: `HalcyonError.invalidRequest` if the text is not such a color.
    public init(color: String) throws(HalcyonError) {
        let digits = color.dropFirst()
        guard color.hasPrefix("#"), digits.utf8.count == 6, digits.allSatisfy(\.isHexDigit),
            let value = UInt32(digits, radix: 16)
        else { throw .invalidRequest("\"\(color.prefix(60))\" is not a color; expected #rrggbb") }
        let channels = [value >> 16, value >> 8 & 255, value & 255].map { UInt8($0) }
        self.init(width: 1, height: 1, pixels: Data(channels + [255]))
    }
}
