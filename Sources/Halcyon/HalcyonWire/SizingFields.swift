import CivilTime
import HalcyonModel
import JSON

extension JSONElement {
    /// A number within limits.
    func double(in range: ClosedRange<Double>) throws(JSONError) -> Double {
        let number = try double()
        guard range.contains(number) else {
            throw JSONError(.invalid, "expected \(range.lowerBound) to \(range.upperBound), found \(number)")
        }
        return number
    }

    /// A length in points, above 0, to the six decimals that keys know.
    func points() throws(JSONError) -> Double {
        let number = try double(in: 0...JobFields.longestSide)
        guard number > 0 else { throw JSONError(.invalid, "expected a number above 0") }
        return max(CanonicalNumber.rounded(number), 0.000_001)
    }

    /// One of a fixed set of words.
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
}

extension UnitRect {
    init(_ value: JSONElement) throws(JSONError) {
        var x: Double?
        var y: Double?
        var width: Double?
        var height: Double?
        try value.forEachMember { name, side throws(JSONError) in
            switch name {
            case "x": x = try side.double(in: 0...1)
            case "y": y = try side.double(in: 0...1)
            case "width": width = try side.double(in: 0...1000)
            case "height": height = try side.double(in: 0...1000)
            default: throw JSONError(.unknown, "is no side of a rectangle: x, y, width, height")
            }
        }
        guard let x, let y, let width, let height else {
            throw JSONError(.missing, "expected x, y, width and height in fractions of the image")
        }
        guard width == 0 || height == 0 || (x < 1 && y < 1) else { throw JSONError(.invalid, "lies outside the image") }
        self = CanonicalNumber.rounded(UnitRect(x: x, y: y, width: width, height: height))
    }
}

extension Sizer {
    init(_ value: JSONElement) throws(JSONError) {
        guard value.kind == .object else {
            guard try value.string() == "natural" else {
                throw JSONError(
                    .invalid,
                    "expected \"natural\", {\"aspectScaleDownByWidth\": n} or {\"aspectScaleDownByHeight\": n}")
            }
            self = .natural
            return
        }
        var sizer: Sizer?
        try value.forEachMember { name, limit throws(JSONError) in
            guard sizer == nil else { throw JSONError(.invalid, "is one sizer too many") }
            switch name {
            case "aspectScaleDownByWidth": sizer = .aspectScaleDownByWidth(try limit.points())
            case "aspectScaleDownByHeight": sizer = .aspectScaleDownByHeight(try limit.points())
            default: throw JSONError(.unknown, "is no sizer: natural, aspectScaleDownByWidth, aspectScaleDownByHeight")
            }
        }
        guard let sizer else { throw JSONError(.missing, "names no sizer") }
        self = sizer
    }
}

extension OutputOptions {
    /// A format that can be written, or nil for `auto`.
    static func format(_ value: JSONElement) throws(JSONError) -> ImageFormat? {
        let word = try value.string()
        if word == "auto" { return nil }
        if let format = ImageFormat(rawValue: word), ImageFormat.writable.contains(format) { return format }
        let known = (["auto"] + ImageFormat.writable.map(\.rawValue)).joined(separator: ", ")
        throw JSONError(.invalid, "this version writes \(known), not \"\(word)\"")
    }
}

extension Job.Deadline {
    init(_ value: JSONElement) throws(JSONError) {
        if value.kind == .number {
            self = .after(try value.double(in: 0...315_360_000))
        } else if let moment = Timestamp(rfc3339: try value.string()) {
            self = .at(moment.seconds)
        } else {
            throw JSONError(.invalid, "expected seconds, or a date and time as RFC 3339 writes them")
        }
    }
}
