import HalcyonModel
import JSON

/// The fields that make one output, as they come, each checked for itself; ``variant(_:)`` checks them against each other.
///
/// Null is the default of each of them.
struct VariantFields {
    private var width: Double?
    private var height: Double?
    private var sizer: Sizing.Goal?
    private var sizeForDisplay = true
    private var screenScale = 1.0
    private var contentMode = ContentMode.scaleAspectFill
    private var scaleOptions = ScaleOptions.fitLeavesExcessAndFillCropsExcess
    private var cropRect = UnitRect.whole
    private var gravity = Gravity.center
    private var upscale: Bool?
    private var interpolationQuality = InterpolationQuality.default
    private var background = CSSColor.transparent
    private var processors: ProcessorList?
    private var output = OutputOptions()
    private var findings: Set<Finding> = []

    /// Pixels of the longest side that any of the formats can have.
    static let longestSide = 65_535.0

    /// Takes a field.
    /// - Returns: whether `name` is one.
    mutating func take(_ name: JSONName, _ value: JSONElement, _ reader: JobReader) throws(JSONError) -> Bool {
        let given = value.given
        switch name {
        case "width": width = try given?.points()
        case "height": height = try given?.points()
        case "screenScale": screenScale = CanonicalNumber.rounded(try given?.double(in: 1...4) ?? 1)
        case "contentMode":
            contentMode = try given?.choice(of: ContentMode.allCases, ContentMode.init(name:)) ?? .scaleAspectFill
        case "scaleOptions":
            scaleOptions = try given?.choice(of: ScaleOptions.allCases) ?? .fitLeavesExcessAndFillCropsExcess
        case "cropRect": cropRect = try given.map(UnitRect.init) ?? .whole
        case "format": output.format = try given.flatMap(OutputOptions.format)
        case "quality": output.quality = try given?.integer(in: 1...100).asInt
        case "sizeForDisplay": sizeForDisplay = try given?.bool() ?? true
        case "sizer": sizer = try given?.sizer(registered: reader.customSizers)
        case "gravity": gravity = try given.map(Gravity.init) ?? .center
        case "upscale": upscale = try given?.bool()
        case "interpolationQuality":
            interpolationQuality = try given?.choice(of: InterpolationQuality.allCases) ?? .default
        case "background": background = try given?.color() ?? .transparent
        case "processors": processors = try given?.processors(reader.customProcessors)
        case "lossless": output.lossless = try given?.bool() ?? false
        case "effort": output.effort = try given?.integer(in: 0...9).asInt
        case "progressive": output.progressive = try given?.bool() ?? false
        case "stripMetadata": output.stripMetadata = try given?.bool() ?? true
        case "keepProfile": output.keepProfile = try given?.bool() ?? false
        case "frames": output.frames = try given?.integer(in: 1...65_535).asInt
        case "blurhash": find(.blurhash, try given?.bool() ?? false)
        case "dominantColor": find(.dominantColor, try given?.bool() ?? false)
        default: return false
        }
        return true
    }

    private mutating func find(_ finding: Finding, _ isWanted: Bool) {
        if isWanted { findings.insert(finding) } else { findings.remove(finding) }
    }

    /// What a variant of these defaults begins with: one that says anything of its size says all of it.
    func inherited(by variant: JSONElement) -> VariantFields {
        var fields = self
        if ["width", "height", "sizer", "sizeForDisplay"].contains(where: { variant.member($0) != nil }) {
            (fields.width, fields.height, fields.sizer, fields.sizeForDisplay) = (nil, nil, nil, true)
        }
        return fields
    }

    /// The whole.
    func variant(_ reader: JobReader) throws(JSONError) -> Variant {
        let sizing = Sizing(
            goal: try goal(), cropRect: cropRect, screenScale: screenScale, gravity: gravity, upscale: upscale)
        return Variant(
            sizing: sizing, interpolationQuality: interpolationQuality, background: background,
            processors: try processors?.scaled(by: screenScale, reader.customProcessors) ?? [], output: output,
            findings: findings)
    }

    /// Not both a sizer and a size.
    func checkSizer() throws(JSONError) {
        if sizer != nil, width != nil || height != nil {
            throw JSONError(.invalid, "stands instead of width and height, not beside them", path: "sizer")
        }
    }

    private func goal() throws(JSONError) -> Sizing.Goal {
        try checkSizer()
        for (name, side) in [("width", width), ("height", height)] {
            if let side, pixels(side) > Self.longestSide { throw .tooManyPixels(Self.longestSide).within(name) }
        }
        return switch (sizer, width, height) {
        case _ where !sizeForDisplay: .original
        case (let sizer?, _, _): sizer
        case (nil, let width?, let height?):
            .display(Display(width: width, height: height, contentMode: contentMode, scaleOptions: scaleOptions))
        case (nil, let width?, nil): .sizer(.aspectScaleDownByWidth(pixels(width)))
        case (nil, nil, let height?): .sizer(.aspectScaleDownByHeight(pixels(height)))
        case (nil, nil, nil): .sizer(.natural)
        }
    }

    /// Output pixels = round(points) × scale.
    private func pixels(_ points: Double) -> Double {
        CanonicalNumber.rounded(max(1, points.rounded(.toNearestOrAwayFromZero)) * screenScale)
    }
}

extension Int64 {
    fileprivate var asInt: Int { Int(self) }
}

extension JSONError {
    /// A length in points that is good without its scale.
    static func tooManyPixels(_ most: Double) -> JSONError {
        JSONError(.invalid, "makes more than \(Int(most)) pixels")
    }
}
