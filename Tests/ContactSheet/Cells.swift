import HalcyonModel

/// An image of the sheet.
struct Cell {
    /// The `processors` of the job, shortened.
    let caption: String
    let processors: [Processor]

    init(_ caption: String, _ processors: Processor...) {
        self.caption = caption
        self.processors = processors
    }
}

extension Sheet {
    static let other = try! Source("https://example.org/stars.jpg")
    static let logo = try! Source("https://example.org/logo.png")
    private static let orange = CSSColor(red: 255, green: 140, blue: 0)
    private static let blue = CSSColor(red: 65, green: 105, blue: 225)

    /// The cells in the order of docs/processors.md.
    static let cells: [Cell] = [
        Cell("(none)"),
        Cell("roundCorner: radius 30", .roundCorner(RoundCorner(radius: .pixels(30)))),
        Cell(
            "roundCorner: heightFraction 0.5, background royalblue, two corners",
            .roundCorner(
                RoundCorner(radius: .heightFraction(0.5), corners: [.topLeft, .bottomRight], background: blue))),
        Cell("resize: 120×180", .resize(PixelSize(width: 120, height: 180), .none)),
        Cell("resize: 150×150 aspectFit", .resize(PixelSize(width: 150, height: 150), .aspectFit)),
        Cell(
            "crop: 140×140 at 0.6, 0.2",
            .crop(PixelSize(width: 140, height: 140), anchor: UnitPoint(x: 0.6, y: 0.2))),
        Cell("downsample: 100×100", .downsample(PixelSize(width: 100, height: 100))),
        Cell("blur: radius 3", .blur(radius: 3)),
        Cell("blur: radius 20", .blur(radius: 20)),
        Cell("sharpen: radius 1.5, amount 2", .sharpen(Sharpen(radius: 1.5, amount: 2))),
        Cell("pixelate: size 14", .pixelate(14)),
        Cell(
            "tint: darkorange at 40 %", .tint(CSSColor(red: 255, green: 140, blue: 0, alpha: 102))),
        Cell("overlay: color royalblue, fraction 0.4", .overlay(.color(blue, fraction: 0.4))),
        Cell("overlay: source stars.jpg, opacity 0.5", .overlay(.picture(other, opacity: 0.5))),
        Cell("blend: multiply on darkorange", .blend(Blend(mode: .multiply, background: orange))),
        Cell("blend: screen on royalblue", .blend(Blend(mode: .screen, background: blue))),
        Cell("blend: difference on darkorange", .blend(Blend(mode: .difference, background: orange))),
        Cell(
            "blend: overlay on royalblue, opacity 0.7",
            .blend(Blend(mode: .overlay, opacity: 0.7, background: blue))),
        Cell("colorControls: brightness 0.15", .colorControls(ColorControls(brightness: 0.15))),
        Cell("colorControls: contrast 1.6", .colorControls(ColorControls(contrast: 1.6))),
        Cell("colorControls: saturation 2", .colorControls(ColorControls(saturation: 2))),
        Cell("colorControls: exposure −1.2", .colorControls(ColorControls(exposure: -1.2))),
        Cell("blackWhite", .blackWhite),
        Cell("border: width 8, darkorange", .border(Border(width: 8, color: orange))),
        Cell(
            "border: width 6, royalblue, heightFraction 0.5",
            .border(Border(width: 6, color: blue, radius: .heightFraction(0.5)))),
        Cell(
            "watermark: margin 8, widthFraction 0.4, opacity 0.7",
            .watermark(Watermark(source: logo, margin: 8, widthFraction: 0.4, opacity: 0.7))),
        Cell(
            "watermark: tiled, margin 12, widthFraction 0.2, opacity 0.4",
            .watermark(
                Watermark(source: logo, position: .center, margin: 12, widthFraction: 0.2, opacity: 0.4, tiled: true))),
        Cell("rotate: degrees 20", .rotate(degrees: 20, background: .transparent)),
        Cell("rotate: degrees 90", .rotate(degrees: 90, background: .transparent)),
        Cell("rotate: degrees 340, on royalblue", .rotate(degrees: 340, background: blue)),
        Cell("flip: horizontal", .flip(.horizontal)),
        Cell("flip: vertical", .flip(.vertical)),
        Cell("mask: star", .mask(.shape(.star))),
        Cell("mask: source stars.jpg", .mask(.picture(other))),
        Cell("pad: all 20, darkorange", .pad(Pad(top: 20, right: 20, bottom: 20, left: 20, color: orange))),
        Cell("pad: left and right 40, mirror", .pad(Pad(right: 40, left: 40, fill: .mirror))),
        Cell(
            "downsample 120×180, pad: blur", .downsample(PixelSize(width: 120, height: 180)),
            .pad(Pad(right: 60, left: 60, fill: .blur))),
        Cell("hue: degrees 120", .hue(degrees: 120)),
        Cell("gamma: 2.2", .gamma(2.2)),
        Cell("normalize: lower 5, upper 95", .normalize(Normalize(lower: 5, upper: 95))),
        Cell("duotone: royalblue to white", .duotone(dark: blue, light: .white)),
        Cell("overlay: source stars.jpg, mode luminosity", .overlay(.picture(other, opacity: 1, mode: .luminosity))),
        Cell(
            "watermark: scale 2, offset 40, mode difference",
            .watermark(
                Watermark(source: logo, scale: 2, offset: PixelOffset(x: 40, y: 0), mode: .difference))),
        Cell(
            "text: size 30, outlineWidth 2",
            .text(
                TextOverlay(
                    "Chelsea", font: "DejaVu Sans", bold: true, size: 30, color: .white, outlineWidth: 2,
                    outlineColor: blue, position: .bottom, margin: 8))),
        Cell(
            "text: the largest size that fits",
            .text(
                TextOverlay(
                    "the largest size that fits", font: "DejaVu Serif", italic: true, align: .center, color: orange,
                    opacity: 0.8, margin: 16))),
        Cell(
            "crop 180×180, blackWhite, tint, border",
            .crop(PixelSize(width: 180, height: 180), anchor: .center), .blackWhite,
            .tint(CSSColor(red: 255, green: 140, blue: 0, alpha: 60)),
            .border(Border(width: 5, color: orange, radius: .widthFraction(0.5)))),
        Cell(
            "rotate 8, border: the border is straight", .rotate(degrees: 8, background: .white),
            .border(Border(width: 6, color: blue))),
        Cell(
            "border, rotate 8: the border turns too", .border(Border(width: 6, color: blue)),
            .rotate(degrees: 8, background: .white)),
    ]
}
