// The canonical texts that are hashed into cache keys. docs/keys.md describes them for other languages, and
// schemas/key-vectors.json contains test vectors. A change makes every stored result unreachable. Increment the version
// in the first line of the text if the meaning changes.

extension SourceRequest {
    /// The text whose hash identifies the source in cache keys. It contains the tenant and the request headers.
    public var canonicalText: String {
        var text = "halcyon-source/1\n"
        // The tenant precedes the source, so that no source can imitate a tenant's line.
        if let tenant { text += "tenant:\(tenant)\n" }
        for field in headers.deciding { text += "header: \(field.name)=\(field.value)\n" }
        return text + "\(source.cacheKey)\n"
    }
}

extension Variant {
    /// The text whose hash identifies an output of a source: one line for each field that changes the bytes and is not
    /// at its default, in a fixed order.
    public var canonicalText: String {
        var text = "halcyon-variant/1\n"
        text.reserveCapacity(128)
        if page > 1 { text += "page=\(page)\n" }
        for processor in before { text.append(processor, as: "before") }
        text.append(crop: sizing.cropRect)
        if let trim = sizing.trim { text.append(trim) }
        text.append(sizeOf: sizing)
        if sizing.isCutByGravity { text.append(gravityOf: sizing) }
        if sizing.changesByUpscale { text += "upscale=\(sizing.upscale == true)\n" }
        if interpolationQuality != .default { text += "interpolation=\(interpolationQuality.rawValue)\n" }
        if linearLight { text += "linear-light\n" }
        if background.alpha > 0 { text += "background=\(background.hexadecimal)\n" }
        for processor in processors { text.append(processor) }
        if let format = output.choosesFormat ? "best" : output.format?.rawValue { text += "format=\(format)\n" }
        if let quality = output.quality { text += "quality=\(quality)\n" }
        if let target = output.similarity { text.append("quality=target ", canonical: target) }
        if let bytes = output.maximumBytes {
            text += "maximum-bytes=\(bytes)\n"
            if output.allowsResizing { text += "allow-resize\n" }
        }
        if output.lossless { text += "lossless\n" }
        if output.nearLossless { text += "near-lossless\n" }
        if let sampling = output.chromaSubsampling { text += "chroma=\(sampling.rawValue)\n" }
        if let bitDepth = output.bitDepth { text += "bit-depth=\(bitDepth)\n" }
        if let quantization = output.quantization {
            text.append("quantize=\(quantization.colors) dither=", canonical: quantization.dither)
        }
        if let effort = output.effort { text += "effort=\(effort)\n" }
        if output.progressive { text += "progressive\n" }
        if !output.stripMetadata { text += "metadata\n" }
        if output.keepProfile { text += "profile\n" }
        if let profile = output.profile { text += "profile=\(profile.rawValue)\n" }
        if let frames = output.frames { text += "frames=\(frames)\n" }
        if let tolerance { text += "tolerance=\(tolerance.rawValue)\n" }
        if !findings.isEmpty {
            if findings.contains(.blurhash) { text += "blurhash\n" }
            if findings.contains(.dominantColor) { text += "dominant-color\n" }
            for finding in [AnalysisKind.palette, .thumbhash, .phash] where findings.contains(finding) {
                text += "\(finding.rawValue)\n"
            }
            if findings.contains(.faces) { text += "faces\n" }
        }
        if !detections.isEmpty { text += "detector=\(detector)\n" }
        if let info { text += info.location ? "info=location\n" : "info\n" }
        return text
    }
}

extension String {
    /// Appends the crop. The line is omitted for the whole image and for an empty rectangle, which means no crop.
    fileprivate mutating func append(crop: CropRect) {
        if crop.isNoCrop { return }
        self += "crop="
        append(exact: crop.x)
        self += ","
        append(exact: crop.y)
        self += ","
        append(exact: crop.width)
        self += ","
        append(exact: crop.height)
        self += crop.unit == .pixels ? " pixels\n" : "\n"
    }

    /// Appends the detection of margins.
    fileprivate mutating func append(_ trim: Trim) {
        self += "trim=\(trim.tolerance)"
        if let background = trim.background { self += " background=\(background.hexadecimal)" }
        if trim.fuzz > 0 {
            self += " fuzz="
            append(canonical: trim.fuzz)
        }
        self += "\n"
    }

    /// Appends the gravity. The line is omitted for the center of the used part, in any notation.
    fileprivate mutating func append(gravityOf sizing: Sizing) {
        switch sizing.gravity {
        case .center: return
        case .focalPoint(.center) where sizing.cropRect.isNoCrop && sizing.trim == nil: return
        default:
            self += "gravity="
            append(sizing.gravity)
            self += "\n"
        }
    }

    private mutating func append(_ gravity: Gravity) {
        switch gravity {
        case .center: self += "center"
        case .attention: self += "attention"
        case .entropy: self += "entropy"
        case .focalPoint(let point):
            append(canonical: point.x)
            self += ","
            append(canonical: point.y)
        case .detected(let wanted):
            self += "\(wanted.kind.rawValue) confidence="
            append(canonical: wanted.confidence)
            self += " fallback="
            append(wanted.fallback)
        }
    }

    /// Appends the fields that determine the size of the output.
    fileprivate mutating func append(sizeOf sizing: Sizing) {
        self += "size="
        switch sizing.goal {
        case .original, .sizer(.natural): self += "natural"
        case .sizer(.aspectScaleDownByWidth(let limit)):
            self += "width "
            append(canonical: limit)
        case .sizer(.aspectScaleDownByHeight(let limit)):
            self += "height "
            append(canonical: limit)
        case .custom(let rule):
            self += "custom \(rule.name) \(rule.parameters)"
        case .display(let display):
            append(canonical: display.width)
            self += "x"
            append(canonical: display.height)
            self += "@"
            append(canonical: sizing.screenScale)
            self += " "
            self += display.canonicalMode
        }
        self += "\n"
    }
}

extension CropRect {
    fileprivate var isNoCrop: Bool { self == .whole || isEmpty }
}

extension Sizing {
    /// True if `upscale` differs from the default of the goal and affects the output.
    fileprivate var changesByUpscale: Bool {
        switch goal {
        case .display: upscale == false
        case .sizer(.aspectScaleDownByWidth), .sizer(.aspectScaleDownByHeight): upscale == true
        case .sizer(.natural), .custom, .original: false
        }
    }
}

extension Display {
    /// The content mode, and the scale option or the position if it has an effect.
    fileprivate var canonicalMode: String {
        switch contentMode {
        case .redraw: "scaleToFill"
        case .scaleAspectFit where scaleOptions.fitCrops: "scaleAspectFit cropsExcess"
        case .scaleAspectFit where position != .center: "scaleAspectFit \(position.rawValue)"
        case .scaleAspectFill where scaleOptions.fillLeaves: "scaleAspectFill leavesExcess"
        default: contentMode.rawValue
        }
    }
}

/// The numbers in cache keys: rounded to six decimals, half away from zero, which is reproducible in any language.
public enum CanonicalNumber {
    /// Rounds a number to the precision of cache keys. Numbers in jobs are rounded before rendering, so that outputs
    /// with the same key are identical.
    /// - Parameter value: The number, with an absolute value below 2^43.
    public static func rounded(_ value: Double) -> Double { Double(millionths(value)) / 1_000_000 }

    fileprivate static func millionths(_ value: Double) -> Int {
        Int((value * 1_000_000).rounded(.toNearestOrAwayFromZero))
    }
}

extension String {
    /// Appends the shortest decimal that parses to the same double, without an exponent: `0.3333333333333333`, `0.5`,
    /// `400`.
    /// - Parameter value: The number, 0 to 2^53.
    mutating func append(exact value: Double) {
        guard value != 0 else {
            self += "0"
            return
        }
        let text = value.description
        if let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) {
            // The exponent is negative: Swift writes positive exponents only from 2^53.
            self += "0." + String(repeating: "0", count: -exponent - 1) + text[..<mark].filter { $0 != "." }
        } else {
            self += text.hasSuffix(".0") ? text.dropLast(2) : text[...]
        }
    }

    /// Appends a line that ends with a number.
    fileprivate mutating func append(_ start: String, canonical value: Double) {
        self += start
        append(canonical: value)
        self += "\n"
    }

    /// Appends a number with up to six decimals, without trailing zeros or an exponent: `0.333333`, `400`, `-1.5`.
    /// - Parameter value: The number, with an absolute value below 2^43.
    mutating func append(canonical value: Double) {
        let millionths = CanonicalNumber.millionths(value)
        if millionths < 0 { self += "-" }
        var (rest, decimals) = (millionths.magnitude, 6)
        while decimals > 0, rest.isMultiple(of: 10) { (rest, decimals) = (rest / 10, decimals - 1) }
        // Digits are written from last to first. There are at most 20 digits and a decimal point.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 21) { digits in
            var start = digits.endIndex
            func put(_ byte: UInt8) {
                start -= 1
                digits[start] = byte
            }
            repeat {
                put(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
                decimals -= 1
                if decimals == 0 { put(UInt8(ascii: ".")) }
            } while rest > 0 || decimals >= 0
            self += String(decoding: digits[start...], as: UTF8.self)
        }
    }
}
