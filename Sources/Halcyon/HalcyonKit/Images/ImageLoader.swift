import Foundation

/// Loads images for views and servers: from memory, or else from the cluster with as few requests as possible.
///
/// - A fresh image in memory needs no request, and one that has become stale is revalidated (304).
/// - An image that the cluster has stored needs one request.
/// - Concurrent loads of the same image share one request. It is cancelled when the last of them is cancelled, and with
///   it the job, unless somebody else in the cluster wants the image too.
/// - ``prefetch(_:)`` loads images ahead, in a lane of lower priority. A load of such an image does not wait for that
///   lane.
/// - ``stages(_:)`` delivers a placeholder and smaller versions before the image, and ``ImageSlot`` does the same for
///   views that are reused.
///
/// An app usually has one loader. Prefetching ends when the loader is released.
public final class ImageLoader: Sendable {
    typealias Key = ImageRequest.Key

    /// A load that all who want the same image share.
    private struct SharedLoad {
        let request: ImageRequest
        var waiters: [UInt64: CheckedContinuation<LoadedImage, any Error>] = [:]
        /// True if the image is to be loaded even if nobody waits for it.
        var isPrefetched: Bool
        /// True as long as nobody has waited for the image.
        var isBackground: Bool
        /// The running requests by their ids: one, or two after a load has joined a prefetch.
        var attempts: [UInt64: Task<Void, Never>] = [:]

        /// True if somebody wants the image.
        var isWanted: Bool { isPrefetched || !waiters.isEmpty }
    }

    private struct State {
        var images: LRUCache<Key, CachedImage>
        var placeholders: LRUCache<ImageJob.Source, ImageRequest.Placeholder>
        var loads: [Key: SharedLoad] = [:]
        /// The prefetches that have not started, the oldest first.
        var queue: [ImageRequest] = []
        /// The requests that nobody wants any more.
        var unwanted: [Task<Void, Never>] = []
        private var lastID: UInt64 = 0

        init(_ configuration: Configuration) {
            images = LRUCache(costLimit: configuration.memoryBytes, countLimit: configuration.memoryCount)
            placeholders = LRUCache(costLimit: .max, countLimit: configuration.maximumPlaceholders)
        }

        mutating func newID() -> UInt64 {
            lastID += 1
            return lastID
        }
    }

    private let client: HalcyonClient
    private let configuration: Configuration
    private let queue: DispatchQueue
    private let state: Locked<State>

    /// Creates a loader with an empty memory.
    /// - Parameters:
    ///   - client: The client that loads the images.
    ///   - configuration: The limits.
    ///   - queue: The serial queue on which completion handlers are called, and stages of an ``ImageSlot`` delivered.
    public init(
        _ client: HalcyonClient, configuration: Configuration = Configuration(),
        completionQueue queue: DispatchQueue = .main
    ) {
        (self.client, self.configuration, self.queue) = (client, configuration, queue)
        state = Locked(State(configuration))
    }

    deinit {
        // Whoever waits for an image holds the loader, so these are prefetches.
        for shared in state.withLock({ $0.loads.values }) { shared.attempts.values.forEach { $0.cancel() } }
    }

    /// Limits of a loader.
    public struct Configuration: Sendable {
        /// The maximum size of all files in memory, in bytes. Default: 64 MiB.
        public var memoryBytes = 64 << 20
        /// The maximum number of images in memory. Default: 1000.
        public var memoryCount = 1000
        /// The maximum size of a file that is kept in memory, in bytes. Default: 8 MiB.
        public var maximumEntryBytes = 8 << 20
        /// The number of prefetches that run at the same time. Default: 4.
        public var maximumConcurrentPrefetches = 4
        /// The number of prefetches that may wait for their turn. Beyond that the oldest are dropped. Default: 256.
        public var maximumQueuedPrefetches = 256
        /// The lane of prefetched images whose job has no priority. Default: `low`.
        public var prefetchPriority = ImageJob.Priority.low
        /// The maximum number of ``ImageRequest/previews`` of a request. Default: 4.
        public var maximumPreviews = 4
        /// The longer side of a decoded BlurHash in pixels, 1 to 1024. Default: 32.
        public var placeholderSide = 32
        /// The number of computed placeholders that are remembered. Default: 1000.
        public var maximumPlaceholders = 1000

        /// Creates a configuration with the defaults.
        public init() {}
    }

    // MARK: Images

    /// Loads an image. When the task is cancelled, this ends at once; the request ends with the last load that waits
    /// for it.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func load(_ request: ImageRequest) async throws -> LoadedImage {
        if let image = cachedImage(for: request) { return image }
        let (key, id) = (request.key, state.withLock { $0.newID() })
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                join(request, id, continuation)
                // The handler below may have found nothing to cancel.
                if Task.isCancelled { leave(key, id) }
            }
        } onCancel: {
            leave(key, id)
        }
    }

    /// Loads an image, without `await`.
    /// - Parameters:
    ///   - request: The image to load.
    ///   - completion: Called exactly once on the completion queue: with the image, with a `HalcyonError`, or with
    ///     `CancellationError` as soon as the load is cancelled.
    /// - Returns: A task that cancels the load. The load continues if the task is released.
    @discardableResult
    public func load(
        _ request: ImageRequest, completion: @escaping @Sendable (Result<LoadedImage, any Error>) -> Void
    ) -> ImageTask {
        let isCancelled = Locked(false)
        let task = Task { [queue] in
            let result: Result<LoadedImage, any Error>
            do { result = .success(try await load(request)) } catch { result = .failure(error) }
            // After `cancel()` on the completion queue, the handler gets no image any more.
            queue.async { completion(isCancelled.withLock { $0 } ? .failure(CancellationError()) : result) }
        }
        return ImageTask(task, isCancelled)
    }

    /// The image of a request, if memory has it and it may be used without a request. A view can show it at once.
    public func cachedImage(for request: ImageRequest) -> LoadedImage? {
        guard request.cacheUse == .fresh else { return nil }
        return state.withLock { $0.images.value(for: request.key)?.fresh(at: .now) }
    }

    /// Removes an image from memory.
    public func removeImage(for request: ImageRequest) { state.withLock { $0.images.remove(request.key) } }

    /// Removes the images that were not used for the longest time, for example when the system is short of memory.
    /// - Parameter bytes: The size of the files that may remain; 0 for none.
    public func trimMemory(toBytes bytes: Int = 0) { state.withLock { $0.images.trim(toCost: bytes) } }

    /// The size of the files in memory, in bytes.
    public var memoryBytes: Int { state.withLock { $0.images.cost } }

    // MARK: Prefetching

    /// Loads images into memory that will probably be wanted, in this order and after those of earlier calls. Errors
    /// are ignored; a load of the image reports them.
    public func prefetch(_ requests: [ImageRequest]) {
        update { state in
            for request in requests {
                let key = request.key
                if request.cacheUse == .fresh, state.images.value(for: key)?.fresh(at: .now) != nil { continue }
                if state.loads[key] != nil {
                    state.loads[key]?.isPrefetched = true
                } else if !state.queue.contains(where: { $0.key == key }) {
                    state.queue.append(request)
                }
            }
            startPrefetches(&state)
            let excess = state.queue.count - max(0, configuration.maximumQueuedPrefetches)
            if excess > 0 { state.queue.removeFirst(excess) }
        }
    }

    /// Ends the prefetching of images, for example of those that were scrolled past. Loads are not affected.
    public func stopPrefetching(_ requests: [ImageRequest]) { stopPrefetching(keys: Set(requests.map(\.key))) }

    /// Ends all prefetching. Loads are not affected.
    public func stopPrefetching() { stopPrefetching(keys: nil) }

    private func stopPrefetching(keys: Set<Key>?) {
        update { state in
            state.queue.removeAll { keys?.contains($0.key) ?? true }
            for key in keys ?? Set(state.loads.keys) where state.loads[key] != nil {
                state.loads[key]?.isPrefetched = false
                endIfUnwanted(key, &state)
            }
        }
    }

    // MARK: Stages

    /// Delivers an image step by step: its placeholder, then its previews, then the image itself. A step that is
    /// overtaken by a later one is left out, so that the order never reverses. An image in memory is the only step.
    ///
    /// Failures of placeholders and previews are ignored. The load ends with the task that reads the stages, or when
    /// the stages are released.
    /// - Returns: The stages. They throw `HalcyonError` or `CancellationError`.
    public func stages(_ request: ImageRequest) -> AsyncThrowingStream<ImageStage, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await deliver(request) { continuation.yield($0) }
                    continuation.finish()
                } catch { continuation.finish(throwing: error) }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// The queue on which an ``ImageSlot`` delivers.
    var deliveryQueue: DispatchQueue { queue }

    private func deliver(_ request: ImageRequest, _ yield: (ImageStage) -> Void) async throws {
        guard request.previews.count <= configuration.maximumPreviews else {
            throw HalcyonError.invalidRequest(
                "\(request.previews.count) previews are more than maximumPreviews, \(configuration.maximumPreviews)")
        }
        if let image = cachedImage(for: request) { return yield(.final(image)) }
        let placeholder = knownPlaceholder(of: request)
        if let placeholder, let bitmap = try bitmap(of: placeholder, for: request) { yield(.placeholder(bitmap)) }
        try await withThrowingTaskGroup(of: (rank: Int, stage: ImageStage)?.self) { group in
            group.addTask { (.max, .final(try await self.load(request))) }
            for (index, output) in request.previews.enumerated() {
                // A missing preview is no reason to fail: the image itself follows, or reports the error.
                group.addTask { (try? await self.load(request.preview(output))).map { (index + 1, .preview($0)) } }
            }
            if placeholder == .computed {
                group.addTask {
                    // The same holds for the placeholder.
                    (try? await self.computedPlaceholder(of: request)).map { (0, .placeholder($0)) }
                }
            }
            var delivered = -1
            while let next = try await group.next() {
                guard let next, next.rank > delivered else { continue }
                delivered = next.rank
                yield(next.stage)
                if delivered == .max { group.cancelAll() }
            }
        }
    }

    /// The placeholder of a request, which is known if it was computed before.
    private func knownPlaceholder(of request: ImageRequest) -> ImageRequest.Placeholder? {
        guard request.placeholder == .computed else { return request.placeholder }
        return state.withLock { $0.placeholders.value(for: request.job.source) } ?? .computed
    }

    private func bitmap(
        of placeholder: ImageRequest.Placeholder, for request: ImageRequest
    ) throws(HalcyonError) -> Bitmap? {
        switch placeholder {
        case .computed: return nil
        case .bitmap(let bitmap): return bitmap
        case .blurHash(let hash):
            let (width, height) = request.placeholderSize(side: configuration.placeholderSide, of: hash)
            return try hash.bitmap(width: width, height: height)
        }
    }

    /// Has the cluster compute the BlurHash of a small version of the image.
    private func computedPlaceholder(of request: ImageRequest) async throws -> Bitmap? {
        var job = request.preview(ImageJob.Output(width: 64, height: 64, contentMode: .scaleAspectFit)).job
        job.output.blurhash = true
        guard let placeholder = try await client.end(of: job).variants.first.flatMap(ImageRequest.Placeholder.init)
        else { return nil }
        state.withLock { $0.placeholders.insert(placeholder, for: job.source, cost: 0) }
        return try bitmap(of: placeholder, for: request)
    }

    // MARK: Shared loads

    /// Changes the state, and cancels the requests that nobody wants any more: not before the lock is free again, because
    /// cancelling may call anything.
    private func update<Result>(_ change: (inout State) -> Result) -> Result {
        let (result, unwanted) = state.withLock { state in
            let result = change(&state)
            defer { state.unwanted = [] }
            return (result, state.unwanted)
        }
        unwanted.forEach { $0.cancel() }
        return result
    }

    /// Adds a waiter to the load of its image, which is started if necessary.
    private func join(_ request: ImageRequest, _ id: UInt64, _ waiter: CheckedContinuation<LoadedImage, any Error>) {
        let key = request.key
        let image: LoadedImage? = update { state in
            // Another load may have ended since memory was asked.
            if request.cacheUse == .fresh, let image = state.images.value(for: key)?.fresh(at: .now) { return image }
            let isQueued = state.queue.contains { $0.key == key }
            if isQueued { state.queue.removeAll { $0.key == key } }
            var shared = state.loads[key] ?? SharedLoad(request: request, isPrefetched: isQueued, isBackground: false)
            let isPromoted = shared.isBackground && request.job.priority != lane(of: shared)
            shared.waiters[id] = waiter
            shared.isBackground = false
            state.loads[key] = shared
            if shared.attempts.isEmpty || isPromoted { start(key, request, &state) }
            // The place of a prefetch that somebody waits for now is free.
            startPrefetches(&state)
            return nil
        }
        if let image { waiter.resume(returning: image) }
    }

    /// Removes a waiter, and ends the load if nobody wants its image any more.
    private func leave(_ key: Key, _ id: UInt64) {
        let waiter = update { state in
            let waiter = state.loads[key]?.waiters.removeValue(forKey: id)
            if waiter != nil { endIfUnwanted(key, &state) }
            return waiter
        }
        waiter?.resume(throwing: CancellationError())
    }

    private func endIfUnwanted(_ key: Key, _ state: inout State) {
        guard let shared = state.loads[key], !shared.isWanted else { return }
        state.loads[key] = nil
        state.unwanted += shared.attempts.values
        startPrefetches(&state)
    }

    private func startPrefetches(_ state: inout State) {
        var running = state.loads.values.count(where: \.isBackground)
        while running < max(1, configuration.maximumConcurrentPrefetches), !state.queue.isEmpty {
            let request = state.queue.removeFirst()
            state.loads[request.key] = SharedLoad(request: request, isPrefetched: true, isBackground: true)
            start(request.key, request, &state)
            running += 1
        }
    }

    /// The lane of a prefetch.
    private func lane(of shared: SharedLoad) -> ImageJob.Priority {
        shared.request.job.priority ?? configuration.prefetchPriority
    }

    /// Sends a request for the image of a shared load.
    private func start(_ key: Key, _ request: ImageRequest, _ state: inout State) {
        guard let shared = state.loads[key] else { return }
        var job = request.job
        if shared.isBackground { job.priority = lane(of: shared) }
        // The id belongs to the first request.
        if !shared.attempts.isEmpty { job.id = nil }
        let known = request.cacheUse == .reload ? nil : state.images.value(for: key)
        let id = state.newID()
        let priority = shared.isBackground ? TaskPriority.utility : nil
        state.loads[key]?.attempts[id] = Task(priority: priority) { [weak self, client, job] in
            let result: Result<CachedImage, any Error>
            do { result = .success(try await Self.fetch(job, known, client)) } catch { result = .failure(error) }
            self?.finish(key, id, result)
        }
    }

    /// Ends the load of an image with the result of a request. The failure of a prefetch counts only if no load has
    /// sent a request of its own.
    private func finish(_ key: Key, _ id: UInt64, _ result: Result<CachedImage, any Error>) {
        let waiters: [CheckedContinuation<LoadedImage, any Error>] = update { state in
            guard var shared = state.loads[key], shared.attempts.removeValue(forKey: id) != nil else { return [] }
            if case .failure = result, !shared.attempts.isEmpty {
                state.loads[key] = shared
                return []
            }
            state.loads[key] = nil
            state.unwanted += shared.attempts.values
            if case .success(let cached) = result { store(cached, key, &state) }
            startPrefetches(&state)
            return Array(shared.waiters.values)
        }
        for waiter in waiters { waiter.resume(with: result.map(\.image)) }
    }

    private func store(_ cached: CachedImage, _ key: Key, _ state: inout State) {
        let bytes = cached.image.data.count
        // An image that is neither fresh nor can be revalidated is of no use.
        let isUseful = cached.staleAt > .now || cached.entityTag != nil
        if isUseful, bytes <= configuration.maximumEntryBytes {
            state.images.insert(cached, for: key, cost: bytes)
        } else {
            state.images.remove(key)
        }
    }

    /// Loads an image from the gateway.
    /// - Parameter known: The image in memory.
    private static func fetch(
        _ job: ImageJob, _ known: CachedImage?, _ client: HalcyonClient
    ) async throws -> CachedImage {
        // Before the request, so that an image is never used for too long.
        let start = ContinuousClock.now
        guard let query = client.renderingQuery(of: job) else {
            let response = try await client.image(for: job)
            return CachedImage(response, at: start)
        }
        let rendering = try await client.rendering(query, entityTag: known?.entityTag)
        let lifetime = rendering.reuse.mayStore ? rendering.reuse.lifetime ?? .zero : .zero
        if let image = rendering.image {
            let entityTag = rendering.reuse.mayStore ? rendering.entityTag : nil
            return CachedImage(image: image, entityTag: entityTag, staleAt: start + lifetime)
        }
        guard var cached = known else { throw HalcyonError.invalidResponse("304 to a request without a condition") }
        cached.image.cacheStatus = .revalidated
        cached.staleAt = start + lifetime
        return cached
    }
}

extension CachedImage {
    /// The image of a job that was submitted. The gateway is asked for it again when it has expired.
    fileprivate init(_ response: ImageResponse, at start: ContinuousClock.Instant) {
        let variant = response.variant
        let failure = response.ready.fallback?.code
        let lifetime = failure == nil ? max(0, variant.expiresAt?.timeIntervalSinceNow ?? 0) : 0
        self.init(
            image: LoadedImage(
                data: response.data, mediaType: variant.format.mediaType,
                size: LoadedImage.Size(width: variant.width, height: variant.height), cacheStatus: .network,
                failure: failure),
            staleAt: start + .seconds(min(lifetime, 365 * 86_400)))
    }
}
