import Measuring
import Vips

extension RenderBenchmark {
    /// What the encoders' settings cost and give: CPU time, bytes, and likeness to the pixels that were encoded.
    static func compareEncoders(_ subjects: Subjects) async throws {
        say("800×600: ms CPU (quartiles), bytes, bits a pixel, likeness (mean SSIM of brightness)")
        for setting in settings {
            let scores = try await takeTurns(
                [
                    Contender { try subjects.pixels.map(setting.encode) }
                ], budget: 1)
            let files = scores[0].outcome
            let alike = try zip(files, subjects.pixels).map { file, pixels in
                structuralSimilarity(
                    try brightness(of: EncodedImage(file).open()),
                    try brightness(of: Image(pixels: pixels, width: 800, height: 600, bands: 3)))
            }
            let count = Double(files.count)
            let bytes = files.reduce(0) { $0 + $1.count } / files.count
            let spread = quartiles(scores[0].seconds)
            say(
                "\(setting.format.rawValue) \(setting.text)".column(52)
                    + decimal(scores[0].milliseconds / count, 1).column(8, right: true)
                    + " (\(decimal(spread.low * 1e3 / count, 1))–\(decimal(spread.high * 1e3 / count, 1)))".column(18)
                    + String(bytes).column(8, right: true)
                    + decimal(Double(bytes) * 8 / 480_000, 3).column(8, right: true)
                    + decimal(alike.reduce(0, +) / count, 4).column(9, right: true))
        }
    }

    static func brightness(of image: Image) throws -> [UInt8] {
        try Operation.call("colourspace", ["in": .image(image), "space": "b-w"]).image().pixels()
    }

    /// The mean of SSIM (Wang et al., 2004) over windows of 8×8 pixels, 4 apart, of two grey pictures 800 pixels wide.
    static func structuralSimilarity(_ left: [UInt8], _ right: [UInt8]) -> Double {
        var (sum, windows) = (0.0, 0)
        for top in stride(from: 0, through: 600 - 8, by: 4) {
            for start in stride(from: 0, through: 800 - 8, by: 4) {
                var (x, y, xx, yy, xy) = (0, 0, 0, 0, 0)
                for row in top..<top + 8 {
                    for place in row * 800 + start..<row * 800 + start + 8 {
                        let (a, b) = (Int(left[place]), Int(right[place]))
                        (x, y, xx, yy, xy) = (x + a, y + b, xx + a * a, yy + b * b, xy + a * b)
                    }
                }
                let (meanX, meanY) = (Double(x) / 64, Double(y) / 64)
                let (varX, varY) = (Double(xx) / 64 - meanX * meanX, Double(yy) / 64 - meanY * meanY)
                let both = Double(xy) / 64 - meanX * meanY
                sum +=
                    (2 * meanX * meanY + 6.5025) * (2 * both + 58.5225)
                    / ((meanX * meanX + meanY * meanY + 6.5025) * (varX + varY + 58.5225))
                windows += 1
            }
        }
        return sum / Double(windows)
    }

    private static let settings: [Setting] = {
        var all = [75, 80, 85].map { Setting(.jpeg, "Q=\($0)") }
        all += [
            "Q=80 optimize-coding=true", "Q=80 interlace=true", "Q=80 optimize-coding=true trellis-quant=true",
            "Q=80 subsample-mode=off",
        ].map { Setting(.jpeg, $0) }
        all += (0...6).map { Setting(.webp, "Q=80 effort=\($0)") }
        all += [1, 2, 4].map { Setting(.webp, "Q=75 effort=\($0)") }
        all.append(Setting(.webp, "Q=80 effort=4 smart-subsample=true"))
        all += [0, 2, 4, 6].map { Setting(.webp, "lossless=true effort=\($0)") }
        all += (0...4).map { Setting(.heif, "compression=av1 Q=50 effort=\($0)") }
        all += [53, 56].map { Setting(.heif, "compression=av1 Q=\($0) effort=0") }
        // libspng's filters: 8 none, 16 sub, 32 up, 64 average, 128 Paeth; 248 chooses for each row.
        for filter in [8, 16, 32, 128, 248] {
            all += [1, 2, 3, 4, 6].map { Setting(.png, "filter=\(filter) compression=\($0)") }
        }
        all += [Setting(.png, "filter=248 compression=9"), Setting(.png, "palette=true")]
        all += [1, 3, 7].map { Setting(.gif, "effort=\($0)") }
        if Format.jxl.canSave { all += [3, 4, 5, 7].map { Setting(.jxl, "Q=75 effort=\($0)") } }
        return all
    }()
}

/// A saver and its options, as one writes them on libvips' command line.
private struct Setting: Sendable {
    let format: Format
    let text: String

    init(_ format: Format, _ text: String) {
        self.format = format
        self.text = text
    }

    func encode(_ pixels: [UInt8]) throws -> [UInt8] {
        var options: Operation.Arguments = [:]
        for word in text.split(separator: " ") {
            let parts = word.split(separator: "=").map(String.init)
            options[parts[0]] = Int(parts[1]).map(Value.int) ?? Bool(parts[1]).map(Value.bool) ?? .string(parts[1])
        }
        return try Image(pixels: pixels, width: 800, height: 600, bands: 3).encoded(as: format, options, keeping: [])
    }
}
