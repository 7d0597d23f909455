import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Sensitivity of the golden images to changed parameters and a changed order.
@Suite(.limitedParallelism) struct MutationTests {
    @Test func detectsChangedParameters() async throws {
        var mutations = 0
        for golden in GoldenCase.all {
            let changed = golden.mutations
            mutations += changed.count
            try await Self.expectVisibleChanges(of: golden.processors, to: changed, on: golden.input)
        }
        #expect(mutations > 150)
    }

    @Test func detectsAChangedOrder() async throws {
        let several = try #require(GoldenCase.all.first { $0.name == "several-photo" })
        let swapped = several.processors.indices.dropLast().map { index in
            var processors = several.processors
            processors.swapAt(index, index + 1)
            return processors
        }
        try await Self.expectVisibleChanges(of: several.processors, to: swapped, on: several.input)
    }

    /// Expects that each of the changed processors results in another size or a visible difference.
    static func expectVisibleChanges(
        of processors: [Processor], to mutations: [[Processor]], on input: GoldenCase.Input
    ) async throws {
        try await onRenderThread {
            let original = try GoldenTests.render(processors, on: input)
            for changed in mutations {
                let distance = try PerceptualDistance(original, GoldenTests.render(changed, on: input))
                #expect(distance?.isInvisible != true, "\(input), \(changed): \(distance!)")
            }
        }
    }
}

extension GoldenCase {
    /// The processors with one parameter of one of them changed, for all parameters.
    fileprivate var mutations: [[Processor]] {
        processors.indices.flatMap { index in
            processors[index].neighbors.map { changed in
                var mutation = processors
                mutation[index] = changed
                return mutation
            }
        }
    }
}

extension Processor {
    /// The processor with one parameter changed slightly, for each of its parameters.
    fileprivate var neighbors: [Processor] {
        switch self {
        case .roundCorner(let round):
            round.radius.neighbors.map { .roundCorner(round.with(\.radius, $0)) } + [
                .roundCorner(round.with(\.corners, round.corners.subtracting([.bottomRight]))),
                .roundCorner(round.with(\.background, round.background == nil ? .white : nil)),
            ]
        case .resize(let size, let mode):
            [.resize(size.wider, mode)] + (mode == .none ? [] : [.resize(size, .none)])
        case .crop(let size, let anchor):
            [
                .crop(size.wider, anchor: anchor),
                .crop(size, anchor: UnitPoint(x: anchor.x * 0.9 + 0.01, y: anchor.y)),
                .crop(size, anchor: UnitPoint(x: anchor.x, y: anchor.y * 0.6)),
            ]
        case .blur(let radius): [.blur(radius: radius * 1.25), .blur(radius: radius * 0.8)]
        case .tint(let color): color.neighbors.map { .tint($0) }
        case .overlay(.color(let color, let fraction)):
            [
                .overlay(.color(color.neighbors[0], fraction: fraction)),
                .overlay(.color(color, fraction: fraction + 0.05)),
            ]
        case .overlay(.picture(let source, let opacity, let mode)):
            [
                .overlay(.picture(source, opacity: opacity - 0.1, mode: mode)),
                .overlay(
                    .picture(
                        source == GoldenCase.mark ? GoldenCase.other : GoldenCase.mark, opacity: opacity, mode: mode)),
                .overlay(.picture(source, opacity: opacity, mode: mode == .normal ? .difference : .normal)),
            ]
        case .blend(let blend):
            BlendMode.allCases.filter { $0 != blend.mode }.map { .blend(blend.with(\.mode, $0)) } + [
                .blend(blend.with(\.opacity, blend.opacity - 0.2)),
                .blend(blend.with(\.background, blend.background.neighbors[0])),
            ]
        case .colorControls(let controls):
            [
                .colorControls(controls.with(\.brightness, controls.brightness + 0.02)),
                .colorControls(controls.with(\.contrast, controls.contrast * 1.1)),
                .colorControls(controls.with(\.exposure, controls.exposure + 0.05)),
            ]
        case .blackWhite:
            [.colorControls(ColorControls(saturation: 0, exposure: 0.65))]
        case .border(let border):
            [
                .border(border.with(\.width, border.width + 0.5)),
                .border(border.with(\.color, border.color.neighbors[0])),
                .border(border.with(\.radius, .pixels(11))),
            ]
        case .downsample(let size): [.downsample(size.wider)]
        case .sharpen(let sharpen):
            [
                .sharpen(sharpen.with(\.radius, sharpen.radius * 1.4)),
                .sharpen(sharpen.with(\.amount, sharpen.amount * 1.3)),
            ]
        // A detector is required (DetectorTests).
        case .hideFaces: []
        case .pixelate(let size): [.pixelate(size + 1), .pixelate(size - 1)]
        case .watermark(let watermark):
            [
                .watermark(watermark.with(\.position, .bottom)),
                .watermark(watermark.with(\.margin, watermark.margin + 1)),
                .watermark(watermark.with(\.widthFraction, (watermark.widthFraction ?? 1) * 0.95)),
                .watermark(watermark.with(\.offset, PixelOffset(x: watermark.offset.x, y: watermark.offset.y + 1))),
                .watermark(watermark.with(\.mode, watermark.mode == .normal ? .exclusion : .normal)),
                .watermark(watermark.with(\.opacity, watermark.opacity - 0.1)),
                .watermark(watermark.with(\.tiled, !watermark.tiled)),
            ]
        case .rotate(let degrees, let background):
            [
                .rotate(degrees: degrees + 1, background: background),
                .rotate(degrees: 360 - degrees, background: background),
            ] + (degrees == 270 ? [] : [.rotate(degrees: degrees, background: background.neighbors[0])])
        case .flip(let flip): Flip.allCases.filter { $0 != flip }.map { .flip($0) }
        case .pad(let pad):
            [
                .pad(pad.with(\.top, pad.top + 1)), .pad(pad.with(\.fill, pad.fill == .edge ? .blur : .edge)),
            ]
                + (pad.fill == .color ? [.pad(pad.with(\.color, pad.color.neighbors[0]))] : [])
        case .text(let text):
            [
                .text(text.with(\.text, text.text + ".")), .text(text.with(\.bold, !text.bold)),
                .text(text.with(\.font, text.font == "DejaVu Sans" ? "DejaVu Serif" : "DejaVu Sans")),
                .text(text.with(\.color, text.color.neighbors[0])), .text(text.with(\.position, .right)),
                .text(text.with(\.opacity, text.opacity - 0.15)),
                .text(text.with(\.outlineWidth, text.outlineWidth + 1)),
                .text(text.with(\.offset, PixelOffset(x: 0, y: 1))), .text(text.with(\.size, 11)),
            ]
        case .mask(.shape(let shape)): Mask.Shape.allCases.filter { $0 != shape }.map { .mask(.shape($0)) }
        case .mask(.picture): [.mask(.picture(GoldenCase.mark))]
        case .hue(let degrees): [.hue(degrees: degrees + 4), .hue(degrees: degrees - 4)]
        case .gamma(let gamma): [.gamma(gamma * 1.04), .gamma(gamma * 0.96)]
        case .normalize(let normalize):
            [
                .normalize(normalize.with(\.lower, normalize.lower + 4)),
                .normalize(normalize.with(\.upper, normalize.upper - 4)),
            ]
        case .duotone(let dark, let light):
            [
                .duotone(dark: dark.neighbors[0], light: light), .duotone(dark: dark, light: light.neighbors[0]),
                .duotone(dark: light, light: dark),
            ]
        case .custom: []
        }
    }
}

extension CornerRadius {
    fileprivate var neighbors: [CornerRadius] {
        switch self {
        case .pixels(let pixels): [.pixels(pixels + 1), .pixels(pixels - 1)]
        case .widthFraction(let fraction): [.widthFraction(fraction * 0.95), .heightFraction(fraction)]
        case .heightFraction(let fraction): [.heightFraction(fraction * 0.95), .widthFraction(fraction / 2)]
        }
    }
}

extension CSSColor {
    /// The color with another red, and with another opacity.
    fileprivate var neighbors: [CSSColor] {
        [
            CSSColor(red: red > 200 ? red - 40 : red + 40, green: green, blue: blue, alpha: max(alpha, 60)),
            CSSColor(red: red, green: green, blue: blue, alpha: alpha > 20 ? alpha - 20 : alpha + 60),
        ]
    }
}

extension PixelSize {
    fileprivate var wider: PixelSize { PixelSize(width: width + 1, height: height + 1) }
}

/// A value that can be copied with one member changed.
private protocol Changeable {}

extension Changeable {
    func with<Value>(_ member: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
        var copy = self
        copy[keyPath: member] = value
        return copy
    }
}

extension RoundCorner: Changeable {}
extension Blend: Changeable {}
extension ColorControls: Changeable {}
extension Border: Changeable {}
extension Sharpen: Changeable {}
extension Watermark: Changeable {}
extension Pad: Changeable {}
extension TextOverlay: Changeable {}
extension Normalize: Changeable {}
