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
            self = .focalPoint(try UnitPoint(value))
            return
        }
        let word = try value.string()
        switch word {
        case "center": self = .center
        case "attention": self = .attention
        case "entropy": self = .entropy
        default:
            throw JSONError(
                .invalid, "expected center, attention, entropy or {\"x\": 0…1, \"y\": 0…1}, found \"\(word)\"")
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
    /// Decodes an output format; nil for `auto`.
    static func format(_ value: JSONElement) throws(JSONError) -> ImageFormat? {
        let word = try value.string()
        if word == "auto" { return nil }
        if let format = ImageFormat(rawValue: word), ImageFormat.writable.contains(format) { return format }
        let known = (["auto"] + ImageFormat.writable.map(\.rawValue)).joined(separator: ", ")
        throw JSONError(.invalid, "unsupported output format \"\(word)\"; expected one of \(known)")
    }
}
