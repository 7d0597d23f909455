import Foundation
import HalcyonModel
import Testing

/// Coding of variants as JSON, which other processes receive.
@Suite struct VariantCodingTests {
    static let web = "https://example.org/logo.png"

    static func processors() throws -> [Processor] {
        let (web, drawn) = (try Source(web), try Source("initials:J\u{e9}"))
        let size = PixelSize(width: 40, height: 30)
        return [
            .roundCorner(
                RoundCorner(radius: .widthFraction(0.5), corners: [.topLeft, .bottomRight], background: .white)),
            .roundCorner(RoundCorner(radius: .heightFraction(0.25))), .resize(size, .aspectFit),
            .crop(size, anchor: UnitPoint(x: 0.25, y: 1)), .blur(radius: 4.5), .tint(.black),
            .overlay(.color(.white, fraction: 0.5)), .overlay(.picture(drawn, opacity: 0.25)),
            .blend(Blend(mode: .colorDodge, opacity: 0.5, background: .black)),
            .colorControls(ColorControls(brightness: 0.1, contrast: 1.2, saturation: 0, exposure: -0.7)), .blackWhite,
            .border(Border(width: 1.5, color: .black, radius: .pixels(4), corners: [.topRight])), .downsample(size),
            .sharpen(Sharpen(radius: 0.5, amount: 1)), .pixelate(8),
            .watermark(
                Watermark(source: web, position: .topLeft, margin: 7, widthFraction: 0.2, opacity: 0.5, tiled: true)),
            .watermark(Watermark(source: web, scale: 2, offset: PixelOffset(x: -1, y: 2), mode: .hue)),
            .overlay(.picture(drawn, opacity: 0.25, mode: .luminosity)),
            .rotate(degrees: 270, background: .transparent), .flip(.both),
            .pad(Pad(top: 1, right: 2, bottom: 3, left: 4, color: .white)), .pad(Pad(top: 1, fill: .blur)),
            .text(TextOverlay("a\\\nb", font: "DejaVu Sans", bold: true, size: 20.5, outlineWidth: 2)),
            .text(TextOverlay("a", font: "DejaVu Sans", italic: true, width: 10, height: 20, margin: 3)),
            .mask(.shape(.star)), .mask(.picture(web)), .hue(degrees: 45.5), .gamma(2.2),
            .normalize(Normalize(lower: 0, upper: 98)), .duotone(dark: .black, light: .white),
            .custom(CustomExtension(name: "sepia", parameters: #"{"a":[1,"é"]}"#)),
        ]
    }

    static func variants() throws -> [Variant] {
        let goals: [Sizing.Goal] = [
            .display(Display(width: 400, height: 300.5, contentMode: .topLeft, scaleOptions: .fillLeavesExcess)),
            .sizer(.natural), .sizer(.aspectScaleDownByWidth(600)), .sizer(.aspectScaleDownByHeight(0.5)), .original,
            .custom(CustomExtension(name: "golden")),
        ]
        let gravities: [Gravity] = [.center, .attention, .entropy, .focalPoint(UnitPoint(x: 0.3, y: 0.7))]
        return try goals.flatMap { goal in
            try gravities.map { gravity in
                Variant(
                    sizing: Sizing(
                        goal: goal, cropRect: CropRect(x: 0.1, y: 0.2, width: 0.3, height: 4),
                        trim: Trim(tolerance: 3, background: .white, fuzz: 0.25), screenScale: 1.5,
                        gravity: gravity, upscale: true),
                    interpolationQuality: .low, linearLight: true,
                    background: CSSColor(red: 1, green: 2, blue: 3, alpha: 4), before: try processors(),
                    processors: try processors(), tolerance: .truncated,
                    output: OutputOptions(
                        format: .webp, quality: 70, lossless: true, effort: 3, progressive: true, stripMetadata: false,
                        keepProfile: true, frames: 5, similarity: 0.98, maximumBytes: 50_000, allowsResizing: true,
                        nearLossless: true, chromaSubsampling: ChromaSubsampling.full,
                        quantization: Quantization(colors: 16),
                        profile: .p3, bitDepth: 16),
                    findings: Set(AnalysisKind.allCases), info: InfoOptions(location: true), page: 4)
            }
        }
    }

    @Test func roundTripsThroughJSON() throws {
        for variant in try Self.variants() + [Variant(sizing: Sizing(goal: .original))] {
            let back = try JSONDecoder().decode(Variant.self, from: JSONEncoder().encode(variant))
            #expect(back == variant)
            #expect(back.canonicalText == variant.canonicalText)
        }
    }

    @Test func processorsHaveDistinctCanonicalLines() throws {
        let lines = try Self.processors().map { processor in
            Variant(sizing: Sizing(goal: .original), processors: [processor]).canonicalText
        }
        #expect(Set(lines).count == lines.count)
        #expect(lines.allSatisfy { $0.split(separator: "\n").count == 3 })
    }
}
