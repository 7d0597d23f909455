extension Processor {
    /// The names of Halcyon's own processors, as jobs write them.
    public static let names: Set = [
        "roundCorner", "resize", "crop", "blur", "tint", "overlay", "blend", "colorControls", "blackWhite", "border",
        "downsample", "sharpen", "pixelate", "watermark", "rotate", "flip",
    ]

    /// The name that a job gives it.
    public var name: String {
        switch self {
        case .roundCorner: "roundCorner"
        case .resize: "resize"
        case .crop: "crop"
        case .blur: "blur"
        case .tint: "tint"
        case .overlay: "overlay"
        case .blend: "blend"
        case .colorControls: "colorControls"
        case .blackWhite: "blackWhite"
        case .border: "border"
        case .downsample: "downsample"
        case .sharpen: "sharpen"
        case .pixelate: "pixelate"
        case .watermark: "watermark"
        case .rotate: "rotate"
        case .flip: "flip"
        case .custom(let rule): rule.name
        }
    }
}

extension Sizer {
    /// The names of Halcyon's own sizers, as jobs write them.
    public static let names: Set = ["natural", "aspectScaleDownByWidth", "aspectScaleDownByHeight"]
}
