import HalcyonModel
import JSON

/// The parameters of one processor as they come. Null is the default here, too.
struct Parameters {
    /// Pixels a point.
    let scale: Double
    /// Reads sources.
    let reader: JobReader
    private var given: [(name: String, value: JSONElement)] = []

    /// - Parameter object: nil when the processor's name stands alone.
    /// - Throws: ``JSONError`` for a name that is none of the processor's.
    init(
        _ object: JSONElement?, of kind: ProcessorKind, scale: Double, _ reader: JobReader
    ) throws(JSONError) {
        self.scale = scale
        self.reader = reader
        let names = kind.parameters
        try object?.forEachMember { name, value throws(JSONError) in
            let name = "\(name)"
            guard names.contains(name) else {
                let known = names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))"
                throw JSONError(.unknown, "is no parameter of \(kind.rawValue); \(known)")
            }
            if let value = value.given { given.append((name, value)) }
        }
    }

    /// A parameter that has a default.
    func optional<Value>(
        _ name: String, _ read: (JSONElement) throws(JSONError) -> Value
    ) throws(JSONError) -> Value? {
        guard let parameter = given.first(where: { $0.name == name }) else { return nil }
        do throws(JSONError) {
            return try read(parameter.value)
        } catch {
            throw error.within(name)
        }
    }

    /// A parameter that must be there.
    func required<Value>(
        _ name: String, _ read: (JSONElement) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        guard let value = try optional(name, read) else { throw JSONError(.missing, "is missing", path: name) }
        return value
    }

    /// One of a fixed set of words.
    func choice<Choice: RawRepresentable<String>>(
        _ name: String, of all: [Choice]
    ) throws(JSONError) -> Choice? {
        try optional(name) { value throws(JSONError) in
            try value.choice(of: all) { word in all.first { $0.rawValue == word } }
        }
    }

    /// A number within limits, to the six decimals that keys know.
    func number(
        _ name: String, in range: ClosedRange<Double>, default value: Double
    ) throws(JSONError) -> Double {
        try optional(name) { value throws(JSONError) in CanonicalNumber.rounded(try value.double(in: range)) } ?? value
    }

    // MARK: Lengths

    /// Width and height, both required.
    func size() throws(JSONError) -> PixelSize {
        PixelSize(width: try required("width", pixels), height: try required("height", pixels))
    }

    /// A length above 0 in whole pixels: round(points), at least 1, times the scale, rounded.
    func pixels(_ value: JSONElement) throws(JSONError) -> Int { try pixels(try value.points(), atLeast: 1) }

    /// A distance in whole pixels, which may be 0.
    func distance(_ value: JSONElement) throws(JSONError) -> Int {
        try pixels(try value.double(in: 0...VariantFields.longestSide), atLeast: 0)
    }

    private func pixels(_ points: Double, atLeast least: Double) throws(JSONError) -> Int {
        let whole = max(least, CanonicalNumber.rounded(points).rounded(.toNearestOrAwayFromZero))
        let pixels = CanonicalNumber.rounded(whole * scale).rounded(.toNearestOrAwayFromZero)
        guard pixels <= VariantFields.longestSide else { throw .tooManyPixels(VariantFields.longestSide) }
        return Int(pixels)
    }

    /// A length in pixels that need not be whole.
    /// - Parameter points: within the limit.
    func scaled(_ points: Double, upTo limit: Double) throws(JSONError) -> Double {
        let pixels = CanonicalNumber.rounded(CanonicalNumber.rounded(points) * scale)
        guard pixels <= limit else { throw .tooManyPixels(limit) }
        return pixels
    }

    /// Standard deviation of a blur. Beyond the limit a picture is one colour, and a convolution takes for ever.
    func blurRadius(_ value: JSONElement) throws(JSONError) -> Double {
        try scaled(try value.positive(upTo: 250), upTo: 250)
    }

    /// How far corners are cut: one of three parameters.
    /// - Returns: nil when none is given.
    func cornerRadius() throws(JSONError) -> CornerRadius? {
        func fraction(_ value: JSONElement) throws(JSONError) -> Double {
            CanonicalNumber.rounded(try value.double(in: 0...1))
        }
        let pixels = try optional("radius") { value throws(JSONError) in
            try scaled(try value.double(in: 0...VariantFields.longestSide), upTo: VariantFields.longestSide)
        }
        let across = try optional("widthFraction", fraction)
        let down = try optional("heightFraction", fraction)
        switch (pixels, across, down) {
        case (nil, nil, nil): return nil
        case (let pixels?, nil, nil): return .pixels(pixels)
        case (nil, let across?, nil): return .widthFraction(across)
        case (nil, nil, let down?): return .heightFraction(down)
        default: throw JSONError(.invalid, "expected one of radius, widthFraction, heightFraction, found several")
        }
    }

    /// A list of different corners.
    func corners() throws(JSONError) -> Set<Corner> {
        try optional("corners") { list throws(JSONError) in
            var corners: Set<Corner> = []
            try list.forEachElement { corner throws(JSONError) in
                guard corners.insert(try corner.choice(of: Corner.allCases)).inserted else {
                    throw JSONError(.invalid, "stands twice")
                }
            }
            guard !corners.isEmpty else { throw JSONError(.invalid, "names no corner") }
            return corners
        } ?? Set(Corner.allCases)
    }
}

/// A colour.
func color(_ value: JSONElement) throws(JSONError) -> CSSColor { try value.color() }

/// Any angle, as 0 up to 360.
func degrees(_ value: JSONElement) throws(JSONError) -> Double {
    var degrees = try value.double().truncatingRemainder(dividingBy: 360)
    if degrees < 0 { degrees += 360 }
    degrees = CanonicalNumber.rounded(degrees)
    return degrees < 360 ? degrees : 0
}
