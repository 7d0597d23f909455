import HalcyonModel
import Vips

/// The archive copies of sources: a large source is reduced once, and all results that fit into the copy are rendered
/// from it.
///
/// A copy is upright and has 8 bits per sample. Its colors are those of the source with its profile; CMYK becomes sRGB.
/// Photographs become JPEG with full color resolution. PNG, and everything with alpha, stays lossless, so that flat
/// areas stay flat. Other metadata is removed.
public struct ArchiveOptions: Hashable, Codable, Sendable {
    /// Sources with more pixels have a copy.
    public var minimumPixels: Int
    /// The maximum number of pixels of a copy; less than ``minimumPixels``.
    public var pixels: Int

    /// The quality of JPEG copies, chosen by the benchmark (`RenderBenchmark FOLDER archive`). At 95 a copy is 40 %
    /// larger and takes 10 % longer to decode, and results are closer to those of the original by less than a tenth of
    /// what is visible.
    static let quality = 92

    /// Creates options.
    public init(minimumPixels: Int, pixels: Int) {
        self.minimumPixels = minimumPixels
        self.pixels = pixels
    }

    /// The text that identifies the pixels of a copy. A copy that was made with another one is made again.
    public var identity: String { "1 \(minimumPixels) \(pixels)" }

    /// Returns the size of the copy of a source.
    public func size(of source: PixelSize) -> PixelSize {
        let scale = min(1, (Double(pixels) / Double(source.pixels)).squareRoot())
        return PixelSize(width: Int(Double(source.width) * scale), height: Int(Double(source.height) * scale))
    }

    /// Returns true if a result needs no more pixels than the copy of its source has, nor anything else that only the
    /// original has. A part of the source that begins inside a pixel of the copy must have so many of them that the
    /// output is not shifted by more than a quarter of a pixel.
    public func holds(_ variant: Variant, of original: PixelSize, _ extensions: Extensions) -> Bool {
        guard variant.acceptsCopy else { return false }
        let copy = size(of: original)
        func holds(_ start: Int, _ length: Int, of side: Int, in count: Int, to target: Int) -> Bool {
            let ratio = Double(count) / Double(side)
            // A thousandth of a pixel for rounding errors.
            guard Double(length) * ratio + 0.001 >= Double(target) else { return false }
            // The pixels determine where the part begins.
            if variant.needsFocus, length < side { return Double(length) * ratio >= Double(2 * target) }
            let span = Double(start) * ratio..<Double(start + length) * ratio
            return ResamplePlan(span, of: count, to: target).shift <= 0.2501
        }
        do {
            let plan = try variant.sizing.plan(for: original, custom: extensions.plan)
            let (from, to) = (plan.sourceRect, plan.destRect)
            return holds(from.x, from.width, of: original.width, in: copy.width, to: to.width)
                && holds(from.y, from.height, of: original.height, in: copy.height, to: to.height)
        } catch {
            // Rendering from the original reports the error.
            return false
        }
    }

    /// Returns the output that is the copy of a source; nil for a source without a copy: one that is small, truncated,
    /// a drawing, an animation or a document of several pages.
    func variant(for source: SourceImage) -> Variant? {
        guard source.size.pixels > minimumPixels, source.header.pages <= 1, !source.file.isTruncated,
            ![.svg, .pdf, .gif].contains(source.format)
        else { return nil }
        let size = size(of: source.size)
        let display = Display(
            width: Double(size.width), height: Double(size.height), contentMode: .scaleToFill,
            scaleOptions: .fitLeavesExcessAndFillCropsExcess)
        let isLossless = source.format == .png || source.header.hasAlpha
        let output =
            isLossless
            ? OutputOptions(format: .png, keepProfile: true)
            : OutputOptions(format: .jpeg, quality: Self.quality, keepProfile: true, chromaSubsampling: .full)
        return Variant(sizing: Sizing(goal: .display(display)), interpolationQuality: .high, output: output)
    }
}

extension Variant {
    /// True if the output may be rendered from a copy with enough pixels. Not so facts about the source, its metadata,
    /// more than 8 bits per sample, its single pixels, their light, steps that precede sizing, pages other than the
    /// first, and what a detector finds.
    public var acceptsCopy: Bool {
        info == nil && output.stripMetadata && output.bitDepth == nil && interpolationQuality != .none
            && !needsFullResolution && page == 1 && detections.isEmpty
    }
}

extension RenderService {
    /// Returns true if a source may have an archive copy, by its header. Of formats that are not opened in this process
    /// every file may.
    ///
    /// - Throws: `CancellationError`; ``ThreadPoolClosed``.
    public func mayHaveCopy(_ source: [UInt8], _ options: ArchiveOptions) async throws -> Bool {
        try await onThread { renderer in
            // A file that cannot be read has no copy. Rendering it reports the error.
            guard let file = try? renderer.identify(source) else { return false }
            if Codecs.isApart(file.format) { return file.format != .svg && file.format != .pdf }
            guard let image = try? SourceImage(file) else { return false }
            return options.variant(for: image) != nil
        }
    }

    /// Makes the archive copy of a source.
    /// - Returns: The copy, and the format and size of the original; nil if the source has none.
    /// - Throws: Like ``render(_:_:assets:isolation:original:)``.
    public func archive(
        _ source: [UInt8], _ options: ArchiveOptions, isolation: Isolation = .whereNeeded
    ) async throws -> (copy: [UInt8], format: ImageFormat, size: PixelSize)? {
        let rendering = try await render(
            RenderTask.Input(source: source, variants: [], assets: [:], isolation: isolation, archive: options))
        return rendering.images.first.map { ($0.body, rendering.sourceFormat, rendering.sourceSize) }
    }
}
