import Glibc
import HalcyonModel
import Vips

extension Image {
    /// Rotates clockwise around the center. Multiples of 90 degrees move pixels. Other angles have smooth edges.
    func turned(degrees: Double, on background: CSSColor, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        if let quarters = Processor.quarterTurns(degrees) {
            guard quarters > 0 else { return self }
            return try calling("rot", ["angle": .string("d\(quarters * 90)")])
        }
        let isOpaque = !hasAlpha && background.isOpaque
        let picture = isOpaque ? try ready(for: background) : try withAlpha()
        let around: Value = isOpaque ? .doubles(picture.samples(of: background)) : [0]
        let target = Processor.rotate(degrees: degrees, background: background).size(of: size)
        func turned(_ picture: Image) throws(VipsError) -> Image {
            // A margin of the surroundings, into which the edges fade over a pixel.
            try picture.calling(
                "embed",
                [
                    "x": 2, "y": 2, "width": .int(width + 4), "height": .int(height + 4), "extend": "background",
                    "background": around,
                ]
            ).turned(by: degrees * .pi / 180, to: target, around, quality)
        }
        if isOpaque { return try turned(picture).inBytes() }
        // An image that had no alpha is opaque, and therefore already premultiplied.
        let cut =
            hasAlpha
            ? try picture.premultiplied(turned)
            : try turned(picture).calling("unpremultiply").inBytes()
        return try cut.laid(on: background)
    }

    private func turned(
        by angle: Double, to target: PixelSize, _ around: Value, _ quality: InterpolationQuality
    ) throws(VipsError) -> Image {
        let (cosine, sine) = (cos(angle), sin(angle))
        // The center maps to the center, both counted between the first and the last pixel.
        let (x, y) = (Double(width - 1) / 2, Double(height - 1) / 2)
        return try calling(
            "affine",
            [
                "matrix": .doubles([cosine, -sine, sine, cosine]),
                "odx": .double(Double(target.width - 1) / 2 - (cosine * x - sine * y)),
                "ody": .double(Double(target.height - 1) / 2 - (sine * x + cosine * y)),
                "oarea": .doubles([0, 0, Double(target.width), Double(target.height)]),
                "interpolate": .string(quality.interpolator), "background": around, "premultiplied": true,
                "extend": "background",
            ])
    }

    /// Mirrors the image.
    func flipped(_ flip: Flip) throws(VipsError) -> Image {
        switch flip {
        case .horizontal: try calling("flip", ["direction": "horizontal"])
        case .vertical: try calling("flip", ["direction": "vertical"])
        case .both: try calling("rot", ["angle": "d180"])
        }
    }
}

extension InterpolationQuality {
    /// The libvips name.
    fileprivate var interpolator: String {
        switch self {
        case .none: "nearest"
        case .low: "bilinear"
        case .medium, .high, .default: "bicubic"
        }
    }
}

extension Image {
    /// Scales the whole image to the size that ``Processor/size(of:)`` returns.
    func scaled(to target: PixelSize, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        try scaled(Double(target.width) / Double(width), Double(target.height) / Double(height), quality)
    }

    /// Crops to the part of the image around an anchor.
    func cropped(to part: PixelSize, anchor: UnitPoint) throws(VipsError) -> Image {
        let part = size.part(part, anchor: anchor)
        return try cropped(part.x, part.y, part.width, part.height)
    }
}

extension Image {
    /// Adds an area on each side.
    func padded(_ pad: Pad, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        guard !pad.isEmpty else { return self }
        let canvas = Processor.pad(pad).size(of: size)
        func extended(_ image: Image, _ extend: String, _ background: [Double] = []) throws(VipsError) -> Image {
            var arguments: Operation.Arguments = [
                "x": .int(pad.left), "y": .int(pad.top), "width": .int(canvas.width), "height": .int(canvas.height),
                "extend": .string(extend),
            ]
            if !background.isEmpty { arguments["background"] = .doubles(background) }
            return try image.calling("embed", arguments)
        }
        switch pad.fill {
        case .edge: return try extended(self, "copy")
        case .mirror: return try extended(self, "mirror")
        case .color:
            let picture = try ready(for: pad.color)
            let base = pad.color.isOpaque ? picture : try picture.withAlpha()
            return try extended(base, "background", base.samples(of: pad.color))
        case .blur:
            let covering = ResizeMode.aspectFill.size(of: size, into: canvas)
            let part = covering.part(canvas, anchor: .center)
            let around = try scaled(to: covering, quality).cropped(part.x, part.y, part.width, part.height)
                .blurred(radius: Double(max(canvas.width, canvas.height)) / 50)
            return try Operation.call(
                "insert", ["main": .image(around), "sub": .image(self), "x": .int(pad.left), "y": .int(pad.top)]
            ).image()
        }
    }
}
