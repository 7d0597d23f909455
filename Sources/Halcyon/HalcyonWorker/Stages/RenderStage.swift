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
    /// The archive of large sources; nil without one.
    var archive: ArchiveStage?

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
            var fetched = FetchedSource(
                cached: try await source(of: indices, of: job, use, startingClock), assets: assets,
                lap: Interval(from: start.withLock { $0 }))
            if let archive, let copied = fetched.cached.original {
                fetched.beyondCopy = Set(indices.filter { !archive.holds(job.job.variants[$0], of: copied.size) })
                if !fetched.beyondCopy.isEmpty {
                    // A job that waits for a permit holds none.
                    fetched.cached.permit = nil
                    fetched.original = try await sources.fetch(
                        request, use == .reload ? .standard : use,
                        WorkContext(urgency: context.urgency, trace: context.trace))
                }
            }
            let lap = Interval(from: start.withLock { $0 })
            fetched.lap = lap
            job.record(Timings(fetch: lap))
            job.trace?.fetched(fetched, request, lap)
            return fetched
        } catch {
            let lap = Interval(from: start.withLock { $0 })
            job.record(Timings(fetch: lap))
            job.trace?.failedToFetch(request, lap, error)
            throw error
        }
    }

    /// Returns the source, or its archive copy if one of the variants may be rendered from it. A prefetch makes the
    /// copy.
    private func source(
        of indices: [Int], of job: JobContext, _ use: SourceCacheUse, _ context: WorkContext
    ) async throws -> CachedSource {
        guard let archive, indices.isEmpty || indices.contains(where: { job.job.variants[$0].acceptsCopy }) else {
            return try await sources.fetch(job.job.request, use, context)
        }
        return try await sources.fetch(job.job.request, use, copyFrom: archive.sources, context)
    }

    /// Renders some of a job's variants from one decoding, or two if some need the original of an archive copy.
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
        fetched.original?.permit?.releaseOwn()
        let start = ContinuousClock.now
        var rendered: [Int: (image: RenderedImage, of: RenderResult, from: CachedSource)] = [:]
        var spent = RenderResult.Timings()
        do {
            for (source, places) in fetched.sources(for: indices) {
                let rendering = try await render(places.map { indices[$0] }, from: source, job, fetched, isolation) {
                    places[$0]
                }
                spent.decode += rendering.timings.decode
                spent.process += rendering.timings.process
                spent.encode += rendering.timings.encode
                for (place, image) in zip(places, rendering.images) { rendered[place] = (image, rendering, source) }
            }
        } catch {
            job.trace?.add(.render, Interval(from: start), error: error)
            throw error
        }
        job.trace?.rendered(spent, Interval(from: start))
        var timings = Timings(fetch: fetched.lap)
        timings[.decode] = spent.decode.milliseconds
        timings[.process] = spent.process.milliseconds
        timings[.encode] = spent.encode.milliseconds
        job.record(timings)
        return zip(indices, fences).enumerated().compactMap { place, variant in
            let (index, fence) = variant
            guard let (image, rendering, found) = rendered[place] else { return nil }
            let source = found.source
            return RenderedResult(
                key: job.keys[index], image: image, memory: memory.hold(image.body.count),
                facts: ResultMetadata(image, of: rendering, from: found), headers: source.headers,
                completedAt: source.completedAt, origin: found.isFromCache ? .sourceCache : .network,
                timings: timings, fence: fence, since: min(fence, found.fence ?? .max), maker: job.trace?.context)
        }
    }

    /// Renders variants from the source or its copy.
    /// - Parameter place: Returns the place of a variant in the job's list, which errors name.
    private func render(
        _ indices: [Int], from source: CachedSource, _ job: JobContext, _ fetched: FetchedSource,
        _ isolation: RenderService.Isolation, _ place: (Int) -> Int
    ) async throws -> RenderResult {
        archive?.count(indices.count, isCopy: source.original != nil)
        do {
            return try await service.render(
                source.source.body, indices.map { job.job.variants[$0] }, assets: fetched.assets, isolation: isolation,
                original: source.original)
        } catch let error as JobError {
            throw error.variant.map { error.forVariant(place($0)) } ?? error
        }
    }
}

/// The source of a rendering.
struct FetchedSource: Sendable {
    /// The job's own source, or its archive copy.
    var cached: CachedSource
    /// The bytes of watermarks and overlays.
    let assets: [Source: [UInt8]]
    /// The time interval of the fetch.
    var lap: Interval
    /// The source of an archive copy, for variants that the copy cannot serve.
    var original: CachedSource?
    /// The indices of these variants.
    var beyondCopy: Set<Int> = []

    /// The cache status of the job's own source.
    var origin: CacheStatus { cached.isFromCache ? .sourceCache : .network }

    /// Returns the sources to render from, each with the places of its variants in `indices`.
    func sources(for indices: [Int]) -> [(CachedSource, [Int])] {
        guard let original else { return [(cached, Array(indices.indices))] }
        let others = indices.indices.filter { beyondCopy.contains(indices[$0]) }
        let copied = indices.indices.filter { !beyondCopy.contains(indices[$0]) }
        return [(cached, copied), (original, others)].filter { !$0.1.isEmpty }
    }
}

/// The archive of large sources, with the renderer that makes their copies.
struct ArchiveStage: Sendable {
    let sources: SourceArchive
    private let options: ArchiveOptions
    private let extensions: Extensions
    private let fromCopy, fromOriginal: Counter

    /// - Parameter permits: The permits of renderings.
    init(
        _ options: ArchiveOptions, _ service: RenderService, _ permits: PrioritySemaphore, _ extensions: Extensions,
        log: Log, metrics: Metrics
    ) {
        self.options = options
        self.extensions = extensions
        func counter(_ source: String) -> Counter {
            metrics.counter(
                "halcyon_archive_renderings_total",
                help: "Results rendered while the archive is enabled, by what they were rendered from.",
                labels: ["from": source])
        }
        (fromCopy, fromOriginal) = (counter("copy"), counter("original"))
        sources = SourceArchive(identity: options.identity, log: log, metrics: metrics) {
            try await service.mayHaveCopy($0, options)
        } make: { source, crashes, urgency in
            try await permits.acquire(urgency)
            defer { permits.release() }
            let isolation = crashes.map { RenderService.Isolation.trial(children: max(1, $0 - 1)) }
            return try await service.archive(source, options, isolation: isolation ?? .whereNeeded)
        }
    }

    /// Returns true if a variant of a source of this size is rendered from the copy.
    func holds(_ variant: Variant, of original: PixelSize) -> Bool { options.holds(variant, of: original, extensions) }

    func count(_ results: Int, isCopy: Bool) { (isCopy ? fromCopy : fromOriginal).add(results) }
}

extension CachePolicy {
    /// The use of the source cache.
    fileprivate var ofSources: SourceCacheUse {
        guard source else { return .none }
        if onlyIfCached { return .onlyKept }
        return reload ? .reload : .standard
    }
}

extension Timings {
    /// Creates the timings of a fetch.
    init(fetch lap: Interval) {
        self.init()
        self[.fetch] = lap.milliseconds
    }
}

extension ResultMetadata {
    /// Creates the metadata of a rendered image and its source.
    init(_ image: RenderedImage, of rendering: RenderResult, from found: CachedSource) {
        let source = found.source
        self.init(
            width: image.size.width, height: image.size.height, format: image.format, bytes: image.body.count,
            sha256: image.sha256, frames: image.frames, blurhash: image.blurhash, dominantColor: image.dominantColor,
            trim: image.trim, palette: image.palette, thumbhash: image.thumbhash, phash: image.phash,
            faces: image.faces,
            info: image.format == .json ? image.body : nil,
            encoding: image.encoding,
            source: SourceMetadata(
                status: source.status, etag: source.validators.etag,
                bytes: found.original?.bytes ?? source.body.count,
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

extension DetectorPool {
    /// Creates the pool of a detector, which logs its problems and counts its detections.
    /// - Returns: The pool, or nil if no detector is configured.
    static func make(_ options: DetectorOptions, log: Log, metrics: Metrics) -> DetectorPool? {
        guard !options.command.isEmpty else { return nil }
        func counter(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_detections_total",
                help: "Attempts to detect things in a picture, by outcome: found, nothing, or failed.",
                labels: ["outcome": outcome])
        }
        let (found, nothing, failed) = (counter("found"), counter("nothing"), counter("failed"))
        let duration = metrics.histogram(
            "halcyon_detection_duration_seconds", help: "Time that the detector takes for a picture.")
        return DetectorPool(options) { event in
            if case .completed(let boxes, let time) = event {
                (boxes > 0 ? found : nothing).add()
                duration.observe(time)
                return
            }
            if case .failed = event { failed.add() }
            log.warning("the detector reported a problem", ["said": event.description])
        }
    }
}
