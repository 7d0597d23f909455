import HalcyonModel
import JSON

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
