import Concurrency
import HalcyonModel
import Hashing
import Vips

/// Renders the outputs of a source: bytes and variants in, files out. Outputs share a decoding if their pixels do not
/// depend on it.
///
/// The steps, each in a separate file: identify, plan, check limits, shrink on load, decode, processors before sizing,
/// trim, focus, resize, color, orientation, canvas, processors, flatten, encode.
public struct Renderer: Sendable {
    /// The limits of one rendering.
    public var limits: ImageLimits
    /// The custom processors and sizers.
    public var extensions: Extensions

    /// Creates a renderer with these limits and extensions, and initializes libvips.
    public init(limits: ImageLimits = ImageLimits(), extensions: Extensions = Extensions()) {
        self.limits = limits
        self.extensions = extensions
        VipsLibrary.start()
    }

    /// Creates a thread pool for rendering, with the stack size and the cleanup that libvips requires. The caller calls
    /// ``ThreadPool/shutdown()``.
    public static func makePool(threads: Int) -> ThreadPool {
        ThreadPool(name: "render", threads: threads, onThreadEnd: VipsLibrary.endThread)
    }

    /// Renders on the calling thread and blocks it. Do not call it on a thread of the cooperative pool.
    ///
    /// - Parameter assets: The bytes of ``Variant/assets``.
    /// - Throws: ``JobError`` of code `unsupportedFormat`, `corruptImage`, `tooManyPixels` or `internal`;
    ///   `CancellationError` if `cancellation` stopped it.
    public func render(
        _ bytes: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:], _ cancellation: Cancellation? = nil
    ) throws -> RenderResult {
        try render(try plan(identify(bytes), variants, assets: assets), assets: assets, cancellation)
    }

    /// Detects the format of the bytes by their beginning.
    ///
    /// - Throws: ``JobError`` of code `unsupportedFormat`, or `corruptImage` if that is already apparent.
    public func identify(_ bytes: [UInt8]) throws(JobError) -> EncodedImage { try EncodedImage(identifying: bytes) }

    /// Reads headers, plans, and checks limits on the calling thread. No pixel is decoded.
    ///
    /// - Parameters:
    ///   - assets: The bytes of ``Variant/assets``. The plan does not include the cost of those that are missing.
    ///   - original: The original, if the file is an archive copy of it.
    ///   - archive: The archive copy to make instead of variants. Without one, the plan has no outputs.
    /// - Throws: ``JobError``, like rendering.
    public func plan(
        _ file: EncodedImage, _ variants: [Variant], assets: [Source: [UInt8]] = [:],
        original: ArchivedOriginal? = nil, archive: ArchiveOptions? = nil
    ) throws(JobError) -> RenderPlan {
        try RenderPlan(
            file, variants, assets: assets, original: original, archive: archive, within: limits, extensions)
    }

    /// Renders a plan on the calling thread.
    ///
    /// - Parameter faces: The faces in the upright source by page; none for a page where they have not been looked for,
    ///   which fails its variants that need them.
    /// - Throws: ``JobError`` or `CancellationError`, like ``render(_:_:assets:_:)``.
    public func render(
        _ plan: RenderPlan, assets: [Source: [UInt8]] = [:], faces: [Int: [DetectedBox]] = [:],
        _ cancellation: Cancellation? = nil
    ) throws -> RenderResult {
        let source = plan.source
        var progress = Progress(of: source.file, cancellation)
        let assets = ProcessingAssets(assets, within: limits, cancellation)
        var images: [Int: RenderedImage] = [:]
        for (load, outputs) in plan.decodings {
            let decoded = try progress.step(\.decode, .corruptImage) { cancellation in
                try DecodedImage(plan.sources[outputs[0]], load, cancellation)
            }
            for index in outputs {
                do {
                    images[index] = try image(
                        plan.outputs[index], of: plan.sources[index], from: decoded, assets,
                        faces[plan.sources[index].page], &progress)
                } catch let failure as JobError {
                    throw failure.forVariant(index)
                }
            }
        }
        for (index, output) in plan.outputs.enumerated() where !output.variant.needsPixels {
            images[index] = try progress.step(\.decode, .corruptImage) { _ in
                try facts(output.variant, of: plan.sources[index], ImageAnalysis([], of: source.header))
            }
        }
        return RenderResult(
            sourceFormat: source.format, sourceIsTruncated: source.isTruncated,
            images: plan.outputs.indices.compactMap { images[$0] }, timings: progress.timings)
    }

    private func image(
        _ output: OutputPlan, of source: SourceImage, from decoded: DecodedImage, _ assets: ProcessingAssets,
        _ faces: [DetectedBox]?, _ progress: inout Progress
    ) throws -> RenderedImage {
        var (output, input) = (output, decoded)
        let variant = output.variant
        guard faces != nil || !variant.requiresFaces else {
            throw JobError(.internal, "faces have not been looked for", isRetryable: false)
        }
        if !variant.before.isEmpty {
            input = try progress.step(\.process, .internal) { _ in
                try decoded.processed(for: output, with: assets, extensions, faces)
            }
        }
        var content: PixelRect?
        if let trim = variant.sizing.trim {
            let found = try progress.step(\.decode, .corruptImage) { _ in
                try input.content(for: output, without: trim)
            }
            output = try output.trimmed(to: found, of: source, within: limits, extensions)
            content = found
        }
        var geometry = output.geometry
        if variant.needsFocus {
            let focus = try progress.step(\.decode, .corruptImage) { _ in try input.focus(of: output) }
            geometry = try output.variant.sizing.plan(for: output.inputSize, focus: focus, custom: extensions.plan)
        }
        let part = output.orientation.stored(geometry.sourceRect, in: output.inputSize)
        let target = output.orientation.upright(geometry.destRect.size)
        let visible = faces?.map { $0.placed(by: geometry, of: output.inputSize) }
        var frames: [Image] = []
        for index in 0..<output.frames {
            let sized = try progress.step(\.decode, .corruptImage) { _ in
                try input.sized(index, part, to: target, for: output)
            }
            let frame = try progress.step(\.process, .internal) { cancellation in
                try sized.inSRGB(for: variant.output)
                    .turned(output.orientation)
                    .placed(geometry, on: output.background)
                    .processed(
                        by: variant.processors, with: assets, extensions, quality: variant.interpolationQuality,
                        faces: visible, cancellation
                    )
                    .flattened(onto: output.background, for: output.format)
                    .inMemory(cancellation)
            }
            frames.append(frame)
        }
        let picture = frames[0]
        if variant.isDetectorInput {
            return RenderedImage(
                body: try picture.inColour().pixels(), format: .jpeg, size: picture.size, sha256: "",
                sourceSize: source.size)
        }
        let isInSRGB = variant.output.profile == nil && !variant.output.keepProfile
        let findings = try progress.step(\.process, .internal) { cancellation in
            try ImageAnalysis(variant.findings, of: picture.inSRGB(keepingProfile: isInSRGB))
        }
        if variant.info != nil { return facts(variant, of: source, findings, faces) }
        let encoded = try progress.step(\.encode, .internal) { cancellation in
            if let file = output.ownFile(of: source) {
                return EncodedOutput(
                    body: file, format: output.format, size: picture.size,
                    choice: variant.output.isSearched ? EncodingChoice(encodings: 0) : nil)
            }
            var encoding = OutputEncoding(output, input, limits, cancellation)
            return try encoding.run(frames)
        }
        return RenderedImage(
            body: encoded.body, format: encoded.format, size: encoded.size,
            frames: encoded.frames(of: output.frames), sha256: SHA256.hash(encoded.body).description,
            blurhash: findings.blurhash, dominantColor: findings.dominantColor, trim: content,
            palette: findings.palette, thumbhash: findings.thumbhash, phash: findings.phash,
            faces: variant.findings.contains(.faces) ? visible.map { DetectedFace.visible($0, in: encoded.size) } : nil,
            encoding: encoded.choice, sourceSize: source.size)
    }

    /// Returns the facts about a source as a file.
    private func facts(
        _ variant: Variant, of source: SourceImage, _ findings: ImageAnalysis, _ faces: [DetectedBox]? = nil
    ) -> RenderedImage {
        var info = ImageInfo(source, variant.info ?? InfoOptions(), findings)
        if variant.findings.contains(.faces) { info.faces = faces.map { DetectedFace.visible($0, in: source.size) } }
        let body = info.json
        return RenderedImage(
            body: body, format: .json, size: source.size, sha256: SHA256.hash(body).description, sourceSize: source.size
        )
    }
}

/// The cancellation and the timings of a rendering in flight.
private struct Progress {
    private let file: EncodedImage
    private let cancellation: Cancellation?
    private(set) var timings = RenderResult.Timings()

    init(of file: EncodedImage, _ cancellation: Cancellation?) {
        self.file = file
        self.cancellation = cancellation
    }

    /// Runs a step, and converts errors of libvips to errors of the file or the server.
    mutating func step<Result>(
        _ part: WritableKeyPath<RenderResult.Timings, Duration>, _ blame: JobErrorCode,
        _ body: (Cancellation?) throws -> Result
    ) throws -> Result {
        let start = ContinuousClock.now
        defer { timings[keyPath: part] += start.duration(to: .now) }
        do {
            return try body(cancellation)
        } catch let error as VipsError {
            if error.code == .cancelled { throw CancellationError() }
            throw blame == .corruptImage
                ? file.failure(error.description, error) : JobError(blame, error.description, cause: error)
        }
    }
}

/// The result of rendering one source.
public struct RenderResult: Sendable, Codable {
    /// The format of the source, detected from its bytes.
    public var sourceFormat: ImageFormat
    /// True if the source is truncated and the available part was rendered.
    public var sourceIsTruncated: Bool
    /// One output for each variant, in their order.
    public var images: [RenderedImage]
    /// The durations, over all outputs.
    public var timings: Timings
    /// The upright size of the source, at the page of the first output.
    public var sourceSize: PixelSize { images.first?.sourceSize ?? PixelSize(width: 0, height: 0) }

    /// The wall-clock time of the parts of a rendering.
    public struct Timings: Sendable, Hashable, Codable {
        /// Reading headers, decoding and resizing, which are a single pass over the pixels and cannot be separated.
        public var decode = Duration.zero
        /// Color, orientation, canvas and processors, on the resized image.
        public var process = Duration.zero
        /// Encoding.
        public var encode = Duration.zero

        /// Creates durations of zero.
        public init() {}
    }
}

/// A rendered output with its metadata.
public struct RenderedImage: Sendable, Codable {
    /// The bytes of the file.
    public var body: [UInt8]
    /// The format.
    public var format: ImageFormat
    /// The size in pixels. For an animation, the size of one frame.
    public var size: PixelSize
    /// The number of frames of the animation in the file, in which encoders join equal frames. Nil for a still image.
    public var frames: Int?
    /// The SHA-256 of ``body`` in lowercase hexadecimal.
    public var sha256: String
    /// The BlurHash, if the variant requests it.
    public var blurhash: String?
    /// The dominant color as `#rrggbb`, if the variant requests it.
    public var dominantColor: String?
    /// The part of the upright source, after the processors before sizing, that remained after ``Sizing/trim``.
    public var trim: PixelRect?
    /// The most important colors as `#rrggbb`, if the variant requests them.
    public var palette: [String]?
    /// The ThumbHash as base64, if the variant requests it.
    public var thumbhash: String?
    /// The perceptual hash as 16 hexadecimal digits, if the variant requests it.
    public var phash: String?
    /// The faces, the most confident first, if the variant requests them.
    public var faces: [DetectedFace]?
    /// The outcome of the search for the size or the quality, if the variant requests one.
    public var encoding: EncodingChoice?
    /// The upright size of the source in pixels: of its page, or of a frame of an animation.
    public var sourceSize: PixelSize
}
