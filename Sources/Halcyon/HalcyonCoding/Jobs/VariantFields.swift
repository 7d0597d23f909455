import HalcyonModel
import JSON

/// The fields of an output. Each field is validated on its own; ``variant(_:)`` validates their combination.
///
/// Null is equivalent to the default of a field.
struct VariantFields {
    private var page = 1
    private var width: Double?
    private var height: Double?
    private var sizer: Sizing.Goal?
    private var sizeForDisplay = true
    private var screenScale = 1.0
    private var contentMode = ContentMode.scaleAspectFill
    private var scaleOptions = ScaleOptions.fitLeavesExcessAndFillCropsExcess
    private var position = ContentMode.center
    private var cropRect = CropRect.whole
    private var trim: Trim?
    private var gravity = Gravity.center
    private var upscale: Bool?
    private var interpolationQuality = InterpolationQuality.default
    private var linearLight = false
    private var background = CSSColor.transparent
    private var before: ProcessorList?
    private var processors: ProcessorList?
    private var tolerance: Tolerance?
    private var output = OutputOptions()
    private var findings: Set<AnalysisKind> = []
    private var info: InfoOptions?

    /// The longest side that any of the formats supports, in pixels.
    static let longestSide = 65_535.0

    /// The greatest `maximumBytes`: 1 GiB.
    private static let maximumBytes: Int64 = 1 << 30

    /// Decodes a field.
    /// - Returns: True if `name` is a field of an output.
    mutating func read(_ name: JSONName, _ value: JSONElement, _ reader: JobDecoder) throws(JSONError) -> Bool {
        let isNull = value.isNull
        switch name {
        case "page": page = try isNull ? 1 : Int(value.integer(in: 1...65_535))
        case "width": width = try isNull ? nil : value.points()
        case "height": height = try isNull ? nil : value.points()
        case "screenScale": screenScale = try isNull ? 1 : CanonicalNumber.rounded(value.double(in: 1...4))
        case "contentMode":
            contentMode =
                try isNull ? .scaleAspectFill : value.choice(of: ContentMode.allCases, ContentMode.init(name:))
        case "scaleOptions":
            scaleOptions = try isNull ? .fitLeavesExcessAndFillCropsExcess : value.choice(of: ScaleOptions.allCases)
        case "position": position = try isNull ? .center : ContentMode(position: value)
        case "cropRect": cropRect = try isNull ? .whole : CropRect(value)
        case "trim": trim = try isNull ? nil : Trim(value)
        case "format": try output.setFormat(value)
        case "quality": try output.setQuality(value)
        case "maximumBytes": output.maximumBytes = try isNull ? nil : Int(value.integer(in: 1...Self.maximumBytes))
        case "allowResize": output.allowsResizing = try isNull ? false : value.bool()
        case "sizeForDisplay": sizeForDisplay = try isNull ? true : value.bool()
        case "sizer": sizer = try isNull ? nil : value.sizer(registered: reader.customSizers)
        case "gravity": gravity = try isNull ? .center : Gravity(value)
        case "upscale": upscale = try isNull ? nil : value.bool()
        case "interpolationQuality":
            interpolationQuality = try isNull ? .default : value.choice(of: InterpolationQuality.allCases)
        case "linearLight": linearLight = try isNull ? false : value.bool()
        case "background": background = try isNull ? .transparent : value.color()
        case "before": before = try isNull ? nil : ProcessorList(value, reader)
        case "processors": processors = try isNull ? nil : ProcessorList(value, reader)
        case "lossless": output.lossless = try isNull ? false : value.bool()
        case "nearLossless": output.nearLossless = try isNull ? false : value.bool()
        case "chromaSubsampling": try output.setChromaSubsampling(value)
        case "bitDepth": try output.setBitDepth(value)
        case "quantize": output.quantization = try isNull ? nil : Quantization(value)
        case "effort": output.effort = try isNull ? nil : Int(value.integer(in: 0...9))
        case "progressive": output.progressive = try isNull ? false : value.bool()
        case "stripMetadata": output.stripMetadata = try isNull ? true : value.bool()
        case "keepProfile": output.keepProfile = try isNull ? false : value.bool()
        case "profile": try output.setProfile(value)
        case "frames": output.frames = try isNull ? nil : Int(value.integer(in: 1...65_535))
        case "tolerance": tolerance = try isNull ? nil : value.choice(of: Tolerance.allCases)
        case "blurhash": find(.blurhash, try isNull ? false : value.bool())
        case "dominantColor": find(.dominantColor, try isNull ? false : value.bool())
        case "palette": find(.palette, try isNull ? false : value.bool())
        case "thumbhash": find(.thumbhash, try isNull ? false : value.bool())
        case "phash": find(.phash, try isNull ? false : value.bool())
        case "faces": find(.faces, try isNull ? false : value.bool())
        case "info": info = try isNull ? nil : InfoOptions.given(value)
        default: return false
        }
        return true
    }

    private mutating func find(_ finding: AnalysisKind, _ isWanted: Bool) {
        if isWanted { findings.insert(finding) } else { findings.remove(finding) }
    }

    /// Returns the defaults for a variant. A variant that has any field for its size inherits none of the size fields.
    func inherited(by variant: JSONElement) -> VariantFields {
        var fields = self
        if ["width", "height", "sizer", "sizeForDisplay"].contains(where: { variant.member($0) != nil }) {
            (fields.width, fields.height, fields.sizer, fields.sizeForDisplay) = (nil, nil, nil, true)
        }
        return fields
    }

    /// Creates the variant.
    func variant(_ reader: JobDecoder) throws(JSONError) -> Variant {
        if output.choosesFormat, output.quality != nil {
            throw JSONError(
                .invalid, "with the format best, expected a target such as {\"target\": 0.98}", path: "quality")
        }
        if output.profile != nil, output.keepProfile {
            throw JSONError(.invalid, "cannot be combined with keepProfile", path: "profile")
        }
        let sizing = Sizing(
            goal: try goal(), cropRect: cropRect, trim: trim, screenScale: screenScale, gravity: gravity,
            upscale: upscale)
        var variant = Variant(
            sizing: sizing, interpolationQuality: interpolationQuality, linearLight: linearLight,
            background: background, before: try before?.scaled(by: screenScale, reader, "before") ?? [],
            processors: try processors?.scaled(by: screenScale, reader, "processors") ?? [], tolerance: tolerance,
            output: output, findings: findings, info: info, page: page)
        variant.detector = reader.detector
        guard let info else {
            try variant.checkDetection()
            if let conflict = variant.bitDepthConflict { throw JSONError(.invalid, conflict, path: "bitDepth") }
            return variant
        }
        // No image is rendered, so its fields have no effect.
        variant = Variant(
            sizing: Sizing(goal: .sizer(.natural)), tolerance: tolerance, findings: findings, info: info, page: page)
        variant.detector = reader.detector
        return variant
    }

    /// Checks that a sizer is not combined with a width or height.
    func checkSizer() throws(JSONError) {
        if sizer != nil, width != nil || height != nil {
            throw JSONError(.invalid, "cannot be combined with width or height", path: "sizer")
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
            .display(
                Display(
                    width: width, height: height, contentMode: contentMode, scaleOptions: scaleOptions,
                    position: position))
        case (nil, let width?, nil): .sizer(.aspectScaleDownByWidth(pixels(width)))
        case (nil, nil, let height?): .sizer(.aspectScaleDownByHeight(pixels(height)))
        case (nil, nil, nil): .sizer(.natural)
        }
    }

    /// Converts points to output pixels: round(points) × scale.
    private func pixels(_ points: Double) -> Double {
        CanonicalNumber.rounded(max(1, points.rounded(.toNearestOrAwayFromZero)) * screenScale)
    }
}

extension Variant {
    /// Checks that detections, which are positions in the source, are still known where they are used.
    fileprivate func checkDetection() throws(JSONError) {
        guard !detections.isEmpty else { return }
        try Self.check(before, "before")
        if let last = processors.lastIndex(where: \.hidesFaces) {
            try Self.check(Array(processors[..<last]), "processors")
        }
        if findings.contains(.faces) { try Self.check(processors, "processors") }
    }

    private static func check(_ processors: [Processor], _ field: String) throws(JSONError) {
        guard let index = processors.firstIndex(where: { !$0.preservesPositions }) else { return }
        throw JSONError(
            .invalid,
            "\(processors[index].name) changes the positions of detected faces and objects, which are needed later",
            path: "\(field)[\(index)]")
    }
}

extension JSONError {
    /// The error for a length that is valid in points, but too large after scaling.
    static func tooManyPixels(_ most: Double) -> JSONError {
        JSONError(.invalid, "is more than \(Int(most)) pixels")
    }
}
