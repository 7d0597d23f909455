extension String {
    /// Appends one line for a processor: its name and its parameters in a fixed order, with lengths in pixels.
    /// - Parameter step: The name of the line: `before` or `processor`.
    mutating func append(_ processor: Processor, as step: String = "processor") {
        self += "\(step)="
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
        case .overlay(.picture(let source, let opacity, let mode)):
            self += "overlay"
            append(" opacity=", opacity)
            if mode != .normal { self += " mode=\(mode.rawValue)" }
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
            if watermark.scale != 1 { append(" scale=", watermark.scale) }
            append(watermark.offset)
            append(" opacity=", watermark.opacity)
            if watermark.mode != .normal { self += " mode=\(watermark.mode.rawValue)" }
            if watermark.tiled { self += " tiled" }
            self += " source=\(watermark.source.cacheKey)"
        case .rotate(let degrees, let background):
            self += "rotate"
            append(" degrees=", degrees)
            append(" background=", background)
        case .flip(let flip):
            self += "flip \(flip.rawValue)"
        case .pad(let pad):
            self += "pad top=\(pad.top) right=\(pad.right) bottom=\(pad.bottom) left=\(pad.left)"
            if pad.fill == .color { append(" color=", pad.color) } else { self += " fill=\(pad.fill.rawValue)" }
        case .text(let text): append(text)
        case .mask(.shape(let shape)):
            self += "mask shape=\(shape.rawValue)"
        case .mask(.picture(let source)):
            self += "mask source=\(source.cacheKey)"
        case .hue(let degrees):
            self += "hue"
            append(" degrees=", degrees)
        case .gamma(let gamma):
            self += "gamma"
            append(" gamma=", gamma)
        case .normalize(let normalize):
            self += "normalize"
            append(" lower=", normalize.lower)
            append(" upper=", normalize.upper)
        case .duotone(let dark, let light):
            self += "duotone"
            append(" dark=", dark)
            append(" light=", light)
        case .hideFaces(let hiding):
            self += hiding.name
            switch hiding.method {
            case .blur(let amount): append(" amount=", amount)
            case .pixelate(let cells): self += " cells=\(cells)"
            }
            append(" margin=", hiding.margin)
            append(" confidence=", hiding.confidence)
        case .custom(let rule):
            self += "\(rule.name) \(rule.parameters)"
        }
        self += "\n"
    }

    /// Appends the parameters of a text. The text itself is last, with line feeds and backslashes escaped.
    private mutating func append(_ overlay: TextOverlay) {
        self += "text \(overlay.position.rawValue) margin=\(overlay.margin)"
        append(overlay.offset)
        if let size = overlay.size { append(" size=", size) }
        if let width = overlay.width { self += " width=\(width)" }
        if let height = overlay.height { self += " height=\(height)" }
        self += " align=\(overlay.align.rawValue)"
        append(" color=", overlay.color)
        if overlay.outlineWidth > 0 {
            self += " outline=\(overlay.outlineWidth)"
            append(" outlineColor=", overlay.outlineColor)
        }
        append(" opacity=", overlay.opacity)
        if overlay.bold { self += " bold" }
        if overlay.italic { self += " italic" }
        self += " font=\(overlay.font) text="
        for scalar in overlay.text.unicodeScalars {
            switch scalar {
            case "\n": self += "\\n"
            case "\\": self += "\\\\"
            default: unicodeScalars.append(scalar)
            }
        }
    }

    /// Appends an offset, unless it is zero.
    private mutating func append(_ offset: PixelOffset) {
        if offset != .zero { self += " offset=\(offset.x),\(offset.y)" }
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
