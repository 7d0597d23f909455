extension String {
    /// Appends one line for a processor: its name and its parameters in a fixed order, with lengths in pixels.
    mutating func append(_ processor: Processor) {
        self += "processor="
        switch processor {
        case .roundCorner(let round):
            self += "roundCorner"
            append(round.radius, round.corners)
            if let background = round.background { append(" background=", background) }
        case .resize(let size, let mode):
            self += "resize \(size.width)x\(size.height) \(mode.rawValue)"
        case .crop(let size, let anchor):
            self += "crop \(size.width)x\(size.height)"
            append(" x=", anchor.x)
            append(" y=", anchor.y)
        case .blur(let radius):
            self += "blur"
            append(" radius=", radius)
        case .tint(let color):
            self += "tint"
            append(" color=", color)
        case .overlay(.color(let color, let fraction)):
            self += "overlay"
            append(" color=", color)
            append(" fraction=", fraction)
        case .overlay(.picture(let source, let opacity)):
            self += "overlay"
            append(" opacity=", opacity)
            self += " source=\(source.cacheKey)"
        case .blend(let blend):
            self += "blend \(blend.mode.rawValue)"
            append(" opacity=", blend.opacity)
            append(" background=", blend.background)
        case .colorControls(let controls):
            self += "colorControls"
            append(" brightness=", controls.brightness)
            append(" contrast=", controls.contrast)
            append(" saturation=", controls.saturation)
            append(" exposure=", controls.exposure)
        case .blackWhite:
            self += "blackWhite"
        case .border(let border):
            self += "border"
            append(" width=", border.width)
            append(" color=", border.color)
            append(border.radius, border.corners)
        case .downsample(let size):
            self += "downsample \(size.width)x\(size.height)"
        case .sharpen(let sharpen):
            self += "sharpen"
            append(" radius=", sharpen.radius)
            append(" amount=", sharpen.amount)
        case .pixelate(let size):
            self += "pixelate size=\(size)"
        case .watermark(let watermark):
            self += "watermark \(watermark.position.rawValue) margin=\(watermark.margin)"
            if let width = watermark.widthFraction { append(" width=", width) }
            append(" opacity=", watermark.opacity)
            if watermark.tiled { self += " tiled" }
            self += " source=\(watermark.source.cacheKey)"
        case .rotate(let degrees, let background):
            self += "rotate"
            append(" degrees=", degrees)
            append(" background=", background)
        case .flip(let flip):
            self += "flip \(flip.rawValue)"
        case .custom(let rule):
            self += "\(rule.name) \(rule.parameters)"
        }
        self += "\n"
    }

    private mutating func append(_ name: String, _ number: Double) {
        self += name
        append(canonical: number)
    }

    private mutating func append(_ name: String, _ color: CSSColor) {
        self += name
        self += color.hexadecimal
    }

    private mutating func append(_ radius: CornerRadius, _ corners: Set<Corner>) {
        switch radius {
        case .pixels(let pixels): append(" radius=", pixels)
        case .widthFraction(let fraction): append(" widthFraction=", fraction)
        case .heightFraction(let fraction): append(" heightFraction=", fraction)
        }
        if corners.count < Corner.allCases.count {
            self += " corners=" + Corner.allCases.filter(corners.contains).map(\.rawValue).joined(separator: ",")
        }
    }
}
