import HalcyonModel
import JSON

extension Parameters {
    func roundCorner() throws(JSONError) -> RoundCorner {
        guard let radius = try cornerRadius() else {
            throw JSONError(.missing, "expected one of radius, widthFraction, heightFraction")
        }
        let background = try optional("background", color)
        return RoundCorner(
            radius: radius, corners: try corners(), background: background == .transparent ? nil : background)
    }

    func border() throws(JSONError) -> Border {
        let width = try required("width") { value throws(JSONError) in
            try scaled(try value.points(), upTo: VariantFields.longestSide)
        }
        return Border(
            width: width, color: try optional("color", color) ?? .black, radius: try cornerRadius() ?? .pixels(0),
            corners: try corners())
    }

    func hiding(_ method: FaceHiding.Method) throws(JSONError) -> FaceHiding {
        FaceHiding(
            method, margin: try number("margin", in: 0...2, default: 0.2),
            confidence: try number("confidence", in: 0...1, default: 0.3))
    }

    func cells() throws(JSONError) -> Int {
        try optional("cells") { value throws(JSONError) in Int(try value.integer(in: 1...32)) } ?? 8
    }

    /// Decodes a color with its fraction, or a picture with its opacity.
    func overlay() throws(JSONError) -> Overlay {
        let color = try optional("color", color)
        let source = try optional("source", reader.source)
        let fraction = try optional("fraction", part)
        let opacity = try optional("opacity", part)
        let mode = try choice("mode", of: BlendMode.allCases)
        switch (color, source) {
        case (let color?, nil):
            for (name, isGiven) in [("opacity", opacity != nil), ("mode", mode != nil)] where isGiven {
                throw JSONError(.invalid, "belongs to source, not to color", path: name)
            }
            return .color(color, fraction: fraction ?? 0.5)
        case (nil, let source?):
            guard fraction == nil else {
                throw JSONError(.invalid, "belongs to color, not to source", path: "fraction")
            }
            return .picture(source, opacity: opacity ?? 1, mode: mode ?? .normal)
        default: throw JSONError(.invalid, "expected either color or source")
        }
    }

    func blend() throws(JSONError) -> Blend {
        guard let mode = try choice("mode", of: BlendMode.allCases) else {
            throw JSONError(.missing, "is missing", path: "mode")
        }
        return Blend(
            mode: mode, opacity: try number("opacity", in: 0...1, default: 1),
            background: try required("background", color))
    }

    func colorControls() throws(JSONError) -> ColorControls {
        ColorControls(
            brightness: try number("brightness", in: -1...1, default: 0),
            contrast: try number("contrast", in: 0...4, default: 1),
            saturation: try number("saturation", in: 0...4, default: 1),
            exposure: try number("exposure", in: -10...10, default: 0))
    }

    /// Decodes the parameters for sharpening. The radius is in pixels, because perceived sharpness does not depend on
    /// the scale.
    func sharpen() throws(JSONError) -> Sharpen {
        Sharpen(
            radius: try number("radius", in: 0.1...10, default: 0.5),
            amount: try number("amount", in: 0...10, default: 1))
    }

    func watermark() throws(JSONError) -> Watermark {
        let widthFraction = try optional("widthFraction") { value throws(JSONError) in try value.positive(upTo: 1) }
        let scale = try optional("scale") { value throws(JSONError) in
            CanonicalNumber.rounded(try value.positive(upTo: 16))
        }
        guard widthFraction == nil || scale == nil else {
            throw JSONError(.invalid, "cannot be combined with widthFraction", path: "scale")
        }
        return Watermark(
            source: try required("source", reader.source), position: try position(default: .bottomRight),
            margin: try optional("margin", distance) ?? 0, widthFraction: widthFraction, scale: scale ?? 1,
            offset: try offset(), opacity: try number("opacity", in: 0...1, default: 1),
            mode: try choice("mode", of: BlendMode.allCases) ?? .normal, tiled: try flag("tiled"))
    }

    func pad() throws(JSONError) -> Pad {
        let all = try optional("all", distance) ?? 0
        let fill = try choice("fill", of: Pad.Fill.allCases) ?? .color
        let color = try optional("color", color)
        guard color == nil || fill == .color else {
            throw JSONError(.invalid, "belongs to the fill color, not to \(fill.rawValue)", path: "color")
        }
        return Pad(
            top: try optional("top", distance) ?? all, right: try optional("right", distance) ?? all,
            bottom: try optional("bottom", distance) ?? all, left: try optional("left", distance) ?? all, fill: fill,
            color: color ?? .transparent)
    }

    func text() throws(JSONError) -> TextOverlay {
        var overlay = TextOverlay(try required("text", lines), font: try required("font", font))
        overlay.bold = try flag("bold")
        overlay.italic = try flag("italic")
        overlay.size = try optional("size") { value throws(JSONError) in
            max(TextOverlay.sizes.lowerBound, try scaled(try value.points(), upTo: TextOverlay.sizes.upperBound))
        }
        overlay.width = try optional("width", pixels)
        overlay.height = try optional("height", pixels)
        overlay.align = try choice("align", of: TextOverlay.Alignment.allCases) ?? .left
        overlay.color = try optional("color", color) ?? .black
        overlay.outlineWidth =
            try optional("outlineWidth") { value throws(JSONError) in
                let pixels = try distance(value)
                guard pixels <= TextOverlay.widestOutline else {
                    throw .tooManyPixels(Double(TextOverlay.widestOutline))
                }
                return pixels
            } ?? 0
        overlay.outlineColor = try optional("outlineColor", color) ?? .white
        overlay.opacity = try number("opacity", in: 0...1, default: 1)
        overlay.position = try position(default: .center)
        overlay.margin = try optional("margin", distance) ?? 0
        overlay.offset = try offset()
        return overlay
    }

    /// Decodes the lines of a text: without control characters, and with at least one character that is not a space.
    private func lines(_ value: JSONElement) throws(JSONError) -> String {
        let text = try value.string()
        let scalars = text.unicodeScalars
        guard scalars.count <= TextOverlay.longestText else {
            throw JSONError(.invalid, "is longer than \(TextOverlay.longestText) characters")
        }
        guard scalars.allSatisfy({ $0 == "\n" || $0.properties.generalCategory != .control }) else {
            throw JSONError(.invalid, "contains a control character that is not a line feed")
        }
        guard scalars.contains(where: { !$0.properties.isWhitespace }) else {
            throw JSONError(.invalid, "contains only white space")
        }
        return text
    }

    private func font(_ value: JSONElement) throws(JSONError) -> String {
        let name = try value.string()
        guard TextOverlay.isFont(name) else {
            throw JSONError(
                .invalid,
                "expected the name of a font family, such as \"DejaVu Sans\": 1 to 64 letters, digits, "
                    + "spaces, dots, hyphens and underscores of ASCII")
        }
        return name
    }

    /// Decodes a shape or a picture.
    func mask() throws(JSONError) -> Mask {
        let shape = try choice("shape", of: Mask.Shape.allCases)
        let source = try optional("source", reader.source)
        return switch (shape, source) {
        case (let shape?, nil): .shape(shape)
        case (nil, let source?): .picture(source)
        default: throw JSONError(.invalid, "expected either shape or source")
        }
    }

    func normalize() throws(JSONError) -> Normalize {
        Normalize(
            lower: try number("lower", in: 0...49, default: 1), upper: try number("upper", in: 51...100, default: 99))
    }

    /// Decodes a fraction, 0 to 1.
    private func part(_ value: JSONElement) throws(JSONError) -> Double {
        CanonicalNumber.rounded(try value.double(in: 0...1))
    }
}
