import Formats
import HalcyonCoding
import HalcyonModel
import Hashing
import JSON

/// A URL of thumbor or imagor:
/// `/SIGNATURE/AxB:CxD/fit-in/-ExF/left/top/smart/filters:NAME(ARGUMENTS):…/IMAGE`. A pure value.
///
/// It is built from the public documentation of thumbor 7 and imagor 1. docs/compatible-urls.md lists the parts and
/// filters that are the same, close and missing.
struct ThumborURL {
    /// The job.
    let draft: JobBuilder
    /// The qualities of the formats if ``draft`` has none.
    let qualities: FormatQualities?
    /// The last second since 1970 at which the URL is valid; nil if it does not expire.
    let expires: Int64?
    /// The file name and the disposition that the response declares; nil for none.
    let disposition: ContentDisposition?

    /// Verifies the signature of a path and returns the rest of it.
    /// - Parameters:
    ///   - path: the path behind the prefix, without its leading `/`, as it was sent.
    ///   - query: the query. It belongs to the image, so it is signed with it.
    /// - Throws: ``Problem`` of the kind `forbidden`.
    static func verify(
        _ path: Substring, query: Substring?, _ options: ThumborURLOptions
    ) throws(Problem) -> String {
        let grammar = options.dialect.rawValue
        let mark = path.firstIndex(of: "/") ?? path.endIndex
        let (signature, rest) = (path[..<mark], path[mark...].dropFirst())
        let signed = query.map { "\(rest)?\($0)" } ?? String(rest)
        if signature == "unsafe" {
            guard options.allowsUnsigned else { throw Problem(.forbidden, "\(grammar): unsafe URLs are not allowed") }
            return signed
        }
        if signature == "params" { throw Problem(.badRequest, "\(grammar): params is not supported") }
        let given = Array(signature.utf8)
        var isValid = false
        for key in options.keys {
            let code = Base64.encode(options.algorithm.code(of: Array(signed.utf8), key: key))
            let text = code.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
            let length = options.signatureLength > 0 ? options.signatureLength : text.count
            if Array(String(text.prefix(length)).utf8).isSame(inConstantTimeAs: given) { isValid = true }
        }
        guard isValid else { throw Problem(.forbidden, "\(grammar): the signature of the URL is invalid") }
        return signed
    }

    /// Parses a path whose signature has been verified.
    /// - Parameter path: the path behind the signature, as it was sent.
    /// - Throws: ``Problem`` that names the part or the filter.
    init(_ path: String, _ options: ThumborURLOptions) throws(Problem) {
        var parts = ThumborParts(path, options.dialect)
        try parts.parse()
        var settings = ThumborSettings(options, parts)
        for filter in try parts.filters() { try settings.apply(filter) }
        guard let text = PercentEncoding.decode(parts.rest) else {
            throw Problem(.badRequest, "\(parts.grammar): malformed percent-encoding in the image")
        }
        let url = try settings.source(text)
        draft = try settings.draft(of: url)
        qualities = FormatQualities(standard: options.quality > 0 ? options.quality : nil)
        expires = settings.expires
        disposition = settings.attachment.map { name in
            ContentDisposition(name: name.isEmpty ? ContentDisposition.name(of: url) : name, isAttachment: true)
        }
    }
}

/// The parts of a URL before its image.
struct ThumborParts {
    /// The text that has not been parsed.
    private(set) var rest: Substring
    let dialect: ThumborURLOptions.Dialect

    /// The manual crop, in pixels or fractions.
    private(set) var crop: (left: Double, top: Double, right: Double, bottom: Double)?
    /// The tolerance with which margins are removed first, in levels of 255; nil to keep them.
    private(set) var trim: Double?
    private(set) var fitsIn = false
    private(set) var isFull = false
    private(set) var isAdaptive = false
    private(set) var stretches = false
    private(set) var (width, height) = (0.0, 0.0)
    private(set) var (flipsAcross, flipsDown) = (false, false)
    private(set) var (x, y) = (0.5, 0.5)
    private(set) var isSmart = false

    var grammar: String { dialect.rawValue }

    init(_ path: String, _ dialect: ThumborURLOptions.Dialect) {
        (rest, self.dialect) = (path[...], dialect)
    }

    /// Parses the parts up to the filters, in their fixed order.
    mutating func parse() throws(Problem) {
        for name in ["debug", "meta"] where next == name[...] { throw part(name[...]).unsupported() }
        if let segment = next, segment == "trim" || segment.hasPrefix("trim:") {
            trim = try tolerance(segment)
            skip()
        }
        if let segment = next, let edges = numbers(segment, [":", "x"]) {
            crop = (edges[0], edges[1], edges[2], edges[3])
            skip()
        }
        if let segment = next, segment.hasSuffix("fit-in"), let kind = Self.fitting[segment.dropLast(6)] {
            (fitsIn, isAdaptive, isFull) = (true, kind.adaptive, kind.full)
            skip()
        }
        if dialect == .imagor, next == "stretch" {
            stretches = true
            skip()
        }
        if let segment = next, try size(segment) { skip() }
        if dialect == .imagor, let segment = next, let padding = padding(segment) {
            guard padding.allSatisfy({ $0 == 0 }) else { throw part(segment).unsupported() }
            skip()
        }
        if let segment = next, let x = ["left": 0, "center": 0.5, "right": 1][segment] {
            self.x = x
            skip()
        }
        if let segment = next, let y = ["top": 0, "middle": 0.5, "bottom": 1][segment] {
            self.y = y
            skip()
        }
        if next == "smart" {
            isSmart = true
            skip()
        }
    }

    private static let fitting: [Substring: (adaptive: Bool, full: Bool)] = [
        "": (false, false), "adaptive-": (true, false), "full-": (false, true), "adaptive-full-": (true, true),
    ]

    /// The next segment; nil if it is the last one, which is the image.
    private var next: Substring? { rest.firstIndex(of: "/").map { rest[..<$0] } }

    private mutating func skip() { rest = rest.drop { $0 != "/" }.dropFirst() }

    private func part(_ text: Substring) -> URLOption {
        URLOption(grammar: grammar, name: String(text), arguments: [], text: String(text))
    }

    /// Parses `trim:CORNER:TOLERANCE`, of which both are optional. The tolerance is a distance of colors.
    private func tolerance(_ text: Substring) throws(Problem) -> Double {
        var tolerance = dialect == .imagor ? 1.0 : 0
        for argument in text.split(separator: ":", omittingEmptySubsequences: false).dropFirst() {
            switch argument {
            case "top-left": break
            case "bottom-right":
                throw part(text).unsupported("the background is that of the corner at the top left")
            default:
                guard let number = number(argument), number <= 442 else {
                    throw part(text).invalid("a tolerance from 0 to 442")
                }
                tolerance = min(number, 254)
            }
        }
        return tolerance
    }

    /// Parses `AxB:CxD`; nil for other texts.
    private func numbers(_ text: Substring, _ separators: [Character]) -> [Double]? {
        let points = text.split(separator: ":", omittingEmptySubsequences: false)
        guard points.count == 2 else { return nil }
        let numbers = points.flatMap { $0.split(separator: "x", omittingEmptySubsequences: false) }.map(number)
        guard numbers.count == 4 else { return nil }
        let values = numbers.compactMap(\.self)
        return values.count == 4 ? values : nil
    }

    /// Parses `GxH` or `GxH:IxJ`; nil for other texts.
    private func padding(_ text: Substring) -> [Double]? {
        if let numbers = numbers(text, [":", "x"]) { return numbers }
        let sides = text.split(separator: "x", omittingEmptySubsequences: false).map(number).compactMap(\.self)
        return sides.count == 2 && text.split(separator: "x", omittingEmptySubsequences: false).count == 2 ? sides : nil
    }

    /// Parses digits, and in imagor a decimal fraction too.
    private func number(_ text: Substring) -> Double? {
        let isNumber = text.utf8.allSatisfy { (0x30...0x39).contains($0) || dialect == .imagor && $0 == 0x2e }
        guard isNumber, !text.isEmpty, text.utf8.count <= 16 else { return nil }
        return Double(text)
    }

    /// Parses `-WxH`. Returns false for another text.
    private mutating func size(_ text: Substring) throws(Problem) -> Bool {
        let sides = text.split(separator: "x", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return false }
        var (lengths, flips, originals): ([Double], [Bool], Int) = ([], [], 0)
        for side in sides {
            let digits = side.hasPrefix("-") ? side.dropFirst() : side
            flips.append(side.hasPrefix("-"))
            if digits == "orig", dialect == .thumbor {
                originals += 1
                lengths.append(0)
            } else if digits.isEmpty {
                lengths.append(0)
            } else {
                guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
                guard let length = Double(digits), length <= CompatibleJob.longestSide else {
                    throw part(text).invalid("sides of up to 65535 pixels")
                }
                lengths.append(length)
            }
        }
        guard originals != 1 else { throw part(text).unsupported("orig must be both sides") }
        (width, height) = (lengths[0], lengths[1])
        (flipsAcross, flipsDown) = (flips[0], flips[1])
        return true
    }

    /// Removes and returns the filters: `filters:NAME(ARGUMENT,…):…/`.
    mutating func filters() throws(Problem) -> [URLOption] {
        let mark = "filters:"
        guard rest.hasPrefix(mark) else { return [] }
        rest = rest.dropFirst(mark.count)
        var filters: [URLOption] = []
        while true {
            var (depth, end) = (0, rest.startIndex)
            while end < rest.endIndex {
                let character = rest[end]
                if character == "(" { depth += 1 }
                if character == ")" { depth -= 1 }
                if depth < 0 || depth == 0 && (character == ":" || character == "/") { break }
                rest.formIndex(after: &end)
            }
            guard end < rest.endIndex, depth == 0 else {
                throw Problem(.badRequest, "\(grammar): the filters do not end; expected filters:NAME(ARGUMENTS)/IMAGE")
            }
            filters.append(try filter(rest[..<end]))
            // A job has no more processors.
            guard filters.count <= 32 else { throw Problem(.badRequest, "\(grammar): more than 32 filters") }
            let isLast = rest[end] == "/"
            rest = rest[end...].dropFirst()
            if isLast { return filters }
        }
    }

    private func filter(_ text: Substring) throws(Problem) -> URLOption {
        guard let open = text.firstIndex(of: "("), text.hasSuffix(")") else {
            throw Problem(.badRequest, "\(grammar): \(text.prefix(100)) is no filter; expected NAME(ARGUMENTS)")
        }
        let list = text[text.index(after: open)...].dropLast()
        var arguments: [String] = []
        for argument in list.split(separator: ",", omittingEmptySubsequences: false) {
            guard let decoded = PercentEncoding.decode(argument) else {
                throw part(text).invalid("arguments with valid percent-encoding")
            }
            arguments.append(String(decoded.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()))
        }
        return URLOption(
            grammar: grammar, name: String(text[..<open]), arguments: arguments, text: String(text))
    }
}

/// The job of a URL, while its filters are applied in their order.
struct ThumborSettings {
    private let options: ThumborURLOptions
    private let parts: ThumborParts
    private var job = CompatibleJob()
    /// True if the image may be enlarged; nil for the default.
    private var upscale: Bool?
    private var stretches: Bool
    private var proportion = 1.0
    /// The color of the box around an image that fits in.
    private var fill: CSSColor?
    private var focus: (x: Double, y: Double)?
    private(set) var expires: Int64?
    /// The file name of an attachment; empty for that of the source.
    private(set) var attachment: String?

    private var isImagor: Bool { options.dialect == .imagor }

    init(_ options: ThumborURLOptions, _ parts: ThumborParts) {
        (self.options, self.parts, stretches) = (options, parts, parts.stretches)
        // Flips precede all filters.
        switch (parts.flipsAcross, parts.flipsDown) {
        case (true, true): job.process("flip", [("direction", "both")])
        case (true, false): job.process("flip", [("direction", "horizontal")])
        case (false, true): job.process("flip", [("direction", "vertical")])
        case (false, false): break
        }
    }

    /// Applies a filter.
    /// - Throws: ``Problem`` that names it.
    mutating func apply(_ filter: URLOption) throws(Problem) {
        if try size(filter) { return }
        if try color(filter) { return }
        if try encode(filter) { return }
        switch filter.name {
        case "blur":
            try filter.allow(1...2)
            let radius = try filter.number(0, in: 0...250) ?? 0
            let sigma = try filter.number(1, in: 0...250) ?? radius
            // imagor halves the argument.
            if sigma > 0 { job.process("blur", [("radius", isImagor ? sigma / 2 : sigma)]) }
        case "sharpen": try sharpen(filter)
        case "pixelate" where isImagor:
            try filter.allow(0...1)
            job.process("pixelate", [("size", Double(try filter.whole(0, in: 1...65_535) ?? 10))])
        case "round_corner", "round_corners": try roundCorner(filter)
        case "rotate":
            try filter.allow(1...1)
            let angle = try filter.whole(0, in: 0...(isImagor ? 359 : 100_000)) ?? 0
            if isImagor, !angle.isMultiple(of: 90) { throw filter.invalid("0, 90, 180 or 270") }
            // Both rotate counterclockwise.
            if !angle.isMultiple(of: 360) { job.process("rotate", [("degrees", Double(360 - angle % 360))]) }
        case "watermark": try watermark(filter)
        case "expire" where isImagor:
            try filter.allow(1...1)
            expires = try filter.whole(0, in: 0...Int(Int32.max) * 1_000_000).map { Int64($0) / 1000 }
        case "attachment" where isImagor:
            try filter.allow(0...1)
            let name = filter[0] ?? ""
            guard name.isEmpty || ContentDisposition.isValid(name) else {
                throw filter.invalid("a file name of up to 200 bytes without slashes and control characters")
            }
            attachment = name
        // Filters that change nothing: Halcyon strips metadata and converts to sRGB by default, and stores results.
        case "strip_exif", "strip_icc": try filter.allow(0...0)
        case "strip_metadata", "preview": if isImagor { try filter.allow(0...0) } else { throw filter.unsupported() }
        default: throw filter.unsupported()
        }
    }

    /// Applies a filter of the size and returns true, or returns false for another filter.
    private mutating func size(_ filter: URLOption) throws(Problem) -> Bool {
        switch filter.name {
        case "upscale":
            try filter.allow(0...0)
            upscale = true
        case "no_upscale":
            try filter.allow(0...0)
            upscale = false
        case "stretch":
            try filter.allow(0...0)
            stretches = true
        case "proportion":
            try filter.allow(1...1)
            guard let value = try filter.number(0, in: 0...100), value > 0 else {
                throw filter.invalid("a number above 0")
            }
            guard parts.width > 0 || parts.height > 0 else { throw filter.unsupported("it needs a width or a height") }
            proportion = isImagor && value > 1 ? value / 100 : value
        case "focal": try setFocus(filter)
        case "orient" where isImagor:
            try filter.allow(1...1)
            let angle = try filter.whole(0, in: 0...270) ?? 0
            guard angle.isMultiple(of: 90) else { throw filter.invalid("0, 90, 180 or 270") }
            // Counterclockwise.
            job.quarterTurns = (4 - angle / 90) % 4
        case "cover" where !isImagor:
            try filter.allow(0...0)
            job.fields.set("frames", 1)
        case "max_frames" where isImagor:
            try filter.allow(1...1)
            guard let count = try filter.whole(0, in: 1...65_535) else { throw filter.invalid("a whole number") }
            job.fields.set("frames", count)
        case "page" where isImagor:
            try filter.allow(1...1)
            guard let page = try filter.whole(0, in: 1...65_535) else { throw filter.invalid("a whole number") }
            job.fields["page"] = page > 1 ? page.json : nil
        default: return false
        }
        return true
    }

    /// Applies `focal(AxB:CxD)` or, in imagor, `focal(X,Y)`, in fractions of the image.
    private mutating func setFocus(_ filter: URLOption) throws(Problem) {
        let numbers = filter.arguments.flatMap { $0.split { $0 == "x" || $0 == ":" } }.map { Double($0) ?? .nan }
        guard numbers.count == 4 || isImagor && numbers.count == 2, numbers.allSatisfy({ $0 >= 0 && $0.isFinite })
        else { throw filter.invalid("a region such as 0.1x0.2:0.4x0.5") }
        guard numbers.allSatisfy({ $0 <= 1 }), isImagor else {
            throw filter.unsupported("a region in pixels depends on the size of the source")
        }
        focus =
            numbers.count == 2
            ? (numbers[0], numbers[1]) : ((numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2)
    }

    /// Applies a filter of the colors and returns true, or returns false for another filter.
    private mutating func color(_ filter: URLOption) throws(Problem) -> Bool {
        switch filter.name {
        case "brightness":
            try filter.allow(1...1)
            let value = (try filter.number(0, in: -100...100) ?? 0) / 100
            if value != 0 { job.process("colorControls", [("brightness", value)]) }
        case "contrast":
            try filter.allow(1...1)
            let value = try filter.number(0, in: -100...100) ?? 0
            let factor: Double
            if isImagor {
                factor = (259 * (value * 2.55 + 255)) / (255 * (259 - value * 2.55))
            } else {
                factor = (100 + value) * (100 + value) / 10_000
            }
            guard factor <= 4 else { throw filter.unsupported("a contrast of more than 4 times; use up to 60") }
            if value != 0 { job.process("colorControls", [("contrast", factor)]) }
        case "saturation":
            try filter.allow(1...1)
            let value = try filter.number(0, in: -100...100) ?? 0
            if value != 0 { job.process("colorControls", [("saturation", 1 + value / 100)]) }
        case "grayscale":
            try filter.allow(0...0)
            job.process("colorControls", [("saturation", 0.0)])
        case "rgb":
            try filter.allow(3...3)
            for index in 0..<3 where try filter.number(index, in: -100...100) ?? 0 != 0 { throw filter.unsupported() }
        case "hue" where isImagor:
            try filter.allow(1...1)
            let angle = try filter.whole(0, in: -3600...3600) ?? 0
            if angle % 360 != 0 { job.process("hue", [("degrees", Double((angle % 360 + 360) % 360))]) }
        case "fill": try setFill(filter)
        case "background_color":
            try filter.allow(1...1)
            job.flatten(on: try color(filter, 0))
        default: return false
        }
        return true
    }

    private mutating func setFill(_ filter: URLOption) throws(Problem) {
        try filter.allow(1...(isImagor ? 1 : 2))
        if isImagor, filter[0] == "none" {
            fill = .transparent
            return
        }
        let color = try color(filter, 0)
        let isBehind: Bool
        switch filter[1] {
        case nil: isBehind = isImagor
        case "1", "true", "True": isBehind = true
        case "0", "false", "False": isBehind = false
        default: throw filter.invalid("true, false, 1 or 0")
        }
        fill = color
        if isBehind, color.alpha > 0 { job.flatten(on: color) } else { job.fields.set("background", color.hexadecimal) }
    }

    private func color(_ filter: URLOption, _ index: Int) throws(Problem) -> CSSColor {
        let text = filter[index] ?? ""
        guard !["auto", "blur"].contains(text) else {
            throw filter.unsupported("the color would depend on the image")
        }
        let name = text.hasPrefix("#") ? String(text.dropFirst()) : text
        let isName = name.utf8.allSatisfy { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a }
        guard let color = URLOption.color(hexadecimal: name) ?? (isName ? CSSColor(name) : nil) else {
            throw filter.invalid("a color such as red or ff8800")
        }
        return color
    }

    /// Applies a filter of the encoder and returns true, or returns false for another filter.
    private mutating func encode(_ filter: URLOption) throws(Problem) -> Bool {
        switch filter.name {
        case "quality":
            try filter.allow(1...1)
            guard let quality = try filter.whole(0, in: 0...100) else { throw filter.invalid("a whole number") }
            job.fields["quality"] = quality > 0 ? quality.json : nil
        case "format":
            try filter.allow(1...1)
            let name = filter[0] == "jpg" ? "jpeg" : filter[0] ?? ""
            guard let format = ImageFormat(rawValue: name), ImageFormat.writable.contains(format) else {
                let names = ImageFormat.writable.map(\.rawValue).joined(separator: ", ")
                throw filter.unsupported("the formats are \(names)")
            }
            job.fields.set("format", format.rawValue)
        case "autojpg" where isImagor:
            try filter.allow(0...0)
            job.fields.set("format", "jpeg")
        case "lossless" where isImagor:
            try filter.allow(0...0)
            job.fields.set("lossless", true)
        case "max_age" where !isImagor:
            try filter.allow(1...1)
            job.fields["maxAge"] = try filter.whole(0, in: 0...Int(Int32.max)).map { $0 > 0 ? $0 : -1 }?.json
        case "max_bytes":
            try filter.allow(1...1)
            job.fields["maximumBytes"] = try filter.whole(0, in: 0...(1 << 30)).flatMap { $0 > 0 ? $0.json : nil }
        case "to_colorspace" where isImagor:
            try filter.allow(0...1)
            guard let profile = ["srgb": "srgb", "p3": "p3"][filter[0] ?? "srgb"] else {
                throw filter.unsupported("the profiles are srgb and p3")
            }
            job.fields["profile"] = profile == "srgb" ? nil : profile.json
        default: return false
        }
        return true
    }

    private mutating func sharpen(_ filter: URLOption) throws(Problem) {
        if isImagor {
            try filter.allow(1...3)
            let sigma = try filter.number(filter.count > 1 ? 1 : 0, in: 0...4.5) ?? 0
            // The standard deviation that imagor computes.
            job.process("sharpen", [("radius", 1 + 2 * sigma)])
            return
        }
        try filter.allow(3...3)
        let amount = try filter.number(0, in: 0...10) ?? 0
        let radius = try filter.number(1, in: 0...10) ?? 0
        guard ["true", "True", "1", "false", "False", "0"].contains(filter[2] ?? "") else {
            throw filter.invalid("true or false")
        }
        if amount > 0, radius >= 0.1 { job.process("sharpen", [("radius", radius), ("amount", amount)]) }
    }

    private mutating func roundCorner(_ filter: URLOption) throws(Problem) {
        var radii = [filter[0] ?? ""]
        var color = CSSColor.transparent
        if isImagor {
            try filter.allow(1...3)
            if let second = filter[1] { radii.append(second) }
            if filter[2] != nil { color = try self.color(filter, 2) }
        } else {
            try filter.allow(1...5)
            radii = radii[0].split(separator: "|").map { String($0) }
            var channels: [UInt8] = []
            for index in 1...3 { channels.append(UInt8(try filter.whole(index, in: 0...255) ?? 0)) }
            if !["1", "true", "True"].contains(filter[4] ?? "") {
                color = CSSColor(red: channels[0], green: channels[1], blue: channels[2])
            }
        }
        guard Set(radii).count == 1, let radius = Int(radii[0]), (0...65_535).contains(radius) else {
            throw filter.unsupported("the radius must be one whole number")
        }
        if radius > 0 {
            job.process("roundCorner", [("radius", Double(radius)), ("background", color.hexadecimal)])
        }
    }

    /// Applies `watermark(IMAGE,X,Y,ALPHA,WIDTH,HEIGHT)`.
    private mutating func watermark(_ filter: URLOption) throws(Problem) {
        try filter.allow(3...6)
        let (x, y) = (try offset(filter, 1), try offset(filter, 2))
        let alpha = try filter.number(3, in: 0...100) ?? 0
        guard filter[5] == nil || filter[5] == "none" else {
            throw filter.unsupported("the size can only be a fraction of the width")
        }
        var parameters: [(String, any CompatibleValue)] = [("source", try source(filter[0] ?? ""))]
        switch (x, y) {
        case (.tiled, .tiled): parameters += [("position", "topLeft"), ("tiled", true)]
        case (.tiled, _), (_, .tiled): throw filter.unsupported("it can only be repeated in both directions")
        case (.center, .center): parameters.append(("position", "center"))
        case (.center, .start(let margin)): parameters += [("position", "top"), ("margin", margin)]
        case (.center, .end(let margin)): parameters += [("position", "bottom"), ("margin", margin)]
        case (.start(let margin), .center): parameters += [("position", "left"), ("margin", margin)]
        case (.end(let margin), .center): parameters += [("position", "right"), ("margin", margin)]
        case (.start(let x), .start(let y)) where x == y: parameters += [("position", "topLeft"), ("margin", x)]
        case (.end(let x), .start(let y)) where x == y: parameters += [("position", "topRight"), ("margin", x)]
        case (.start(let x), .end(let y)) where x == y: parameters += [("position", "bottomLeft"), ("margin", x)]
        case (.end(let x), .end(let y)) where x == y: parameters += [("position", "bottomRight"), ("margin", x)]
        default: throw filter.unsupported("both distances must be equal")
        }
        parameters.append(("opacity", 1 - alpha / 100))
        if filter[4] != "none", let share = try filter.number(4, in: 0...100), share > 0 {
            parameters.append(("widthFraction", share / 100))
        }
        job.process("watermark", parameters)
    }

    private enum Offset {
        case start(Double), center, end(Double), tiled
    }

    private func offset(_ filter: URLOption, _ index: Int) throws(Problem) -> Offset {
        let text = filter[index] ?? "0"
        let words: [String: Offset] =
            isImagor ? ["left": .start(0), "right": .end(0), "top": .start(0), "bottom": .end(0)] : [:]
        if let word = words[text] { return word }
        switch text {
        case "center": return .center
        case "repeat": return .tiled
        default:
            guard !text.hasSuffix("p"), !text.contains(".") else {
                throw filter.unsupported("positions must be pixels or center")
            }
            let distance = try filter.whole(index, in: -65_535...65_535) ?? 0
            return text.hasPrefix("-") ? .end(Double(-distance)) : .start(Double(distance))
        }
    }

    /// Returns the source that a decoded text names.
    func source(_ text: String) throws(Problem) -> String {
        let grammar = options.dialect.rawValue
        var text = text
        if isImagor, text.hasPrefix("b64:") {
            let encoded = text.dropFirst(4).filter { $0 != "/" }
            guard let decoded = Base64.decode(urlSafe: encoded).flatMap({ String(validating: $0, as: UTF8.self) })
            else { throw Problem(.badRequest, "\(grammar): the image is no base64url") }
            text = decoded
        }
        if isImagor, text.hasPrefix("color:") {
            throw Problem(.badRequest, "\(grammar): images of one color (color:) are not supported")
        }
        return try SourceURL.source(text, base: options.baseURL, scheme: options.defaultScheme, in: grammar)
    }

    /// Returns the job.
    /// - Throws: ``Problem`` for a combination that Halcyon cannot express.
    func draft(of source: String) throws(Problem) -> JobBuilder {
        let grammar = options.dialect.rawValue
        var job = job
        job.fields.set("source", source)
        (job.width, job.height) = (parts.width * proportion, parts.height * proportion)
        if let tolerance = parts.trim {
            job.fields["trim"] = CompatibleJob.object([("tolerance", tolerance.rounded())])
        }
        if let crop = parts.crop, crop.right > crop.left, crop.bottom > crop.top {
            guard parts.trim == nil else {
                throw Problem(.badRequest, "\(parts.grammar): trim cannot be combined with a crop after it")
            }
            let (width, height) = (crop.right - crop.left, crop.bottom - crop.top)
            let isFraction = isImagor && crop.left < 1 && crop.top < 1 && crop.right <= 1 && crop.bottom <= 1
            job.crop =
                isFraction
                ? .fractions(x: crop.left, y: crop.top, width: width, height: height)
                : .pixels(x: crop.left, y: crop.top, width: width, height: height)
        }
        let hasBox = job.width > 0 && job.height > 0
        if parts.fitsIn {
            guard !parts.isAdaptive || !hasBox || job.width == job.height else {
                throw Problem(.badRequest, "\(grammar): adaptive-fit-in is not supported: it depends on the source")
            }
            job.enlarges = upscale ?? parts.isFull
            job.resizing = parts.isFull ? .cover : .fit
            if fill != nil, hasBox, !parts.isFull { (job.resizing, job.enlarges) = (.pad, true) }
        } else {
            job.enlarges = upscale ?? true
            job.resizing = stretches && hasBox ? .stretch : .fillDown
            job.gravity = parts.isSmart ? .attention : .edge(x: parts.x, y: parts.y)
            if let focus { job.gravity = .point(x: focus.x, y: focus.y) }
            // A side of a part can only be cut by a processor.
            if job.resizing == .fillDown, job.crop != nil, case .edge = job.gravity, job.enlarges {
                job.resizing = .fill
            }
        }
        do throws(Unmapped) {
            return try job.draft()
        } catch {
            throw Problem(.badRequest, "\(grammar): this combination is not supported: \(error.reason)")
        }
    }
}
