import HalcyonModel
import JSON

/// The processors of an output as they come: lengths in points, until the scale is known.
struct ProcessorList {
    private let element: JSONElement
    /// At one pixel a point.
    private let unscaled: [Processor]

    /// Steps of one output at most.
    static let most = 32

    /// - Parameter reader: knows what the host program registered.
    init(_ element: JSONElement, _ reader: JobReader) throws(JSONError) {
        self.element = element
        unscaled = try Self.read(element, scale: 1, reader)
    }

    /// With lengths in pixels.
    func scaled(by scale: Double, _ reader: JobReader) throws(JSONError) -> [Processor] {
        guard scale != 1, !unscaled.isEmpty else { return unscaled }
        do throws(JSONError) {
            return try Self.read(element, scale: scale, reader)
        } catch {
            throw error.within("processors")
        }
    }

    private static func read(
        _ element: JSONElement, scale: Double, _ reader: JobReader
    ) throws(JSONError) -> [Processor] {
        var processors: [Processor] = []
        try element.forEachElement { element throws(JSONError) in
            guard processors.count < most else { throw .tooMany(most) }
            processors.append(try element.processor(scale: scale, reader))
        }
        return processors
    }
}

extension JSONElement {
    /// A processor: its name, or an object of one member, which is its name with its parameters.
    fileprivate func processor(scale: Double, _ reader: JobReader) throws(JSONError) -> Processor {
        guard kind == .object else {
            let name = try string()
            do throws(JSONError) {
                return try Self.processor(name, nil, scale, reader)
            } catch {
                throw error.within(name)
            }
        }
        var processor: Processor?
        try forEachGiven { name, value throws(JSONError) in
            guard processor == nil else { throw JSONError(.invalid, "is one processor too many in its place") }
            processor = try Self.processor("\(name)", value, scale, reader)
        }
        guard let processor else { throw JSONError(.missing, "names no processor") }
        return processor
    }

    private static func processor(
        _ name: String, _ value: JSONElement?, _ scale: Double, _ reader: JobReader
    ) throws(JSONError) -> Processor {
        if let kind = ProcessorKind(rawValue: name) {
            return try kind.read(try Parameters(value, of: kind, scale: scale, reader))
        }
        guard reader.customProcessors.contains(name) else {
            throw .noRule(
                name, "processor", among: ProcessorKind.allCases.map(\.rawValue) + reader.customProcessors.sorted())
        }
        return .custom(CustomRule(name: name, parameters: try value?.ruleParameters() ?? "{}"))
    }
}

/// Halcyon's own processors, by the names that jobs give them.
enum ProcessorKind: String, CaseIterable {
    case roundCorner, resize, crop, blur, tint, overlay, blend, colorControls, blackWhite, border, downsample, sharpen
    case pixelate, watermark, rotate, flip

    /// The names of its parameters.
    var parameters: [String] {
        switch self {
        case .roundCorner: ["radius", "widthFraction", "heightFraction", "corners", "background"]
        case .resize: ["width", "height", "mode"]
        case .crop: ["width", "height", "anchor"]
        case .blur: ["radius"]
        case .tint: ["color"]
        case .overlay: ["color", "fraction", "source", "opacity"]
        case .blend: ["mode", "opacity", "background"]
        case .colorControls: ["brightness", "contrast", "saturation", "exposure"]
        case .blackWhite: []
        case .border: ["width", "color", "radius", "widthFraction", "heightFraction", "corners"]
        case .downsample: ["width", "height"]
        case .sharpen: ["radius", "amount"]
        case .pixelate: ["size"]
        case .watermark: ["source", "position", "margin", "widthFraction", "opacity", "tiled"]
        case .rotate: ["degrees", "background"]
        case .flip: ["direction"]
        }
    }

    /// The processor of these parameters.
    func read(_ parameters: Parameters) throws(JSONError) -> Processor {
        switch self {
        case .roundCorner: .roundCorner(try parameters.roundCorner())
        case .resize:
            .resize(try parameters.size(), try parameters.choice("mode", of: ResizeMode.allCases) ?? .none)
        case .crop: .crop(try parameters.size(), anchor: try parameters.optional("anchor", UnitPoint.init) ?? .center)
        case .blur: .blur(radius: try parameters.required("radius", parameters.blurRadius))
        case .tint: .tint(try parameters.required("color", color))
        case .overlay: .overlay(try parameters.overlay())
        case .blend: .blend(try parameters.blend())
        case .colorControls: .colorControls(try parameters.colorControls())
        case .blackWhite: .blackWhite
        case .border: .border(try parameters.border())
        case .downsample: .downsample(try parameters.size())
        case .sharpen: .sharpen(try parameters.sharpen())
        case .pixelate: .pixelate(try parameters.required("size", parameters.pixels))
        case .watermark: .watermark(try parameters.watermark())
        case .rotate:
            .rotate(
                degrees: try parameters.required("degrees", degrees),
                background: try parameters.optional("background", color) ?? .transparent)
        case .flip: .flip(try parameters.choice("direction", of: Flip.allCases) ?? .horizontal)
        }
    }
}
