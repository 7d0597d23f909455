// The texts that keys are made of. docs/keys.md describes them for other languages; schemas/key-vectors.json has vectors.
// A change here makes every stored result unreachable: raise the number in the first line when the meaning changes.

extension Source {
    /// The text whose hash is the source's place in the cluster.
    public var canonicalText: String { "halcyon-source/1\n\(cacheKey)\n" }
}

extension Variant {
    /// The text whose hash names an output of a source: a line for each field that changes the bytes and is not at its default,
    /// in this order.
    public var canonicalText: String {
        var lines = ["halcyon-variant/1"]
        let crop = sizing.cropRect
        let sides = crop == .whole ? [] : [crop.x, crop.y, crop.width, crop.height].map(CanonicalNumber.text)
        if !sides.isEmpty, sides != ["0", "0", "1", "1"], sides[2] != "0", sides[3] != "0" {
            lines.append("crop=\(sides.joined(separator: ","))")
        }
        lines.append("size=\(sizing.canonicalSize)")
        if interpolationQuality != .default, interpolationQuality != .high {
            lines.append("interpolation=\(interpolationQuality.rawValue)")
        }
        if let format = output.format { lines.append("format=\(format.rawValue)") }
        if let quality = output.quality { lines.append("quality=\(quality)") }
        if output.lossless { lines.append("lossless") }
        if let effort = output.effort { lines.append("effort=\(effort)") }
        if output.progressive { lines.append("progressive") }
        return lines.map { $0 + "\n" }.joined()
    }
}

extension Sizing {
    /// What decides the output's size, without what has no influence on it.
    fileprivate var canonicalSize: String {
        let scale = "@\(CanonicalNumber.text(screenScale))"
        switch goal {
        case .original, .sizer(.natural): return "natural"
        case .sizer(.aspectScaleDownByWidth(let limit)): return "width \(CanonicalNumber.text(limit))"
        case .sizer(.aspectScaleDownByHeight(let limit)): return "height \(CanonicalNumber.text(limit))"
        case .display(let display):
            let size = "\(CanonicalNumber.text(display.width))x\(CanonicalNumber.text(display.height))\(scale)"
            switch display.contentMode {
            case .redraw: return "\(size) scaleToFill"
            case .scaleAspectFit where display.scaleOptions.fitCrops: return "\(size) scaleAspectFit cropsExcess"
            case .scaleAspectFill where display.scaleOptions.fillLeaves: return "\(size) scaleAspectFill leavesExcess"
            default: return "\(size) \(display.contentMode.rawValue)"
            }
        }
    }
}
