import Formats
import HalcyonCoding
import HalcyonModel

/// The job that a URL of another image server describes, while it is put together. A pure value.
///
/// Values are pixels: the jobs have a screen scale of 1, and a device pixel ratio multiplies their sizes.
struct CompatibleJob {
    /// The treatment of a size.
    enum Resizing {
        /// The largest size inside the box.
        case fit
        /// The smallest size that covers the box, of which nothing is cut.
        case cover
        /// The box, covered and cut. A source that is smaller is cut to the box where it is larger.
        case fill
        /// The box, covered and cut. A source that is smaller is cut to the aspect ratio of the box.
        case fillDown
        /// The box, of which the image is the largest part inside it.
        case pad
        /// The same with a smaller box for a source that is smaller.
        case padDown
        /// The box, with both sides stretched.
        case stretch
    }

    /// The part that remains when an image is cut.
    enum Gravity: Hashable {
        /// A side, a corner or the center, each 0, 0.5 or 1.
        case edge(x: Double, y: Double)
        /// The surroundings of a point, in fractions of the image.
        case point(x: Double, y: Double)
        case attention
        /// What a detector finds: `faces` or `objects`.
        case detected(String)

        static let center = Gravity.edge(x: 0.5, y: 0.5)
    }

    /// The part of the image that is used.
    enum Crop: Hashable {
        case fractions(x: Double, y: Double, width: Double, height: Double)
        case pixels(x: Double, y: Double, width: Double, height: Double)
        /// A size in pixels at a side, a corner or the center. A side of ``longestSide`` is the whole side.
        case anchored(width: Double, height: Double, x: Double, y: Double)
    }

    /// The largest side of an image that jobs can request.
    static let longestSide = 65_535.0

    var resizing = Resizing.fit
    /// The size of the box; 0 for a side that follows from the other.
    var (width, height) = (0.0, 0.0)
    /// True if the image may be enlarged.
    var enlarges = false
    var gravity = Gravity.center
    var crop: Crop?
    /// The clockwise rotation of the image before anything else, in quarters.
    var quarterTurns = 0
    /// The fields of the job besides its size and processors.
    var fields = JobBuilder()
    private var processors: [[UInt8]] = []

    /// Adds a step with its parameters.
    mutating func process(_ name: String, _ parameters: [(String, any CompatibleValue)] = []) {
        var step = JobBuilder()
        step[name] = Self.object(parameters)
        processors.append(step.json)
    }

    static func object(_ members: [(String, any CompatibleValue)]) -> [UInt8] {
        var object = JobBuilder()
        for (name, value) in members { object[name] = value.json }
        return object.json
    }

    /// Lays the image over a color, so that it is opaque.
    mutating func flatten(on color: CSSColor) {
        fields.set("background", color.hexadecimal)
        process("blend", [("mode", "normal"), ("background", color.hexadecimal)])
    }

    /// Returns the job.
    /// - Throws: ``Unmapped`` with a reason if Halcyon cannot size the image in this way.
    func draft() throws(Unmapped) -> JobBuilder {
        var job = self
        let effects = job.processors
        job.processors = []
        if case .anchored(let width, let height, let x, let y) = crop {
            try job.sizeInSteps(after: Self.cut(width, height, x, y))
        } else {
            job.setCropRect()
            try job.setSize()
        }
        job.processors += effects
        if !job.processors.isEmpty {
            var list: [UInt8] = [UInt8(ascii: "[")]
            list += job.processors.joined(separator: [UInt8(ascii: ",")])
            job.fields["processors"] = list + [UInt8(ascii: "]")]
        }
        return job.fields
    }

    private typealias Step = (name: String, parameters: [(String, any CompatibleValue)])

    private static func cut(_ width: Double, _ height: Double, _ x: Double, _ y: Double) -> Step {
        let anchor = object([("x", x), ("y", y)])
        return ("crop", [("width", width), ("height", height), ("anchor", RawJSON(json: anchor))])
    }

    private mutating func process(_ step: Step) { process(step.name, step.parameters) }

    /// Cuts and resizes with processors, because the position of a part of given size depends on the image.
    private mutating func sizeInSteps(after cut: Step) throws(Unmapped) {
        guard quarterTurns == 0 else { throw Unmapped("a crop cannot be combined with a rotation before it") }
        fields.set("sizeForDisplay", false)
        process(cut)
        guard width > 0 || height > 0 else { return }
        guard case .anchored(let across, let down, _, _) = crop else { return }
        let target = (
            width: width > 0 ? width : Self.longestSide, height: height > 0 ? height : Self.longestSide
        )
        let size: [(String, any CompatibleValue)] = [("width", target.width), ("height", target.height)]
        let fits = width == 0 || height == 0 || resizing == .fit
        if fits {
            process(enlarges ? ("resize", size + [("mode", "aspectFit")]) : ("downsample", size))
            return
        }
        guard enlarges || width <= across && height <= down else {
            throw Unmapped("a crop in pixels cannot be combined with a larger size that must not enlarge it")
        }
        switch (resizing, gravity) {
        case (.stretch, _): process("resize", size)
        case (.cover, _): process("resize", size + [("mode", "aspectFill")])
        case (.fill, .edge(let x, let y)), (.fillDown, .edge(let x, let y)):
            process("resize", size + [("mode", "aspectFill")])
            process(Self.cut(width, height, x, y))
        default: throw Unmapped("a crop in pixels at this position cannot be combined with this resizing")
        }
    }

    private mutating func setCropRect() {
        let rectangle: [(String, any CompatibleValue)]
        switch crop {
        case .fractions(let x, let y, let width, let height):
            rectangle = [("x", x), ("y", y), ("width", width), ("height", height)]
        case .pixels(let x, let y, let width, let height):
            rectangle = [("x", x), ("y", y), ("width", width), ("height", height), ("unit", "pixels")]
        case .anchored, nil: return
        }
        fields["cropRect"] = Self.object(rectangle)
    }

    private mutating func setSize() throws(Unmapped) {
        let turned = !quarterTurns.isMultiple(of: 2)
        let (across, down) = turned ? (height, width) : (width, height)
        if quarterTurns != 0, crop != nil {
            throw Unmapped("a crop cannot be combined with a rotation before it")
        }
        if across > 0 { fields.set("width", across) }
        if down > 0 { fields.set("height", down) }
        if across > 0, down > 0 {
            try place()
        } else {
            if enlarges, across > 0 || down > 0 { fields.set("upscale", true) }
            turn()
        }
    }

    /// Sets the fields for a box with both sides.
    private mutating func place() throws(Unmapped) {
        var cutting: Step?
        switch resizing {
        case .fit: set("scaleAspectFit", "fitCropsExcess")
        case .cover: set("scaleAspectFill", "fillLeavesExcess")
        case .pad: set("scaleAspectFit", nil)
        case .padDown: set("scaleAspectFit", nil)
        case .stretch: set("scaleToFill", nil)
        case .fill, .fillDown:
            // The gravity of jobs is a point of the whole image, so a side of a part is cut by a processor, as is a
            // source that is smaller.
            if case .edge(let x, let y) = gravity, resizing == .fill, !enlarges || crop != nil && !isCornerOrCenter {
                set("scaleAspectFill", "fillLeavesExcess")
                cutting = Self.cut(width, height, x, y)
            } else {
                set("scaleAspectFill", nil)
                try setGravity()
            }
        }
        if !enlarges, resizing != .pad { fields.set("upscale", false) }
        turn()
        if let cutting { process(cutting) }
    }

    private mutating func set(_ mode: String, _ options: String?) {
        fields.set("contentMode", mode)
        if let options { fields.set("scaleOptions", options) }
    }

    private mutating func turn() {
        if quarterTurns != 0 { process("rotate", [("degrees", Double(quarterTurns * 90))]) }
    }

    /// True for an edge whose point selects the same part of the whole image and of a crop of it.
    private var isCornerOrCenter: Bool {
        guard case .edge(let x, let y) = gravity else { return false }
        return gravity == .center || x != 0.5 && y != 0.5
    }

    private mutating func setGravity() throws(Unmapped) {
        var point: (x: Double, y: Double)
        switch gravity {
        case .center: return
        case .attention:
            fields.set("gravity", "attention")
            return
        case .detected(let kind):
            fields.set("gravity", kind)
            return
        case .edge(let x, let y):
            guard crop == nil || isCornerOrCenter else {
                throw Unmapped("a crop cannot be combined with this gravity; use a corner or the center")
            }
            point = (x, y)
        case .point(let x, let y):
            switch crop {
            case nil: point = (x, y)
            case .fractions(let left, let top, let width, let height): point = (left + x * width, top + y * height)
            default: throw Unmapped("a crop in pixels cannot be combined with a focus point")
            }
        }
        // The gravity of a job precedes its rotation.
        for _ in 0..<quarterTurns { point = (point.y, 1 - point.x) }
        fields["gravity"] = Self.object([("x", point.x), ("y", point.y)])
    }
}

/// A combination that Halcyon's jobs cannot express.
struct Unmapped: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// A value in the parameters of a processor.
protocol CompatibleValue {
    var json: [UInt8] { get }
}

extension String: CompatibleValue {}
extension Double: CompatibleValue {}
extension Bool: CompatibleValue {}

/// A value that is JSON already.
struct RawJSON: CompatibleValue {
    let json: [UInt8]
}

/// The qualities of lossy formats for jobs without their own. A pure value.
struct FormatQualities: Hashable, Sendable {
    /// The quality of formats without their own, and of the format of the source; nil for the default of Halcyon.
    var standard: Int?
    var byFormat: [ImageFormat: Int] = [:]

    /// Returns the quality of a job's format.
    /// - Parameter format: The JSON of the field; nil without one.
    func quality(ofFormat format: [UInt8]?) -> Int? {
        ImageFormat.writable.first { $0.rawValue.json == format }.flatMap { byFormat[$0] } ?? standard
    }
}

/// An option or a filter of a URL, with its arguments. Its errors name it.
struct URLOption {
    /// The server that the option belongs to, such as `imgproxy`.
    let grammar: String
    let name: String
    let arguments: [String]
    /// The option as written, for errors.
    let text: String

    /// The number of arguments, without empty ones at the end.
    var count: Int { (arguments.lastIndex { !$0.isEmpty } ?? -1) + 1 }

    /// The argument at this position; nil if it is empty or missing.
    subscript(index: Int) -> String? {
        arguments.indices.contains(index) && !arguments[index].isEmpty ? arguments[index] : nil
    }

    /// Returns the option with the arguments from this position on.
    func dropping(_ count: Int) -> URLOption {
        URLOption(grammar: grammar, name: name, arguments: Array(arguments.dropFirst(count)), text: text)
    }

    /// The error of an option without a counterpart.
    func unsupported(_ reason: String = "Halcyon has no counterpart") -> Problem {
        Problem(.badRequest, "\(grammar): \(Self.shortened(text)) is not supported: \(reason)")
    }

    /// The error of an option with an invalid argument.
    func invalid(_ expectation: String) -> Problem {
        Problem(.badRequest, "\(grammar): \(Self.shortened(text)): expected \(expectation)")
    }

    private static func shortened(_ text: String) -> String {
        text.utf8.count <= 100 ? text : "\(text.prefix(100))…"
    }

    /// Checks the number of arguments.
    func allow(_ counts: ClosedRange<Int>) throws(Problem) {
        guard counts.contains(count) else {
            let numbers = counts.count == 1 ? "\(counts.lowerBound)" : "\(counts.lowerBound) to \(counts.upperBound)"
            throw invalid("\(numbers) arguments, found \(count)")
        }
    }

    /// Returns a decimal number in a range; nil if it is missing.
    func number(_ index: Int, in range: ClosedRange<Double>) throws(Problem) -> Double? {
        guard let text = self[index] else { return nil }
        // Double also accepts words, exponents and hexadecimal digits.
        guard text.utf8.count <= 32, text.utf8.allSatisfy({ Self.isDigit($0) || "+-.".utf8.contains($0) }),
            let number = Double(text), range.contains(number)
        else {
            throw invalid("a number from \(Self.text(range.lowerBound)) to \(Self.text(range.upperBound))")
        }
        return number
    }

    /// Returns a whole number in a range; nil if it is missing.
    func whole(_ index: Int, in range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = self[index] else { return nil }
        let digits = text.utf8.dropFirst(text.hasPrefix("-") ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy(Self.isDigit), let number = Int(text), range.contains(number) else {
            throw invalid("a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func text(_ number: Double) -> String {
        number == number.rounded() ? "\(Int(number))" : "\(number)"
    }

    /// Returns a color in three or six hexadecimal digits; nil for other texts.
    static func color(hexadecimal text: String) -> CSSColor? {
        [3, 6].contains(text.utf8.count) ? CSSColor("#\(text)") : nil
    }
}

/// The source that a URL of another server names.
enum SourceURL {
    /// Returns a base URL that ends with a slash; nil for a text that is no URL.
    static func base(_ text: String) -> String? {
        guard hasScheme(text), !text.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7f }) else { return nil }
        let rest = text[(text.firstRange(of: "://")?.upperBound ?? text.endIndex)...]
        guard rest.first != "/", !rest.isEmpty, !rest.contains("?"), !rest.contains("#") else { return nil }
        return text.hasSuffix("/") ? text : "\(text)/"
    }

    /// Returns the source of a job.
    /// - Parameters:
    ///   - text: the URL or path, decoded.
    ///   - base: the URL that paths are appended to; empty for none.
    ///   - scheme: the scheme of URLs without one; nil if they must have one.
    /// - Throws: ``Problem`` for a source that is not a URL of http, https or s3, or that leaves the base.
    static func source(_ text: String, base: String, scheme: String?, in grammar: String) throws(Problem) -> String {
        guard !text.isEmpty else { throw Problem(.badRequest, "\(grammar): the URL names no image") }
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw Problem(.badRequest, "\(grammar): the image has control characters")
        }
        var url = restored(text)
        if let base = Self.base(base) {
            if url.hasPrefix(base) { url.removeFirst(base.count) }
            let path = url.drop { $0 == "/" }
            // The path is decoded once more, because origins may do so.
            let segments = (PercentEncoding.decode(path) ?? "..").split { "/\\?#".contains($0) }
            guard !segments.contains(".."), !segments.contains(".") else {
                throw Problem(.badRequest, "\(grammar): the path of the image has . or .. as a segment")
            }
            url = base + path
        } else if !hasScheme(url) {
            guard let scheme, !hasOtherScheme(url) else {
                throw Problem(
                    .badRequest, "\(grammar): the image must be a URL of http, https or s3", code: "unsupported_source")
            }
            url = "\(scheme)://\(url)"
        }
        return escaped(url)
    }

    /// Returns a URL whose double slash a proxy merged into one, as it was.
    private static func restored(_ text: String) -> String {
        for scheme in ["http:/", "https:/", "s3:/"] where text.hasPrefix(scheme) && !text.hasPrefix(scheme + "/") {
            return scheme + "/" + text.dropFirst(scheme.count)
        }
        return text
    }

    private static func hasScheme(_ text: String) -> Bool {
        let start = text.prefix(8).lowercased()
        return ["http://", "https://", "s3://"].contains { start.hasPrefix($0) }
    }

    /// True for texts such as `data:…` and `file:///…`, but not for a host with a port.
    private static func hasOtherScheme(_ text: String) -> Bool {
        guard let colon = text.firstIndex(where: { ":/?#".contains($0) }), text[colon] == ":" else { return false }
        let port = text[text.index(after: colon)...].prefix { !"/?#".contains($0) }
        return port.isEmpty || port.utf8.contains { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// Escapes the characters that URLs must not contain, and nothing else.
    private static func escaped(_ url: String) -> String {
        PercentEncoding.encode(url, keeping: "%:/?#[]@!$&'()*+,;=")
    }
}
