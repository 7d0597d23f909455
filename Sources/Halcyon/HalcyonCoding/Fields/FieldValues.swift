import HalcyonModel
import JSON

extension JSONElement {
    /// The value; nil for null. Null is equivalent to absence everywhere in a job.
    var given: JSONElement? { isNull ? nil : self }

    /// Calls `body` for each member that is not null.
    func forEachGiven(_ body: (JSONName, JSONElement) throws(JSONError) -> Void) throws(JSONError) {
        try forEachMember { name, value throws(JSONError) in
            if let value = value.given { try body(name, value) }
        }
    }

    /// Decodes a number within limits.
    func double(in range: ClosedRange<Double>) throws(JSONError) -> Double {
        let number = try double()
        guard range.contains(number) else {
            throw JSONError(.invalid, "expected \(range.lowerBound) to \(range.upperBound), found \(number)")
        }
        return number
    }

    /// Decodes a number above 0, rounded to six decimals as in cache keys.
    func positive(upTo limit: Double) throws(JSONError) -> Double {
        let number = try double(in: 0...limit)
        guard number > 0 else { throw JSONError(.invalid, "expected a number above 0") }
        return max(CanonicalNumber.rounded(number), 0.000_001)
    }

    /// Decodes a length in points, above 0, rounded to six decimals as in cache keys.
    func points() throws(JSONError) -> Double { try positive(upTo: VariantFields.longestSide) }

    /// Decodes one of a fixed set of names.
    func choice<Choice: RawRepresentable<String>>(
        of all: [Choice], _ named: (String) -> Choice? = Choice.init(rawValue:)
    ) throws(JSONError) -> Choice {
        let word = try string()
        guard let choice = named(word) else {
            throw JSONError(
                .invalid, "expected one of \(all.map(\.rawValue).joined(separator: ", ")), found \"\(word)\"")
        }
        return choice
    }

    /// Decodes a color. All fully transparent colors are normalized to `transparent`.
    func color() throws(JSONError) -> CSSColor {
        let text = try string()
        guard let color = CSSColor(text) else {
            throw JSONError(
                .invalid, "expected a CSS color such as white, #ff8800 or rgb(255 136 0 / 50%), found \"\(text)\"")
        }
        return color.alpha == 0 ? .transparent : color
    }
}

extension CropRect {
    /// The maximum coordinate and length in pixels.
    private static let farthest = 10_000_000.0

    init(_ value: JSONElement) throws(JSONError) {
        // The valid ranges depend on the unit, which may follow the sides.
        let isInPixels = value.member("unit")?.asString == Unit.pixels.rawValue
        let places = 0...(isInPixels ? Self.farthest : 1)
        let lengths = 0...(isInPixels ? Self.farthest : 1000)
        var unit = Unit.fractions
        var x: Double?
        var y: Double?
        var width: Double?
        var height: Double?
        try value.forEachGiven { name, side throws(JSONError) in
            switch name {
            case "x": x = try side.double(in: places)
            case "y": y = try side.double(in: places)
            case "width": width = try side.double(in: lengths)
            case "height": height = try side.double(in: lengths)
            case "unit": unit = try side.choice(of: Unit.allCases)
            default:
                throw JSONError(.unknown, "unknown member of a rectangle; expected x, y, width, height or unit")
            }
        }
        guard let x, let y, let width, let height else {
            throw JSONError(
                .missing, "expected x, y, width and height as fractions of the image, or in pixels with the unit pixels"
            )
        }
        guard width == 0 || height == 0 || unit == .pixels || (x < 1 && y < 1) else {
            throw JSONError(.invalid, "lies outside the image")
        }
        self.init(x: x, y: y, width: width, height: height, unit: unit)
    }
}

extension UnitPoint {
    init(_ value: JSONElement) throws(JSONError) {
        var x: Double?
        var y: Double?
        try value.forEachGiven { name, part throws(JSONError) in
            switch name {
            case "x": x = CanonicalNumber.rounded(try part.double(in: 0...1))
            case "y": y = CanonicalNumber.rounded(try part.double(in: 0...1))
            default: throw JSONError(.unknown, "unknown member of a point; expected x or y")
            }
        }
        guard let x, let y else { throw JSONError(.missing, "expected x and y as fractions of the image") }
        self.init(x: x, y: y)
    }
}

extension ContentMode {
    /// Decodes one of the nine positions.
    init(position value: JSONElement) throws(JSONError) {
        self = try value.choice(of: Self.unscaled) { word in Self.unscaled.first { $0.rawValue == word } }
    }
}

extension Trim {
    /// Decodes the detection of margins: true, or an object of its parameters.
    /// - Returns: nil for false.
    init?(_ value: JSONElement) throws(JSONError) {
        self.init()
        guard value.kind == .object else {
            guard try value.bool() else { return nil }
            return
        }
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "tolerance": tolerance = Int(try value.integer(in: 0...254))
            case "background": background = try value.color()
            case "fuzz": fuzz = CanonicalNumber.rounded(try value.double(in: 0...0.5))
            default: throw JSONError(.unknown, "unknown member; expected tolerance, background or fuzz")
            }
        }
    }
}

extension Gravity {
    init(_ value: JSONElement) throws(JSONError) {
        if value.kind == .object {
            self =
                value.member("detect")?.given != nil
                ? .detected(try DetectedGravity(value)) : .focalPoint(try UnitPoint(value))
            return
        }
        let word = try value.string()
        switch word {
        case "center": self = .center
        case "attention": self = .attention
        case "entropy": self = .entropy
        case "faces": self = .detected(DetectedGravity(.faces))
        case "objects": self = .detected(DetectedGravity(.objects))
        default:
            throw JSONError(
                .invalid,
                "expected center, attention, entropy, faces, objects or {\"x\": 0…1, \"y\": 0…1}, found \"\(word)\"")
        }
    }
}

extension DetectedGravity {
    /// Decodes an object of `detect`, `fallback` and `confidence`.
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        self.init(.faces)
        try value.forEachGiven { name, part throws(JSONError) in
            switch name {
            case "detect": kind = try part.choice(of: DetectionKind.allCases)
            case "fallback":
                fallback = try Gravity(part)
                if case .detected = fallback {
                    throw JSONError(.invalid, "cannot be another detection")
                }
            case "confidence": confidence = CanonicalNumber.rounded(try part.double(in: 0...1))
            default: throw JSONError(.unknown, "unknown member; expected detect, fallback or confidence")
            }
        }
    }
}

extension InfoOptions {
    /// Decodes the field `info`: true, false or an object with options.
    /// - Returns: nil for false.
    static func given(_ value: JSONElement) throws(JSONError) -> InfoOptions? {
        guard value.kind != .bool else { return try value.bool() ? InfoOptions() : nil }
        guard value.kind == .object else {
            throw JSONError(.wrongType, "expected true, false or an object such as {\"location\": true}")
        }
        var options = InfoOptions()
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "location": options.location = try value.bool()
            default: throw JSONError(.unknown, "unknown option of info; expected location")
            }
        }
        return options
    }
}

extension OutputOptions {
    /// Decodes an output format, `auto` or `best`.
    mutating func setFormat(_ value: JSONElement) throws(JSONError) {
        let word = try value.given?.string() ?? "auto"
        let named = ImageFormat.writable.first { $0.rawValue == word }
        guard named != nil || word == "auto" || word == "best" else {
            let known = (["auto", "best"] + ImageFormat.writable.map(\.rawValue)).joined(separator: ", ")
            throw JSONError(.invalid, "unsupported output format \"\(word)\"; expected one of \(known)")
        }
        (format, choosesFormat) = (named, word == "best")
    }

    /// Decodes a quality, 1 to 100 or `{"target": 0.98}`.
    mutating func setQuality(_ value: JSONElement) throws(JSONError) {
        (quality, similarity) = (nil, nil)
        guard let value = value.given else { return }
        if value.kind != .object {
            quality = Int(try value.integer(in: 1...100))
            return
        }
        try value.forEachGiven { name, target throws(JSONError) in
            switch name {
            case "target": similarity = CanonicalNumber.rounded(try target.double(in: 0.5...0.9999))
            default: throw JSONError(.unknown, "unknown member of a quality; expected target")
            }
        }
        guard similarity != nil else { throw JSONError(.missing, "expected a target from 0.5 to 0.9999") }
    }

    /// Decodes a chroma subsampling or `auto`.
    mutating func setChromaSubsampling(_ value: JSONElement) throws(JSONError) {
        let word = try value.given?.string() ?? "auto"
        chromaSubsampling = ChromaSubsampling(rawValue: word)
        guard chromaSubsampling != nil || word == "auto" else {
            throw JSONError(.invalid, "expected auto, 4:4:4 or 4:2:0, found \"\(word)\"")
        }
    }

    /// Decodes a number of bits per sample. 8 is the default.
    mutating func setBitDepth(_ value: JSONElement) throws(JSONError) {
        let bits = try value.isNull ? 8 : Int(value.integer(in: 8...16))
        guard bits == 8 || !Self.formats(ofBitDepth: bits).isEmpty else {
            throw JSONError(.invalid, "expected 8, 12 or 16 bits per sample, found \(bits)")
        }
        bitDepth = bits == 8 ? nil : bits
    }

    /// Decodes an output profile. That of `srgb` is the default.
    mutating func setProfile(_ value: JSONElement) throws(JSONError) {
        let word = try value.given?.string() ?? "srgb"
        profile = OutputProfile(rawValue: word)
        guard profile != nil || word == "srgb" else {
            throw JSONError(.invalid, "expected srgb or p3, found \"\(word)\"")
        }
    }
}

extension Quantization {
    /// Decodes `true`, a number of colors, or an object with `colors` and `dither`; nil for `false`.
    init?(_ value: JSONElement) throws(JSONError) {
        self.init()
        switch value.kind {
        case .object:
            try value.forEachGiven { name, part throws(JSONError) in
                switch name {
                case "colors": colors = try Self.size(part)
                case "dither": dither = CanonicalNumber.rounded(try part.double(in: 0...1))
                default: throw JSONError(.unknown, "unknown member of a palette; expected colors or dither")
                }
            }
        case .number: colors = try Self.size(value)
        default: guard try value.bool() else { return nil }
        }
    }

    private static func size(_ value: JSONElement) throws(JSONError) -> Int {
        let count = Int(try value.integer(in: 1...256))
        guard sizes.contains(count) else {
            throw JSONError(.invalid, "expected 2, 4, 16 or 256 colors, found \(count)")
        }
        return count
    }
}
