import HalcyonModel
import JSON

/// The processors of an output. Lengths are in points until the scale is known.
struct ProcessorList {
    private let element: JSONElement
    /// The processors at one pixel per point.
    private let unscaled: [Processor]

    /// The maximum number of processors of an output.
    static let most = 32

    /// Decodes a list of processors.
    /// - Parameter reader: The decoder, which has the names registered by the host program.
    init(_ element: JSONElement, _ reader: JobDecoder) throws(JSONError) {
        self.element = element
        unscaled = try Self.read(element, scale: 1, reader)
    }

    /// Returns the processors with lengths in pixels.
    /// - Parameter field: The name of the field, for errors.
    func scaled(by scale: Double, _ reader: JobDecoder, _ field: String) throws(JSONError) -> [Processor] {
        guard scale != 1, !unscaled.isEmpty else { return unscaled }
        do throws(JSONError) {
            return try Self.read(element, scale: scale, reader)
        } catch {
            throw error.within(field)
        }
    }

    private static func read(
        _ element: JSONElement, scale: Double, _ reader: JobDecoder
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
    /// Decodes a processor: its name, or an object with one member, whose name is the processor and whose value is its
    /// parameters.
    fileprivate func processor(scale: Double, _ reader: JobDecoder) throws(JSONError) -> Processor {
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
            guard processor == nil else {
                throw JSONError(.invalid, "is a second processor in the same object; expected only one")
            }
            processor = try Self.processor("\(name)", value, scale, reader)
        }
        guard let processor else { throw JSONError(.missing, "expected an object that names a processor") }
        return processor
    }

    private static func processor(
        _ name: String, _ value: JSONElement?, _ scale: Double, _ reader: JobDecoder
    ) throws(JSONError) -> Processor {
        if let kind = ProcessorKind(rawValue: name) {
            return try kind.read(try Parameters(value, of: kind, scale: scale, reader))
        }
        guard reader.customProcessors.contains(name) else {
            throw .noRule(
                name, "processor", among: ProcessorKind.allCases.map(\.rawValue) + reader.customProcessors.sorted())
        }
        return .custom(CustomExtension(name: name, parameters: try value?.ruleParameters() ?? "{}"))
    }
}

/// The built-in processors, by their names in jobs.
enum ProcessorKind: String, CaseIterable {
    case roundCorner, resize, crop, blur, tint, overlay, blend, colorControls, blackWhite, border, downsample, sharpen
    case pixelate, watermark, rotate, flip, pad, text, mask, hue, gamma, normalize, duotone
    case blurFaces, pixelateFaces

    /// The names of the processor's parameters.
    var parameters: [String] {
        switch self {
        case .roundCorner: ["radius", "widthFraction", "heightFraction", "corners", "background"]
        case .resize: ["width", "height", "mode"]
        case .crop: ["width", "height", "anchor"]
        case .blur: ["radius"]
        case .tint: ["color"]
        case .overlay: ["color", "fraction", "source", "opacity", "mode"]
        case .blend: ["mode", "opacity", "background"]
        case .colorControls: ["brightness", "contrast", "saturation", "exposure"]
        case .blackWhite: []
        case .border: ["width", "color", "radius", "widthFraction", "heightFraction", "corners"]
        case .downsample: ["width", "height"]
        case .sharpen: ["radius", "amount"]
        case .pixelate: ["size"]
        case .watermark:
            ["source", "position", "margin", "widthFraction", "scale", "offset", "opacity", "mode", "tiled"]
        case .rotate: ["degrees", "background"]
        case .flip: ["direction"]
        case .pad: ["all", "top", "right", "bottom", "left", "fill", "color"]
        case .text:
            [
                "text", "font", "bold", "italic", "size", "width", "height", "align", "color", "outlineWidth",
                "outlineColor", "opacity", "position", "margin", "offset",
            ]
        case .mask: ["shape", "source"]
        case .hue: ["degrees"]
        case .gamma: ["gamma"]
        case .normalize: ["lower", "upper"]
        case .duotone: ["dark", "light"]
        case .blurFaces: ["amount", "margin", "confidence"]
        case .pixelateFaces: ["cells", "margin", "confidence"]
        }
    }

    /// Creates the processor from its parameters.
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
        case .pad: .pad(try parameters.pad())
        case .text: .text(try parameters.text())
        case .mask: .mask(try parameters.mask())
        case .hue: .hue(degrees: try parameters.required("degrees", degrees))
        case .gamma: .gamma(try parameters.number("gamma", in: 0.1...10, default: 2.2))
        case .normalize: .normalize(try parameters.normalize())
        case .blurFaces:
            .hideFaces(
                try parameters.hiding(.blur(amount: parameters.number("amount", in: 0.05...1, default: 0.15))))
        case .pixelateFaces: .hideFaces(try parameters.hiding(.pixelate(cells: parameters.cells())))
        case .duotone:
            .duotone(dark: try parameters.required("dark", color), light: try parameters.required("light", color))
        }
    }
}
