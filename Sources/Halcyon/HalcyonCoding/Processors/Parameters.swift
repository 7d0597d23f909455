import HalcyonModel
import JSON

/// The parameters of a processor. Null is equivalent to the default.
struct Parameters {
    /// The number of pixels per point.
    let scale: Double
    /// The decoder for sources.
    let reader: JobDecoder
    private var given: [(name: String, value: JSONElement)] = []

    /// Decodes the parameters.
    /// - Parameter object: The object of parameters; nil if the processor is given by its name only.
    /// - Throws: ``JSONError`` if a name is not a parameter of the processor.
    init(
        _ object: JSONElement?, of kind: ProcessorKind, scale: Double, _ reader: JobDecoder
    ) throws(JSONError) {
        self.scale = scale
        self.reader = reader
        let names = kind.parameters
        try object?.forEachMember { name, value throws(JSONError) in
            let name = "\(name)"
            guard names.contains(name) else {
                let known = names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))"
                throw JSONError(.unknown, "unknown parameter of \(kind.rawValue); \(known)")
            }
            if let value = value.given { given.append((name, value)) }
        }
    }

    /// Decodes an optional parameter.
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

    /// Decodes a required parameter.
    func required<Value>(
        _ name: String, _ read: (JSONElement) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        guard let value = try optional(name, read) else { throw JSONError(.missing, "is missing", path: name) }
        return value
    }

    /// Decodes one of a fixed set of names.
    func choice<Choice: RawRepresentable<String>>(
        _ name: String, of all: [Choice]
    ) throws(JSONError) -> Choice? {
        try optional(name) { value throws(JSONError) in
            try value.choice(of: all) { word in all.first { $0.rawValue == word } }
        }
    }

    /// Decodes a number within limits, rounded to six decimals as in cache keys.
    func number(
        _ name: String, in range: ClosedRange<Double>, default value: Double
    ) throws(JSONError) -> Double {
        try optional(name) { value throws(JSONError) in CanonicalNumber.rounded(try value.double(in: range)) } ?? value
    }

    // MARK: Lengths

    /// Decodes the width and the height, which are both required.
    func size() throws(JSONError) -> PixelSize {
        PixelSize(width: try required("width", pixels), height: try required("height", pixels))
    }

    /// Decodes a length above 0 and converts it to whole pixels: round(points), at least 1, times the scale, rounded.
    func pixels(_ value: JSONElement) throws(JSONError) -> Int { try pixels(try value.points(), atLeast: 1) }

    /// Decodes a distance and converts it to whole pixels. It may be 0.
    func distance(_ value: JSONElement) throws(JSONError) -> Int {
        try pixels(try value.double(in: 0...VariantFields.longestSide), atLeast: 0)
    }

    /// Decodes a distance to the right and downward, and converts both to whole pixels. They may be negative.
    func offset() throws(JSONError) -> PixelOffset {
        try optional("offset") { value throws(JSONError) in
            var offset = PixelOffset.zero
            try value.forEachGiven { name, value throws(JSONError) in
                let points = try value.double(in: -VariantFields.longestSide...VariantFields.longestSide)
                let pixels = try pixels(abs(points), atLeast: 0) * (points < 0 ? -1 : 1)
                switch name {
                case "x": offset.x = pixels
                case "y": offset.y = pixels
                default: throw JSONError(.unknown, "unknown member; an offset has x and y")
                }
            }
            return offset
        } ?? .zero
    }

    private func pixels(_ points: Double, atLeast least: Double) throws(JSONError) -> Int {
        let whole = max(least, CanonicalNumber.rounded(points).rounded(.toNearestOrAwayFromZero))
        let pixels = CanonicalNumber.rounded(whole * scale).rounded(.toNearestOrAwayFromZero)
        guard pixels <= VariantFields.longestSide else { throw .tooManyPixels(VariantFields.longestSide) }
        return Int(pixels)
    }

    /// Converts a length to pixels without rounding to whole pixels.
    /// - Parameters:
    ///   - points: The length in points.
    ///   - limit: The maximum length in pixels.
    func scaled(_ points: Double, upTo limit: Double) throws(JSONError) -> Double {
        let pixels = CanonicalNumber.rounded(CanonicalNumber.rounded(points) * scale)
        guard pixels <= limit else { throw .tooManyPixels(limit) }
        return pixels
    }

    /// Decodes the standard deviation of a blur. A higher limit would be useless, because the picture becomes one
    /// color, and the convolution would be very slow.
    func blurRadius(_ value: JSONElement) throws(JSONError) -> Double {
        try scaled(try value.positive(upTo: 250), upTo: 250)
    }

    /// Decodes a corner radius, given by one of three parameters.
    /// - Returns: The radius; nil if none of the parameters is given.
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

    /// Decodes one of the nine positions.
    func position(default position: ContentMode) throws(JSONError) -> ContentMode {
        try optional("position", ContentMode.init(position:)) ?? position
    }

    /// Decodes a Boolean, which is false by default.
    func flag(_ name: String) throws(JSONError) -> Bool {
        try optional(name) { value throws(JSONError) in try value.bool() } ?? false
    }

    /// Decodes a list of distinct corners.
    func corners() throws(JSONError) -> Set<Corner> {
        try optional("corners") { list throws(JSONError) in
            var corners: Set<Corner> = []
            try list.forEachElement { corner throws(JSONError) in
                guard corners.insert(try corner.choice(of: Corner.allCases)).inserted else {
                    throw JSONError(.invalid, "duplicate corner")
                }
            }
            guard !corners.isEmpty else { throw JSONError(.invalid, "expected at least one corner") }
            return corners
        } ?? Set(Corner.allCases)
    }
}

/// Decodes a color.
func color(_ value: JSONElement) throws(JSONError) -> CSSColor { try value.color() }

/// Decodes an angle and normalizes it to 0 up to 360.
func degrees(_ value: JSONElement) throws(JSONError) -> Double {
    var degrees = try value.double().truncatingRemainder(dividingBy: 360)
    if degrees < 0 { degrees += 360 }
    degrees = CanonicalNumber.rounded(degrees)
    return degrees < 360 ? degrees : 0
}
