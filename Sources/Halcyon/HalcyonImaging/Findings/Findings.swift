import HalcyonModel
import Vips

/// What was found out about an output's looks.
struct Findings {
    var blurhash: String?
    var dominantColor: String?

    /// Looks at a small copy of the picture, of at most 64 pixels a side, without its alpha.
    init(_ wanted: Set<Finding>, of image: Image) throws(VipsError) {
        guard !wanted.isEmpty else { return }
        let small = try image.flattened(onto: .white).atMost(64).inColour()
        let (pixels, width, height) = (try small.pixels(), small.width, small.height)
        if wanted.contains(.blurhash) {
            // Four frequencies along the longer side and three along the other, as its authors advise.
            let components = width >= height ? (x: 4, y: 3) : (x: 3, y: 4)
            blurhash = BlurHash.text(of: pixels, width: width, height: height, components: components)
        }
        if wanted.contains(.dominantColor) {
            dominantColor = String(DominantColor.color(of: pixels).hexadecimal.prefix(7))
        }
    }
}

extension Image {
    fileprivate func atMost(_ side: Int) throws(VipsError) -> Image {
        let scale = Double(side) / Double(max(width, height))
        guard scale < 1 else { return self }
        // Neither side may become empty.
        let (across, down) = (max(scale, 1 / Double(width)), max(scale, 1 / Double(height)))
        return try calling("resize", ["scale": .double(across), "vscale": .double(down), "kernel": "linear"])
    }
}
