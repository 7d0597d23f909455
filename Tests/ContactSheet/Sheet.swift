import HalcyonImaging
import HalcyonModel
import Vips

/// A grid of images, each above the part of a job that produces it.
struct Sheet {
    static let columns = 5
    static let cell = PixelSize(width: 240, height: 180)
    static let captionHeight = 40

    private let photograph: [UInt8]
    private let assets: [Source: [UInt8]]

    init(photograph: [UInt8], overlay: [UInt8]) throws {
        self.photograph = photograph
        assets = [Self.other: overlay, Self.logo: try Self.logoImage()]
    }

    /// Renders the sheet as a WebP file.
    func render(_ cells: [Cell]) throws -> [UInt8] {
        let variants = cells.map { cell in
            Variant(
                sizing: Sizing(goal: .display(Display(width: 240, height: 180))), processors: cell.processors,
                output: OutputOptions(format: .png))
        }
        Fonts.use(folder: "/usr/share/fonts")
        let images = try Renderer().render(photograph, variants, assets: assets).images
        let pictures = try zip(cells, images).map { try Self.cellImage($1.body, $0.caption) }
        return try Operation.call(
            "arrayjoin",
            ["in": .images(pictures), "across": .int(Self.columns), "shim": 12, "background": [255]]
        ).image().encoded(as: .webp, ["Q": 82, "effort": 6])
    }

    /// Returns the image centered in its cell on a gray checkerboard, above its caption.
    private static func cellImage(_ file: [UInt8], _ caption: String) throws -> Image {
        let picture = try EncodedImage(file).open().inMemory()
        let scale = min(1, Double(cell.width) / Double(picture.width), Double(cell.height) / Double(picture.height))
        let small = try call("resize", ["in": .image(picture), "scale": .double(scale)])
        let colored = try call("colourspace", ["in": .image(small), "space": "srgb"])
        let x = (cell.width - small.width) / 2
        let y = (cell.height - small.height) / 2
        let composite = try call(
            "composite2",
            ["base": .image(checkerboard()), "overlay": .image(colored), "mode": "over", "x": .int(x), "y": .int(y)])
        let opaque = try call("flatten", ["in": .image(composite)])
        let text = try call("text", ["text": .string(caption), "font": "sans 9", "width": .int(cell.width)])
        let black = try call("invert", ["in": .image(text)])
        let line = try call(
            "embed",
            [
                "in": .image(black), "x": 0, "y": 4, "width": .int(cell.width), "height": .int(captionHeight),
                "extend": "white",
            ])
        let label = try call("bandjoin", ["in": .images([line, line, line])])
        let both = try call(
            "join", ["in1": .image(opaque), "in2": .image(label), "direction": "vertical"])
        return try call("copy", ["in": .image(both), "interpretation": "srgb"]).inMemory()
    }

    private static func checkerboard() throws -> Image {
        let tile = try Image(pixels: [245, 222, 222, 245], width: 2, height: 2, bands: 1)
        let large = try call("zoom", ["input": .image(tile), "xfac": 10, "yfac": 10])
        let wall = try call("replicate", ["in": .image(large), "across": 12, "down": 9])
        return try call("colourspace", ["in": .image(wall), "space": "srgb"])
    }

    /// Returns the name in white on a transparent background.
    private static func logoImage() throws -> [UInt8] {
        let text = try call("text", ["text": "Halcyon", "font": "sans bold 40"])
        let white = try call("linear", ["in": .image(text), "a": [0], "b": [255], "uchar": true])
        let logo = try call("bandjoin", ["in": .images([white, text])])
        return try call("copy", ["in": .image(logo), "interpretation": "b-w"]).encoded(as: .png)
    }

    private static func call(_ name: String, _ arguments: Operation.Arguments) throws -> Image {
        try Operation.call(name, arguments).image()
    }
}
