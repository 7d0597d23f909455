import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Telemetry
import Threads

/// Fetches the source of results, and renders them.
struct RenderStage: Sendable {
    let sources: SourceCache
    /// For watermarks and overlays, which many jobs have in common.
    let assets: SharedSources
    let service: RenderService
    /// The number of renderings that may be under way or queued: a few more than there are threads, so that none is
    /// ever idle.
    let permits: Slots
    let memory: ResultMemory

    /// The progress of loading a job's source; nil unless this worker is loading it.
    func progress(of job: JobContext) -> LoadProgress? {
        sources.progress(of: job.job.request, job.job.cache.ofSources)
    }

    /// Fetches the job's source, and the watermarks and overlays of some of its variants.
    ///
    /// The lifetime of a result follows from the job's own source alone: a watermark that changes is seen in results
    /// rendered after it is no longer fresh.
    /// - Throws: ``Failure`` that names the asset, where it is about one.
    func fetch(_ indices: [Int], of job: JobContext, _ context: WorkContext) async throws -> FetchedSource {
        let (request, use) = (job.job.request, job.job.cache.ofSources)
        let start = Lock(ContinuousClock.now)
        let startingClock = WorkContext(urgency: context.urgency, trace: context.trace) { isOwn in
            start.withLock { $0 = .now }
            return context.start(isOwn)
        }
        do {
            // These first: who waits for them holds no permit, which another may need to fetch one of them.
            let assets = try await assets.load(
                all: Set(indices.flatMap { job.job.variants[$0].assets }), of: request.tenant,
                onlyKept: use == .onlyKept)
            let found = try await sources.fetch(request, use, startingClock)
            let lap = Lap(from: start.withLock { $0 })
            let fetched = FetchedSource(cached: found, assets: assets, lap: lap)
            job.trace?.fetched(fetched, request, lap)
            return fetched
        } catch {
            job.trace?.failedToFetch(request, Lap(from: start.withLock { $0 }), error)
            throw error
        }
    }

    /// Renders some of a job's variants from one decoding.
    ///
    /// The permit of the fetch is released only when there is one of the renderer: slow rendering fills no memory with
    /// sources, and a slow origin holds up no renderer. What a large source takes beside it is released with the bytes.
    /// - Parameter fences: fencing tokens in the order of the variants; 0 for none.
    /// - Throws: ``Failure``, of one of these variants where it is about one; `CancellationError` when the task is
    ///   cancelled.
    func render(
        _ fetched: FetchedSource, _ indices: [Int], of job: JobContext, fences: [Int],
        _ isolation: RenderService.Isolation, _ urgency: Urgency
    ) async throws -> [RenderedResult] {
        try await permits.acquire(urgency)
        defer { permits.release() }
        fetched.cached.permit?.releaseOwn()
        let start = ContinuousClock.now
        let source = fetched.cached.source
        let rendering: Rendering
        do {
            rendering = try await service.render(
                source.body, indices.map { job.job.variants[$0] }, assets: fetched.assets, isolation: isolation)
        } catch {
            job.trace?.add(.render, Lap(from: start), error: error)
            throw error
        }
        job.trace?.rendered(rendering.timings, Lap(from: start))
        var timings = Timings()
        timings[.fetch] = fetched.lap.milliseconds
        timings[.decode] = rendering.timings.decode.milliseconds
        timings[.process] = rendering.timings.process.milliseconds
        timings[.encode] = rendering.timings.encode.milliseconds
        return zip(zip(indices, fences), rendering.images).map { variant, image in
            let (index, fence) = variant
            return RenderedResult(
                key: job.keys[index], image: image, memory: memory.hold(image.body.count),
                facts: ResultFacts(image, of: rendering, from: source), headers: source.headers,
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
    /// The time that it took.
    let lap: Lap

    /// The cache status of the job's own source.
    var origin: ResultOrigin { cached.isFromCache ? .sourceCache : .network }
}

extension CacheUse {
    /// The use of the source cache.
    fileprivate var ofSources: SourceCacheUse {
        guard source else { return .none }
        if onlyIfCached { return .onlyKept }
        return reload ? .reload : .standard
    }
}

extension ResultFacts {
    /// The facts of an output and of the source it was rendered from.
    init(_ image: RenderedImage, of rendering: Rendering, from source: LoadedSource) {
        self.init(
            width: image.size.width, height: image.size.height, format: image.format, bytes: image.body.count,
            sha256: image.sha256, frames: image.frames, blurhash: image.blurhash, dominantColor: image.dominantColor,
            source: SourceFacts(
                status: source.status, etag: source.validators.etag, bytes: source.body.count,
                format: rendering.sourceFormat,
                width: rendering.sourceSize.width, height: rendering.sourceSize.height,
                isTruncated: rendering.sourceIsTruncated),
            isPrivate: source.headers.isPrivate)
    }
}

extension RenderService {
    /// Tells what memory its renderings were given, and how many wait for theirs.
    func measure(_ metrics: Metrics) {
        metrics.reading(
            .gauge, "halcyon_render_memory_bytes",
            help: "Memory that renderings under way were given, as estimated before they began."
        ) { Double(memoryUse.taken) }
        metrics.reading(
            .gauge, "halcyon_render_memory_waiting", help: "Renderings that wait until there is memory for them."
        ) { Double(memoryUse.waiting) }
    }
}
