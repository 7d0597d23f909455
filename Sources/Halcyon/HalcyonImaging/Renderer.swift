import Digests
import HalcyonModel
import Threads
import Vips

/// Makes outputs of a source: bytes and variants in, files out. Outputs share a decoding where their pixels do not depend
/// on it.
///
/// The steps are the whole of it, each in a file of its own: identify, plan, check limits, shrink on load, decode, focus,
/// resize, colour, orientation, canvas, processors, flatten, encode.
public struct Renderer: Sendable {
    /// What one rendering may cost.
    public var limits: ImageLimits
    /// Processors and sizers of the host program.
    public var extensions: Extensions

    /// A renderer with these limits and extensions. It starts libvips.
    public init(limits: ImageLimits = ImageLimits(), extensions: Extensions = Extensions()) {
        self.limits = limits
        self.extensions = extensions
        VipsLibrary.start()
    }

    /// Threads for rendering, with the stack and the clean-up that libvips wants. ``ThreadPool/shutdown()`` is the
    /// caller's.
    public static func makePool(threads: Int) -> ThreadPool {
        ThreadPool(name: "render", threads: threads, onThreadEnd: VipsLibrary.endThread)
    }

    /// Renders on the calling thread, which it holds until it is done: never call it on a task's thread.
    ///
    /// - Parameter assets: the bytes of ``Variant/assets``.
    /// - Throws: ``Failure`` of code `unsupportedFormat`, `corruptImage`, `tooManyPixels` or `internal`;
    ///   `CancellationError` when `cancellation` stopped it.
    public func render(
        _ bytes: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:], _ cancellation: Cancellation? = nil
    ) throws -> Rendering {
        try render(try plan(identify(bytes), variants), assets: assets, cancellation)
    }

    /// Says what the bytes are, by their first ones.
    ///
    /// - Throws: ``Failure`` of code `unsupportedFormat`, or `corruptImage` where that much shows.
    public func identify(_ bytes: [UInt8]) throws(Failure) -> EncodedImage { try EncodedImage(identifying: bytes) }

    /// Looks at headers, plans, and checks limits, on the calling thread. No pixel is decoded.
    ///
    /// - Throws: ``Failure``, as rendering does.
    public func plan(_ file: EncodedImage, _ variants: [Variant]) throws(Failure) -> RenderPlan {
        try RenderPlan(file, variants, within: limits, extensions)
    }

    /// Does what was planned on this thread.
    ///
    /// - Throws: as above.
    public func render(
        _ plan: RenderPlan, assets: [Source: [UInt8]] = [:], _ cancellation: Cancellation? = nil
    ) throws -> Rendering {
        let source = plan.source
        var progress = Progress(of: source.file, cancellation)
        let assets = ProcessingAssets(assets, within: limits, cancellation)
        var images: [Int: RenderedImage] = [:]
        for (load, outputs) in plan.decodings {
            let decoded = try progress.step(\.decode, .corruptImage) { cancellation in
                try DecodedImage(source, load, cancellation)
            }
            for index in outputs {
                do {
                    images[index] = try image(plan.outputs[index], of: source, from: decoded, assets, &progress)
                } catch let failure as Failure {
                    throw failure.of(variant: index)
                }
            }
        }
        return Rendering(
            sourceFormat: source.format, sourceSize: source.size, sourceIsTruncated: source.isTruncated,
            images: plan.outputs.indices.compactMap { images[$0] }, timings: progress.timings)
    }

    private func image(
        _ output: OutputPlan, of source: SourceImage, from decoded: DecodedImage, _ assets: ProcessingAssets,
        _ progress: inout Progress
    ) throws -> RenderedImage {
        let variant = output.variant
        var geometry = output.geometry
        if variant.needsFocus {
            let focus = try progress.step(\.decode, .corruptImage) { cancellation in
                try decoded.focus(of: output, in: source)
            }
            geometry = try variant.sizing.plan(for: source.size, focus: focus, custom: extensions.plan)
        }
        let part = source.orientation.stored(geometry.sourceRect, in: source.size)
        let target = source.orientation.upright(geometry.destRect.size)
        var frames: [Image] = []
        for index in 0..<output.frames {
            let sized = try progress.step(\.decode, .corruptImage) { _ in
                try decoded.sized(index, part, to: target, for: output)
            }
            let frame = try progress.step(\.process, .internal) { cancellation in
                try sized.inSRGB(keepingProfile: variant.output.keepProfile).turned(source.orientation)
                    .placed(geometry, on: output.background)
                    .processed(
                        by: variant.processors, with: assets, extensions, quality: variant.interpolationQuality,
                        cancellation
                    )
                    .flattened(onto: output.background, for: output.format)
                    .inMemory(cancellation)
            }
            frames.append(frame)
        }
        let picture = frames[0]
        let findings = try progress.step(\.process, .internal) { cancellation in
            try Findings(variant.findings, of: picture)
        }
        let body = try progress.step(\.encode, .internal) { cancellation in
            try output.ownFile(of: source)
                ?? output.encoder.encode(try decoded.animation(of: frames), cancellation)
        }
        return RenderedImage(
            body: body, format: output.format, size: picture.size,
            frames: output.frames > 1 ? output.frames : nil, sha256: SHA256.hash(body).description,
            blurhash: findings.blurhash, dominantColor: findings.dominantColor)
    }
}

/// A rendering under way: who may stop it, and how long what took.
private struct Progress {
    private let file: EncodedImage
    private let cancellation: Cancellation?
    private(set) var timings = Rendering.Timings()

    init(of file: EncodedImage, _ cancellation: Cancellation?) {
        self.file = file
        self.cancellation = cancellation
    }

    /// Runs a step, and says whose fault it is when libvips refuses.
    mutating func step<Result>(
        _ part: WritableKeyPath<Rendering.Timings, Duration>, _ blame: FailureCode,
        _ body: (Cancellation?) throws -> Result
    ) throws -> Result {
        let start = ContinuousClock.now
        defer { timings[keyPath: part] += start.duration(to: .now) }
        do {
            return try body(cancellation)
        } catch let error as VipsError {
            if error.code == .cancelled { throw CancellationError() }
            throw blame == .corruptImage
                ? file.failure(error.description, error) : Failure(blame, error.description, cause: error)
        }
    }
}

/// What came of one source.
public struct Rendering: Sendable, Codable {
    /// The format of the source, by its bytes.
    public var sourceFormat: ImageFormat
    /// The size of the source in pixels, upright; of an animation, of one frame.
    public var sourceSize: PixelSize
    /// Whether the file of the source ends too early, and what there is of it was rendered.
    public var sourceIsTruncated: Bool
    /// One output for each variant, in their order.
    public var images: [RenderedImage]
    /// How long it took, over all outputs.
    public var timings: Timings

    /// Wall-clock time of the parts of a rendering.
    public struct Timings: Sendable, Hashable, Codable {
        /// Reading headers, decoding and resizing: one pass over the pixels, which cannot be told apart.
        public var decode = Duration.zero
        /// Colour, orientation, canvas and processors, on the small picture.
        public var process = Duration.zero
        /// Encoding.
        public var encode = Duration.zero
    }
}

/// An output, and what is known of it.
public struct RenderedImage: Sendable, Codable {
    /// The file.
    public var body: [UInt8]
    /// Its format.
    public var format: ImageFormat
    /// Its size in pixels; of an animation, of one frame.
    public var size: PixelSize
    /// Frames of an animation; nil for a still image.
    public var frames: Int?
    /// SHA-256 of ``body`` in lower-case hexadecimal.
    public var sha256: String
    /// Its BlurHash, when the variant asks for it.
    public var blurhash: String?
    /// The colour that most of it has, as `#rrggbb`, when the variant asks for it.
    public var dominantColor: String?
}
