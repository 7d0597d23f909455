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

/// The structural similarity of images to one image: the mean SSIM index of their luma (Wang, Bovik, Sheikh and
/// Simoncelli, "Image Quality Assessment: From Error Visibility to Structural Similarity", IEEE Transactions on Image
/// Processing 13(4), 2004).
///
/// With the constants of the authors: Gaussian windows of 11×11 pixels with a standard deviation of 1.5, inside the
/// image; K1 = 0.01, K2 = 0.03 and L = 255; and, as in their program ssim.m, luma that is averaged over squares of
/// F = max(1, round(shorter side / 256)) pixels, because that is about the resolution at which the eye sees an image.
/// Luma is that of BT.601, of the encoded samples. Images with alpha are compared over white and over black, and the
/// lower index counts.
struct Similarity {
    /// Luma and its local means and variances.
    private struct Reference {
        let luma: Image
        let mean: Image
        let variance: Image
    }

    private static let (k1, k2) = ((0.01 * 255) * (0.01 * 255), (0.03 * 255) * (0.03 * 255))
    private static let grounds = [CSSColor.white, .black]
    private let factor: Int
    private var references: [Reference] = []

    /// - Parameter image: The reference. For an animation, the strip of its frames.
    init(to image: Image, _ cancellation: Cancellation?) throws(VipsError) {
        let side = min(image.width, image.pageHeight)
        factor = max(1, Int((Double(side) / 256).rounded()))
        for ground in Self.grounds.prefix(image.hasAlpha ? 2 : 1) {
            let luma = try image.luma(over: ground, averaging: factor).inMemory(cancellation)
            let mean = try luma.windowed().inMemory(cancellation)
            let variance = try luma.times(luma).windowed().minus(mean.times(mean)).inMemory(cancellation)
            references.append(Reference(luma: luma, mean: mean, variance: variance))
        }
    }

    /// Returns the similarity of a file: 1 for equal luma, less for anything else.
    func similarity(ofFile file: [UInt8], _ cancellation: Cancellation?) throws -> Double {
        let encoded = try EncodedImage(file)
        let options: Operation.Arguments = [.webp, .gif].contains(encoded.format) ? ["n": -1] : [:]
        return try similarity(of: encoded.open(options).inMemory(cancellation), cancellation)
    }

    /// Returns the similarity of an image of the same size.
    func similarity(of image: Image, _ cancellation: Cancellation?) throws(VipsError) -> Double {
        var lowest = 1.0
        for (reference, ground) in zip(references, Self.grounds) {
            let luma = try image.luma(over: ground, averaging: factor).inMemory(cancellation)
            let mean = try luma.windowed()
            let variance = try luma.times(luma).windowed().minus(mean.times(mean))
            let covariance = try luma.times(reference.luma).windowed().minus(mean.times(reference.mean))
            let luminance = try mean.times(reference.mean).linear(2, Self.k1)
            let structure = try covariance.linear(2, Self.k2)
            let powers = try mean.times(mean).plus(reference.mean.times(reference.mean)).linear(1, Self.k1)
            let spread = try variance.plus(reference.variance).linear(1, Self.k2)
            let index = try luminance.times(structure).combined("divide", powers.times(spread))
            lowest = min(lowest, try index.averages(cancellation)[0])
        }
        return lowest
    }
}

extension Image {
    /// The luma over an opaque color in double precision, averaged over squares. Incomplete squares at the right and at
    /// the bottom are dropped.
    fileprivate func luma(over ground: CSSColor, averaging factor: Int) throws(VipsError) -> Image {
        let opaque = try inSRGB(keepingProfile: true).flattened(onto: ground)
        let exact = try opaque.calling("cast", ["format": "double"])
        let luma =
            opaque.bands < 3
            ? exact : try exact.calling("recomb", ["m": .image(try Image(matrix: [[0.299, 0.587, 0.114]]))])
        guard factor > 1 else { return luma }
        let whole = try luma.cropped(0, 0, width / factor * factor, height / factor * factor)
        return try whole.calling("shrink", ["hshrink": .int(factor), "vshrink": .int(factor)])
    }

    /// The Gaussian mean around each pixel whose window lies inside the image; around each pixel if the image is
    /// smaller than a window.
    fileprivate func windowed() throws(VipsError) -> Image {
        let weights = (-5...5).map { exp(-Double($0 * $0) / (2 * 1.5 * 1.5)) }
        let kernel = try Image(matrix: [weights], scale: weights.reduce(0, +))
        let means = try calling("convsep", ["mask": .image(kernel), "precision": "float"])
        guard width > 10, height > 10 else { return means }
        return try means.cropped(5, 5, width - 10, height - 10)
    }

    fileprivate func times(_ other: Image) throws(VipsError) -> Image { try combined("multiply", other) }
    fileprivate func plus(_ other: Image) throws(VipsError) -> Image { try combined("add", other) }
    fileprivate func minus(_ other: Image) throws(VipsError) -> Image { try combined("subtract", other) }

    fileprivate func combined(_ name: String, _ other: Image) throws(VipsError) -> Image {
        try Operation.call(name, ["left": .image(self), "right": .image(other)]).image()
    }

    fileprivate func linear(_ factor: Double, _ offset: Double) throws(VipsError) -> Image {
        try calling("linear", ["a": .doubles([factor]), "b": .doubles([offset])])
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
