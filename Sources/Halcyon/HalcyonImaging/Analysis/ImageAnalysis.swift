import Glibc
import HalcyonModel
import Hashing
import Vips

/// The results of analyzing an output.
struct ImageAnalysis {
    var blurhash: String?
    var dominantColor: String?
    var palette: [String]?
    var thumbhash: String?
    var phash: String?

    /// Analyzes small copies of the image. All are without alpha and at most 64 pixels per side, except that for the
    /// ThumbHash.
    init(_ wanted: Set<AnalysisKind>, of image: Image) throws(VipsError) {
        guard !wanted.isEmpty else { return }
        if wanted.contains(.thumbhash) {
            let small = try image.fitting(ThumbHash.longestSide, .low).inColour()
            thumbhash = Base64.encode(
                ThumbHash.bytes(
                    of: try small.pixels(), width: small.width, height: small.height, bands: small.bands))
        }
        let opaque = try image.flattened(onto: .white)
        if wanted.contains(.phash) { phash = PerceptualHash.text(of: try opaque.squared(PerceptualHash.side).pixels()) }
        guard !wanted.isDisjoint(with: [.blurhash, .dominantColor, .palette]) else { return }
        let small = try opaque.fitting(64).inColour()
        let (pixels, width, height) = (try small.pixels(), small.width, small.height)
        if wanted.contains(.blurhash) {
            // Four components along the longer side and three along the other, as the authors of BlurHash recommend.
            let components = width >= height ? (x: 4, y: 3) : (x: 3, y: 4)
            blurhash = BlurHash.text(of: pixels, width: width, height: height, components: components)
        }
        if wanted.contains(.dominantColor) {
            dominantColor = String(DominantColor.color(of: pixels).hexadecimal.prefix(7))
        }
        if wanted.contains(.palette) {
            palette = Palette.colors(of: pixels).map { String($0.hexadecimal.prefix(7)) }
        }
    }
}

extension Image {
    /// Returns a copy whose longer side is at most `side` pixels.
    /// - Parameter quality: The interpolation of an image with alpha; nil for one without.
    fileprivate func fitting(_ side: Int, _ quality: InterpolationQuality? = nil) throws(VipsError) -> Image {
        let scale = Double(side) / Double(max(width, height))
        guard scale < 1 else { return self }
        // Neither side may become empty.
        let (across, down) = (max(scale, 1 / Double(width)), max(scale, 1 / Double(height)))
        if let quality { return try scaled(across, down, quality) }
        return try calling("resize", ["scale": .double(across), "vscale": .double(down), "kernel": "linear"])
    }

    /// Returns a copy with three bands and sides of `side` pixels.
    fileprivate func squared(_ side: Int) throws(VipsError) -> Image {
        let (across, down) = (Double(side) / Double(width), Double(side) / Double(height))
        return try calling("resize", ["scale": .double(across), "vscale": .double(down), "kernel": "lanczos3"])
            .inColour()
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
    /// The durations of the frames of the reference in milliseconds.
    private let durations: [Int]
    private var references: [Reference] = []

    /// - Parameter image: The reference. For an animation, the strip of its frames.
    init(to image: Image, _ cancellation: Cancellation?) throws(VipsError) {
        let side = min(image.width, image.pageHeight)
        factor = max(1, Int((Double(side) / 256).rounded()))
        durations = image.frameDurations
        for ground in Self.grounds.prefix(image.hasAlpha ? 2 : 1) {
            let luma = try image.luma(over: ground, averaging: factor).inMemory(cancellation)
            let mean = try luma.windowed().inMemory(cancellation)
            let variance = try luma.times(luma).windowed().minus(mean.times(mean)).inMemory(cancellation)
            references.append(Reference(luma: luma, mean: mean, variance: variance))
        }
    }

    /// Returns the similarity of a file: 1 for equal luma, less for anything else. The frames of an animation are
    /// compared with those that are shown at the same time.
    func similarity(ofFile file: [UInt8], _ cancellation: Cancellation?) throws -> Double {
        let encoded = try EncodedImage(file)
        let options: Operation.Arguments = [.webp, .gif].contains(encoded.format) ? ["n": -1] : [:]
        let image = try encoded.open(options).inMemory(cancellation)
        return try similarity(of: image.withFrames(lasting: durations), cancellation)
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
    /// The time in milliseconds for which each loaded frame is shown. As in browsers and libvips, frames of up to 10 ms
    /// are shown for 100 ms.
    fileprivate var frameDurations: [Int] {
        let delays = frameDelays
        return (0..<frames).map { index in index < delays.count && delays[index] > 10 ? delays[index] : 100 }
    }

    /// Returns an animation with a frame for each of these durations: the frame that is shown in the middle of it.
    /// Encoders join frames that are equal, or almost equal, to one that is shown for longer.
    fileprivate func withFrames(lasting durations: [Int]) throws(VipsError) -> Image {
        guard frames != durations.count else { return self }
        let own = frameDurations
        // The totals differ by rounding.
        let scale = Double(own.reduce(0, +)) / Double(durations.reduce(0, +))
        var repeated: [Image] = []
        var (index, end, start) = (0, own[0], 0)
        for duration in durations {
            let middle = (Double(start) + Double(duration) / 2) * scale
            while middle >= Double(end), index + 1 < own.count {
                index += 1
                end += own[index]
            }
            repeated.append(try page(index))
            start += duration
        }
        return try .strip(repeated)
    }

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
        let deviation = 1.5
        let weights = (-5...5).map { (distance: Int) -> Double in
            exp(-Double(distance * distance) / (2 * deviation * deviation))
        }
        let kernel = try Image(matrix: [weights], scale: weights.reduce(0, +))
        let means = try calling("convsep", ["mask": .image(kernel), "precision": "float"])
        guard width > 10, height > 10 else { return means }
        return try means.cropped(5, 5, width - 10, height - 10)
    }

    fileprivate func times(_ other: Image) throws(VipsError) -> Image { try combined("multiply", other) }
    fileprivate func plus(_ other: Image) throws(VipsError) -> Image { try combined("add", other) }
    fileprivate func minus(_ other: Image) throws(VipsError) -> Image { try combined("subtract", other) }

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

/// The most important colors of an image.
enum Palette {
    /// The maximum number of colors.
    static let mostColors = 8
    /// The mean squared distance of pixels from their color below which no further color is added.
    private static let smallestError = 12.0

    private struct Cluster {
        var colors: [SIMD3<Double>]
        var mean: SIMD3<Double>
        /// The sum of the squared distances from the mean, per channel.
        var error: SIMD3<Double>

        init(_ colors: [SIMD3<Double>]) {
            self.colors = colors
            let mean = colors.reduce(.zero, +) / Double(max(1, colors.count))
            self.mean = mean
            error = colors.reduce(into: .zero) { $0 += ($1 - mean) * ($1 - mean) }
        }

        /// The two halves on both sides of the mean, along the channel that varies most.
        var halves: [Cluster] {
            let channel = (0..<3).max { error[$0] < error[$1] } ?? 0
            let isLow = { (color: SIMD3<Double>) in color[channel] <= mean[channel] }
            return [Cluster(colors.filter(isLow)), Cluster(colors.filter { !isLow($0) })]
        }
    }

    /// Returns the colors, the most frequent one first: a median cut that divides the cluster with the largest error,
    /// followed by four rounds of k-means.
    ///
    /// - Parameter pixels: The red, green and blue samples of each pixel, 0 to 255; at least one pixel.
    static func colors(of pixels: [UInt8]) -> [CSSColor] {
        let all = stride(from: 0, to: pixels.count - 2, by: 3).map { SIMD3(samples: pixels, at: $0) }
        var clusters = [Cluster(all)]
        while clusters.count < mostColors {
            let worst = clusters.indices.max { clusters[$0].error.sum() < clusters[$1].error.sum() } ?? 0
            let cluster = clusters[worst]
            guard cluster.error.sum() > smallestError * Double(cluster.colors.count) else { break }
            clusters.replaceSubrange(worst...worst, with: cluster.halves)
        }
        for _ in 0..<4 {
            var members = [[SIMD3<Double>]](repeating: [], count: clusters.count)
            for color in all {
                var (nearest, least) = (0, Double.infinity)
                for (index, cluster) in clusters.enumerated() {
                    let difference = color - cluster.mean
                    let distance = (difference * difference).sum()
                    if distance < least { (nearest, least) = (index, distance) }
                }
                members[nearest].append(color)
            }
            clusters = members.filter { !$0.isEmpty }.map { Cluster($0) }
        }
        let ranked = clusters.map { cluster in
            (count: cluster.colors.count, color: CSSColor(cluster.mean))
        }
        return ranked.sorted { ($0.count, $1.color.hexadecimal) > ($1.count, $0.color.hexadecimal) }.map(\.color)
    }
}

extension CSSColor {
    fileprivate init(_ channels: SIMD3<Double>) {
        func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(255, value.rounded()))) }
        self.init(red: byte(channels.x), green: byte(channels.y), blue: byte(channels.z))
    }
}

/// Cosine transforms of samples in rows.
private struct CosineTransform {
    let samples: [Double]
    let width: Int
    let height: Int

    /// Returns the mean product of the samples with the basis function of these frequencies.
    func factor(_ x: Int, _ y: Int, _ columns: [[Double]], _ rows: [[Double]]) -> Double {
        var sum = 0.0
        for row in 0..<height {
            var line = 0.0
            for column in 0..<width { line += samples[row * width + column] * columns[x][column] }
            sum += line * rows[y][row]
        }
        return sum / Double(width * height)
    }

    /// Returns the cosines of the lowest `count` frequencies at the centers of `side` samples.
    static func cosines(_ count: Int, _ side: Int) -> [[Double]] {
        (0..<count).map { frequency in
            let step = Double.pi / Double(side) * Double(frequency)
            return (0..<side).map { cos(step * (Double($0) + 0.5)) }
        }
    }
}

/// The perceptual hash of an image: a bit for each of its lowest frequencies that is above their median. The bits are
/// those of `phash` of the Python package imagehash.
enum PerceptualHash {
    /// The side of the square that is transformed, in pixels.
    static let side = 32
    private static let frequencies = 8

    /// - Parameter pixels: The red, green and blue samples of ``side`` × ``side`` pixels.
    static func text(of pixels: [UInt8]) -> String {
        let luma: [Double] = stride(from: 0, to: pixels.count - 2, by: 3).map { index in
            let (red, green, blue) = (Double(pixels[index]), Double(pixels[index + 1]), Double(pixels[index + 2]))
            return 0.299 * red + 0.587 * green + 0.114 * blue
        }
        let transform = CosineTransform(samples: luma, width: side, height: side)
        let cosines = CosineTransform.cosines(frequencies, side)
        // Rounded, so that the rounding errors of a plain image do not become bits.
        let factors: [Double] = (0..<frequencies * frequencies).map { index in
            let (x, y) = (index % frequencies, index / frequencies)
            return (transform.factor(x, y, cosines, cosines) * 1e6).rounded()
        }
        let sorted = factors.sorted()
        let median = (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
        let bits = factors.reduce(UInt64(0)) { bits, factor in bits << 1 | (factor > median ? 1 : 0) }
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

/// The ThumbHash of an image (https://evanw.github.io/thumbhash/): its lowest frequencies of luminance, two color
/// differences and alpha, with its aspect ratio, in about 25 bytes.
enum ThumbHash {
    /// The maximum length of a side, in pixels.
    static let longestSide = 100

    private struct Channel {
        let constant: Double
        let scale: Double
        /// The other factors from 0 to 1, in the order of the hash.
        let factors: [Double]

        init(_ samples: [Double], _ width: Int, _ height: Int, _ across: Int, _ down: Int) {
            let transform = CosineTransform(samples: samples, width: width, height: height)
            let columns = CosineTransform.cosines(across, width)
            let rows = CosineTransform.cosines(down, height)
            var (constant, others): (Double, [Double]) = (0, [])
            for y in 0..<down {
                // A triangle of the lowest frequencies.
                for x in 0..<across where x * down < across * (down - y) {
                    // Rounded, so that the hash of a plain image does not consist of rounding errors.
                    let factor = (transform.factor(x, y, columns, rows) * 1e9).rounded() / 1e9
                    if x == 0, y == 0 { constant = factor } else { others.append(factor) }
                }
            }
            let scale = others.map(abs).max() ?? 0
            self.constant = constant
            self.scale = scale
            factors = others.map { scale > 0 ? 0.5 + 0.5 / scale * $0 : 0 }
        }
    }

    /// - Parameters:
    ///   - pixels: The samples of each pixel, 0 to 255, row by row.
    ///   - width: The number of columns, at most ``longestSide``.
    ///   - height: The number of rows, at most ``longestSide``.
    ///   - bands: 3 for red, green and blue, 4 with alpha.
    static func bytes(of pixels: [UInt8], width: Int, height: Int, bands: Int) -> [UInt8] {
        let colors: [SIMD4<Double>] = stride(from: 0, to: pixels.count, by: bands).map { index in
            let (red, green, blue) = (Double(pixels[index]), Double(pixels[index + 1]), Double(pixels[index + 2]))
            return SIMD4(red, green, blue, bands == 4 ? Double(pixels[index + 3]) : 255) / 255
        }
        var (opacity, sum) = (0.0, SIMD4<Double>.zero)
        for color in colors {
            opacity += color.w
            sum += color * color.w
        }
        let hasAlpha = opacity < Double(width * height)
        let mean = opacity > 0 ? sum / opacity : .zero
        var (luminance, yellow, red): ([Double], [Double], [Double]) = ([], [], [])
        for color in colors {
            let shown = mean * (1 - color.w) + color * color.w
            luminance.append((shown.x + shown.y + shown.z) / 3)
            yellow.append((shown.x + shown.y) / 2 - shown.z)
            red.append(shown.x - shown.y)
        }
        // Fewer frequencies of luminance leave room for those of alpha.
        let limit = hasAlpha ? 5.0 : 7.0
        let longest = Double(max(width, height))
        let across = max(1, Int((limit * Double(width) / longest).rounded()))
        let down = max(1, Int((limit * Double(height) / longest).rounded()))
        let l = Channel(luminance, width, height, max(3, across), max(3, down))
        let p = Channel(yellow, width, height, 3, 3)
        let q = Channel(red, width, height, 3, 3)
        let isLandscape = width > height
        func level(_ value: Double, _ most: Double) -> Int { Int((value * most).rounded()) }
        func balance(_ value: Double) -> Int { Int((31.5 + 31.5 * value).rounded()) }
        var first = level(l.constant, 63) | balance(p.constant) << 6 | balance(q.constant) << 12
        first |= level(l.scale, 31) << 18 | (hasAlpha ? 1 << 23 : 0)
        var second = (isLandscape ? down : across) | level(p.scale, 63) << 3 | level(q.scale, 63) << 9
        second |= isLandscape ? 1 << 15 : 0
        var bytes = [first, first >> 8, first >> 16, second, second >> 8].map { UInt8(truncatingIfNeeded: $0) }
        var channels = [l, p, q]
        if hasAlpha {
            let a = Channel(colors.map { $0.w }, width, height, 5, 5)
            bytes.append(UInt8(level(a.constant, 15) | level(a.scale, 15) << 4))
            channels.append(a)
        }
        let nibbles = channels.flatMap { $0.factors }.map { UInt8(level($0, 15)) }
        for index in stride(from: 0, to: nibbles.count, by: 2) {
            bytes.append(nibbles[index] | (index + 1 < nibbles.count ? nibbles[index + 1] << 4 : 0))
        }
        return bytes
    }
}
