import HalcyonModel

/// The colour that most of a picture has.
enum DominantColor {
    /// The mean of the fullest of 4096 boxes of equal colour, 16 levels a channel.
    ///
    /// - Parameter pixels: red, green and blue of each pixel, 0 to 255, at least one pixel.
    static func color(of pixels: [UInt8]) -> CSSColor {
        var boxes: [Int: SIMD4<Int>] = [:]
        for place in stride(from: 0, to: pixels.count - 2, by: 3) {
            let (red, green, blue) = (Int(pixels[place]), Int(pixels[place + 1]), Int(pixels[place + 2]))
            boxes[(red / 16 * 16 + green / 16) * 16 + blue / 16, default: .zero] &+= SIMD4(red, green, blue, 1)
        }
        // Of boxes equally full the first by its number, so that the answer does not change from run to run.
        let fullest = boxes.max { ($0.value.w, -$0.key) < ($1.value.w, -$1.key) }?.value ?? SIMD4(0, 0, 0, 1)
        func mean(_ sum: Int) -> UInt8 { UInt8((sum + fullest.w / 2) / fullest.w) }
        return CSSColor(red: mean(fullest.x), green: mean(fullest.y), blue: mean(fullest.z))
    }
}
