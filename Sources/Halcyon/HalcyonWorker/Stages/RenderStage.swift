import Concurrency
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Telemetry

/// Fetches the source of results and renders them.
struct RenderStage: Sendable {
    let sources: SourceCache
    /// The cache of watermarks and overlays, which many jobs share.
    let assets: AssetCache
    let service: RenderService
    /// The permits of renderings in flight or queued. From four threads on there are a few more than threads, so that
    /// none is idle. With each of them, the next job of a waiting tenant is rendered later.
    let permits: PrioritySemaphore
    let memory: ResultMemory

    /// Returns the progress of loading a job's source, or nil unless this worker is loading it.
    func progress(of job: JobContext) -> LoadProgress? {
        sources.progress(of: job.job.request, job.job.cache.ofSources)
    }

    /// Fetches the job's source, and the watermarks and overlays of some of its variants.
    ///
    /// The TTL of a result depends on the job's own source alone. A changed watermark appears in results that are
    /// rendered after it has expired.
    /// - Throws: ``JobError``, which names the asset that caused it, if any.
    func fetch(_ indices: [Int], of job: JobContext, _ context: WorkContext) async throws -> FetchedSource {
        let (request, use) = (job.job.request, job.job.cache.ofSources)
        let start = Lock(ContinuousClock.now)
        let startingClock = WorkContext(urgency: context.urgency, trace: context.trace) { isOwn in
            start.withLock { $0 = .now }
            return context.start(isOwn)
        }
        do {
            // Assets are loaded first. While a job waits for them it holds no permit, which another job may need to
            // fetch one of them.
            let assets = try await assets.load(
                all: Set(indices.flatMap { job.job.variants[$0].assets }), of: request.tenant,
                onlyKept: use == .onlyKept)
            let found = try await sources.fetch(request, use, startingClock)
            let lap = Interval(from: start.withLock { $0 })
            let fetched = FetchedSource(cached: found, assets: assets, lap: lap)
            job.trace?.fetched(fetched, request, lap)
            return fetched
        } catch {
            job.trace?.failedToFetch(request, Interval(from: start.withLock { $0 }), error)
            throw error
        }
    }

    /// Renders some of a job's variants from one decoding.
    ///
    /// The fetch permit is released only after a render permit is acquired. Slow rendering therefore does not fill the
    /// memory with sources, and slow origins do not block the renderer. Additional permits of a large source are
    /// released together with its bytes.
    /// - Parameter fences: The fencing tokens in the order of the variants; 0 for none.
    /// - Throws: ``JobError``, which names the variant that caused it, if any; `CancellationError` if the task is
    ///   cancelled.
    func render(
        _ fetched: FetchedSource, _ indices: [Int], of job: JobContext, fences: [Int],
        _ isolation: RenderService.Isolation, _ urgency: WorkPriority
    ) async throws -> [RenderedResult] {
        try await permits.acquire(urgency)
        defer { permits.release() }
        fetched.cached.permit?.releaseOwn()
        let start = ContinuousClock.now
        let source = fetched.cached.source
        let rendering: RenderResult
        do {
            rendering = try await service.render(
                source.body, indices.map { job.job.variants[$0] }, assets: fetched.assets, isolation: isolation)
        } catch {
            job.trace?.add(.render, Interval(from: start), error: error)
            throw error
        }
        job.trace?.rendered(rendering.timings, Interval(from: start))
        var timings = Timings()
        timings[.fetch] = fetched.lap.milliseconds
        timings[.decode] = rendering.timings.decode.milliseconds
        timings[.process] = rendering.timings.process.milliseconds
        timings[.encode] = rendering.timings.encode.milliseconds
        return zip(zip(indices, fences), rendering.images).map { variant, image in
            let (index, fence) = variant
            return RenderedResult(
                key: job.keys[index], image: image, memory: memory.hold(image.body.count),
                facts: ResultMetadata(image, of: rendering, from: source), headers: source.headers,
                completedAt: source.completedAt, origin: fetched.origin, timings: timings, fence: fence,
                since: min(fence, fetched.cached.fence ?? .max), maker: job.trace?.context)
        }
    }
}

/// The source of a rendering.
struct FetchedSource: Sendable {
    /// The job's own source.
    let cached: CachedSource
    /// The bytes of watermarks and overlays.
    let assets: [Source: [UInt8]]
    /// The time interval of the fetch.
    let lap: Interval

    /// The cache status of the job's own source.
    var origin: CacheStatus { cached.isFromCache ? .sourceCache : .network }
}

extension CachePolicy {
    /// The use of the source cache.
    fileprivate var ofSources: SourceCacheUse {
        guard source else { return .none }
        if onlyIfCached { return .onlyKept }
        return reload ? .reload : .standard
    }
}

extension ResultMetadata {
    /// Creates the metadata of a rendered image and its source.
    init(_ image: RenderedImage, of rendering: RenderResult, from source: LoadedSource) {
        self.init(
            width: image.size.width, height: image.size.height, format: image.format, bytes: image.body.count,
            sha256: image.sha256, frames: image.frames, blurhash: image.blurhash, dominantColor: image.dominantColor,
            trim: image.trim, palette: image.palette, thumbhash: image.thumbhash, phash: image.phash,
            info: image.format == .json ? image.body : nil,
            encoding: image.encoding,
            source: SourceMetadata(
                status: source.status, etag: source.validators.etag, bytes: source.body.count,
                format: rendering.sourceFormat,
                width: image.sourceSize.width, height: image.sourceSize.height,
                isTruncated: rendering.sourceIsTruncated),
            isPrivate: source.headers.isPrivate)
    }
}

extension RenderService {
    /// Registers the metrics of the render memory.
    func measure(_ metrics: Metrics) {
        metrics.observable(
            .gauge, "halcyon_render_memory_bytes",
            help: "Memory reserved for renderings in flight, as estimated before they started."
        ) { Double(memoryUse.taken) }
        metrics.observable(
            .gauge, "halcyon_render_memory_waiting", help: "Renderings waiting for memory."
        ) { Double(memoryUse.waiting) }
    }
}
