import Digests
import HalcyonModel
import Threads
import Vips

/// Makes an output of a source: bytes and a variant in, a file out.
///
/// The steps are the whole of it, each in a file of its own: identify, check limits, plan, shrink on load, resize,
/// colour, orientation, canvas, encode.
public struct Renderer: Sendable {
    /// What one rendering may cost.
    public var limits: ImageLimits

    /// A renderer with these limits. It starts libvips.
    public init(limits: ImageLimits = ImageLimits()) {
        self.limits = limits
        VipsLibrary.start()
    }

    /// Threads for rendering, with the stack and the clean-up that libvips wants. ``ThreadPool/shutdown()`` is the
    /// caller's.
    public static func makePool(threads: Int) -> ThreadPool {
        ThreadPool(name: "render", threads: threads, onThreadEnd: VipsLibrary.endThread)
    }

    /// Renders on `pool`. When the task is cancelled the pipeline is stopped within milliseconds.
    ///
    /// - Throws: ``Failure``, or `CancellationError`.
    public func render(_ source: [UInt8], _ variant: Variant, on pool: ThreadPool) async throws -> RenderedImage {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await pool.run { try render(source, variant, cancellation) }
        } onCancel: {
            cancellation.cancel()
        }
    }

    /// Renders on the calling thread, which it holds until it is done: never call it on a task's thread.
    ///
    /// - Throws: ``Failure`` of code `unsupportedFormat`, `corruptImage`, `tooManyPixels` or `internal`;
    ///   `CancellationError` when `cancellation` stopped it.
    public func render(
        _ bytes: [UInt8], _ variant: Variant, _ cancellation: Cancellation? = nil
    ) throws -> RenderedImage {
        var stopwatch = Stopwatch()
        let source = try SourceImage(bytes)
        try limits.admit(source)

        let plan = variant.sizing.plan(for: source.size)
        let isTransparent = source.header.hasAlpha || plan.leavesExcess
        let format = variant.output.format ?? .automatic(source: source.format, isTransparent: isTransparent)
        guard let encoder = Encoder(format, variant.output) else {
            throw Failure(.unsupportedFormat, "\(format.rawValue) is not among the formats that can be written")
        }
        try limits.admit(plan, as: format)

        let part = source.orientation.stored(plan.sourceRect, in: source.size)
        let target = source.orientation.upright(plan.destRect.size)
        let load = LoadPlan(source, part: part, target: target, quality: variant.interpolationQuality)
        try limits.admit(load)

        var timings = RenderedImage.Timings()
        let decoded = try step(.corruptImage) { () throws(VipsError) in
            try source.open(load)
                .resized(
                    part, of: source.rawSize, reduction: load.reduction, to: target, variant.interpolationQuality
                )
                .inMemory(cancellation)
        }
        timings.decode = stopwatch.lap()
        let placed = try step(.internal) { () throws(VipsError) in
            try decoded.inSRGB().upright().placed(plan, keepingAlpha: format.hasAlpha).inMemory(cancellation)
        }
        timings.process = stopwatch.lap()
        let body = try step(.internal) { () throws(VipsError) in
            try encoder.encode(placed, cancellation)
        }
        timings.encode = stopwatch.lap()
        return RenderedImage(
            body: body, format: format, size: PixelSize(width: placed.width, height: placed.height),
            sha256: SHA256.hash(body).description, sourceFormat: source.format, sourceSize: source.size,
            timings: timings)
    }

    /// Runs a step, and says whose fault it is when libvips refuses.
    private func step<Result>(_ blame: FailureCode, _ body: () throws(VipsError) -> Result) throws -> Result {
        do throws(VipsError) {
            return try body()
        } catch {
            if error.code == .cancelled { throw CancellationError() }
            throw Failure(blame, error.description)
        }
    }
}

/// Wall-clock time since it was last asked.
private struct Stopwatch {
    private var start = ContinuousClock.now

    mutating func lap() -> Duration {
        let now = ContinuousClock.now
        defer { start = now }
        return start.duration(to: now)
    }
}
