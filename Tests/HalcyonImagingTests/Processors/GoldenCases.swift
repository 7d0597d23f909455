import HalcyonModel

/// An input and processors whose output is compared with an image in `Goldens`.
struct GoldenCase: Sendable, CustomStringConvertible {
    /// The name of the case and of the file.
    let name: String
    let input: Input
    let processors: [Processor]

    enum Input: String, CaseIterable, Sendable {
        /// A photograph, 160×120.
        case photo
        /// The photograph with a soft vignette of alpha.
        case veiled
        /// The photograph in gray.
        case grey
    }

    var description: String { name }

    init(_ name: String, _ input: Input, _ processors: Processor...) {
        self.name = "\(name)-\(input.rawValue)"
        self.input = input
        self.processors = processors
    }

    static let red = CSSColor(red: 220, green: 40, blue: 30)
    static let blue = CSSColor(red: 30, green: 60, blue: 200)
    static let mark = try! Source("https://example.org/mark.png")
    static let other = try! Source("https://example.org/other.jpg")

    static let all: [GoldenCase] = [
        GoldenCase("roundCorner-pixels", .photo, .roundCorner(RoundCorner(radius: .pixels(20)))),
        GoldenCase(
            "roundCorner-fraction", .photo,
            .roundCorner(RoundCorner(radius: .widthFraction(0.3), corners: [.topLeft, .bottomRight], background: blue))),
        GoldenCase("roundCorner", .veiled, .roundCorner(RoundCorner(radius: .heightFraction(0.5)))),
        GoldenCase("roundCorner", .grey, .roundCorner(RoundCorner(radius: .pixels(30), background: .white))),
        GoldenCase("resize-fill", .photo, .resize(PixelSize(width: 90, height: 90), .aspectFill)),
        GoldenCase("resize-fit", .veiled, .resize(PixelSize(width: 90, height: 90), .aspectFit)),
        GoldenCase("resize-none", .grey, .resize(PixelSize(width: 200, height: 60), .none)),
        GoldenCase("crop", .photo, .crop(PixelSize(width: 80, height: 80), anchor: UnitPoint(x: 0.75, y: 0.25))),
        GoldenCase("crop", .veiled, .crop(PixelSize(width: 100, height: 40), anchor: UnitPoint(x: 1, y: 1))),
        GoldenCase("crop", .grey, .crop(PixelSize(width: 60, height: 100), anchor: UnitPoint(x: 0, y: 0.5))),
        GoldenCase("blur-little", .photo, .blur(radius: 1.5)),
        GoldenCase("blur-much", .photo, .blur(radius: 10)),
        GoldenCase("blur", .veiled, .blur(radius: 4)),
        GoldenCase("blur", .grey, .blur(radius: 3)),
        GoldenCase("tint", .photo, .tint(CSSColor(red: 255, green: 140, blue: 0, alpha: 90))),
        GoldenCase("tint", .veiled, .tint(CSSColor(red: 0, green: 80, blue: 255, alpha: 140))),
        GoldenCase("tint", .grey, .tint(CSSColor(red: 120, green: 70, blue: 20, alpha: 128))),
        GoldenCase("overlay-color", .photo, .overlay(.color(red, fraction: 0.5))),
        GoldenCase("overlay-color", .veiled, .overlay(.color(blue, fraction: 0.25))),
        GoldenCase("overlay-picture", .photo, .overlay(.picture(other, opacity: 0.4))),
        GoldenCase("overlay-picture", .veiled, .overlay(.picture(other, opacity: 0.8))),
        GoldenCase("overlay-picture", .grey, .overlay(.picture(mark, opacity: 1))),
        GoldenCase("blend-multiply", .photo, .blend(Blend(mode: .multiply, background: red))),
        GoldenCase("blend-screen", .photo, .blend(Blend(mode: .screen, background: blue))),
        GoldenCase("blend-overlay", .photo, .blend(Blend(mode: .overlay, opacity: 0.7, background: red))),
        GoldenCase("blend-colorDodge", .photo, .blend(Blend(mode: .colorDodge, background: blue))),
        GoldenCase("blend-softLight", .veiled, .blend(Blend(mode: .softLight, background: red))),
        GoldenCase(
            "blend-difference", .veiled,
            .blend(Blend(mode: .difference, opacity: 0.8, background: CSSColor(red: 0, green: 90, blue: 0, alpha: 128)))
        ),
        GoldenCase("blend-exclusion", .grey, .blend(Blend(mode: .exclusion, background: blue))),
        GoldenCase("colorControls-bright", .photo, .colorControls(ColorControls(brightness: 0.2, contrast: 1.4))),
        GoldenCase("colorControls-saturated", .photo, .colorControls(ColorControls(saturation: 2))),
        GoldenCase("colorControls-exposed", .photo, .colorControls(ColorControls(exposure: 1.2))),
        GoldenCase("colorControls-dull", .veiled, .colorControls(ColorControls(contrast: 0.7, saturation: 0.3))),
        GoldenCase("colorControls-dark", .grey, .colorControls(ColorControls(exposure: -1.5))),
        GoldenCase("blackWhite", .photo, .blackWhite),
        GoldenCase("blackWhite", .veiled, .blackWhite),
        GoldenCase("blackWhite", .grey, .blackWhite),
        GoldenCase("border", .photo, .border(Border(width: 6, color: red))),
        GoldenCase(
            "border-round", .photo,
            .border(Border(width: 5, color: CSSColor(red: 255, green: 255, blue: 255, alpha: 180), radius: .pixels(30)))
        ),
        GoldenCase("border", .veiled, .border(Border(width: 8, color: blue, radius: .widthFraction(0.2)))),
        GoldenCase("border", .grey, .border(Border(width: 4.5, color: .black))),
        GoldenCase("downsample", .photo, .downsample(PixelSize(width: 70, height: 70))),
        GoldenCase("downsample", .veiled, .downsample(PixelSize(width: 200, height: 50))),
        GoldenCase("sharpen", .photo, .sharpen(Sharpen(radius: 1.5, amount: 1.5))),
        GoldenCase("sharpen", .veiled, .sharpen(Sharpen(radius: 3, amount: 1))),
        GoldenCase("sharpen", .grey, .sharpen(Sharpen(radius: 0.8, amount: 3))),
        GoldenCase("pixelate", .photo, .pixelate(11)),
        GoldenCase("pixelate", .veiled, .pixelate(16)),
        GoldenCase("pixelate", .grey, .pixelate(7)),
        GoldenCase(
            "watermark", .photo, .watermark(Watermark(source: mark, margin: 8, widthFraction: 0.3, opacity: 0.8))),
        GoldenCase(
            "watermark-tiled", .photo,
            .watermark(
                Watermark(
                    source: mark, position: .center, margin: 10, widthFraction: 0.15, opacity: 0.6, tiled: true))),
        GoldenCase("watermark", .veiled, .watermark(Watermark(source: mark, position: .topLeft, widthFraction: 0.5))),
        GoldenCase(
            "watermark", .grey, .watermark(Watermark(source: mark, position: .top, margin: 5, widthFraction: 0.4))),
        GoldenCase("rotate", .photo, .rotate(degrees: 20, background: .transparent)),
        GoldenCase("rotate-quarter", .photo, .rotate(degrees: 270, background: .transparent)),
        GoldenCase("rotate-background", .photo, .rotate(degrees: 135, background: blue)),
        GoldenCase(
            "rotate", .veiled, .rotate(degrees: 330, background: CSSColor(red: 255, green: 200, blue: 0, alpha: 100))),
        GoldenCase("rotate", .grey, .rotate(degrees: 45, background: .white)),
        GoldenCase("flip", .photo, .flip(.horizontal)),
        GoldenCase("flip", .veiled, .flip(.vertical)),
        GoldenCase("flip", .grey, .flip(.both)),
        GoldenCase(
            "watermark-blended", .photo,
            .watermark(
                Watermark(
                    source: mark, position: .bottomLeft, scale: 1.2, offset: PixelOffset(x: 24, y: -12),
                    mode: .difference))
        ),
        GoldenCase("overlay-blended", .photo, .overlay(.picture(other, opacity: 0.9, mode: .luminosity))),
        GoldenCase("overlay-blended", .veiled, .overlay(.picture(other, opacity: 1, mode: .softLight))),
        GoldenCase("blend-color", .photo, .blend(Blend(mode: .color, opacity: 0.8, background: red))),
        GoldenCase("pad", .photo, .pad(Pad(top: 6, right: 12, bottom: 18, left: 24, color: blue))),
        GoldenCase(
            "pad-mirror", .photo, .downsample(PixelSize(width: 90, height: 90)),
            .pad(Pad(top: 30, right: 50, left: 20, fill: .mirror))),
        GoldenCase("pad-blur", .photo, .pad(Pad(right: 40, left: 40, fill: .blur))),
        GoldenCase("pad-edge", .grey, .pad(Pad(top: 10, bottom: 25, fill: .edge))),
        GoldenCase("pad", .veiled, .pad(Pad(top: 12, left: 12))),
        GoldenCase(
            "text", .photo,
            .text(
                TextOverlay(
                    "Félix & <Chelsea>", font: "DejaVu Sans", bold: true, size: 22, color: .white, outlineWidth: 2,
                    outlineColor: blue, position: .bottom, margin: 6))),
        GoldenCase(
            "text-fitted", .veiled,
            .text(
                TextOverlay(
                    "one two three four", font: "DejaVu Serif", italic: true, width: 90, height: 60, align: .center,
                    color: red, opacity: 0.8))),
        GoldenCase("text", .grey, .text(TextOverlay("gray", font: "DejaVu Sans Mono", size: 40, position: .topLeft))),
        GoldenCase("mask", .photo, .mask(.shape(.star))),
        GoldenCase("mask-heart", .veiled, .mask(.shape(.heart))),
        GoldenCase(
            "mask-picture", .photo, .downsample(PixelSize(width: 110, height: 110)), .mask(.picture(other))),
        GoldenCase("mask", .grey, .mask(.shape(.circle))),
        GoldenCase("hue", .photo, .hue(degrees: 130)),
        GoldenCase("hue", .veiled, .hue(degrees: 270)),
        GoldenCase("gamma", .photo, .gamma(2.2)),
        GoldenCase("gamma", .grey, .gamma(0.6)),
        GoldenCase("normalize", .photo, .colorControls(ColorControls(contrast: 0.4)), .normalize(Normalize())),
        GoldenCase("normalize", .grey, .normalize(Normalize(lower: 10, upper: 80))),
        GoldenCase("duotone", .photo, .duotone(dark: blue, light: CSSColor(red: 255, green: 240, blue: 180))),
        GoldenCase("duotone", .veiled, .duotone(dark: red, light: .white)),
        GoldenCase(
            "several", .photo, .pixelate(7),
            .crop(PixelSize(width: 109, height: 109), anchor: UnitPoint(x: 0.3, y: 0.4)),
            .border(Border(width: 5, color: blue, radius: .widthFraction(0.5))),
            .tint(CSSColor(red: 255, green: 140, blue: 0, alpha: 100)), .rotate(degrees: 25, background: .white)),
    ]
}
