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

    /// Decodes a color with its fraction, or a picture with its opacity.
    func overlay() throws(JSONError) -> Overlay {
        let color = try optional("color", color)
        let source = try optional("source", reader.source)
        let fraction = try optional("fraction", part)
        let opacity = try optional("opacity", part)
        switch (color, source) {
        case (let color?, nil):
            guard opacity == nil else { throw JSONError(.invalid, "belongs to source, not to color", path: "opacity") }
            return .color(color, fraction: fraction ?? 0.5)
        case (nil, let source?):
            guard fraction == nil else {
                throw JSONError(.invalid, "belongs to color, not to source", path: "fraction")
            }
            return .picture(source, opacity: opacity ?? 1)
        default: throw JSONError(.invalid, "expected either color or source")
        }
    }

    func blend() throws(JSONError) -> Blend {
        guard let mode = try choice("mode", of: Blend.Mode.allCases) else {
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
        Watermark(
            source: try required("source", reader.source),
            position: try choice("position", of: ContentMode.unscaled) ?? .bottomRight,
            margin: try optional("margin", distance) ?? 0,
            widthFraction: try optional("widthFraction") { value throws(JSONError) in try value.positive(upTo: 1) },
            opacity: try number("opacity", in: 0...1, default: 1),
            tiled: try optional("tiled") { value throws(JSONError) in try value.bool() } ?? false)
    }

    /// Decodes a fraction, 0 to 1.
    private func part(_ value: JSONElement) throws(JSONError) -> Double {
        CanonicalNumber.rounded(try value.double(in: 0...1))
    }
}
