import Concurrency
import Formats
import HalcyonCoordination
import HalcyonModel
import Telemetry

/// Fetches sources from their origins within the limits of each origin, stores cacheable responses, and decides which
/// stored response may be used.
struct SourceFetcher: Sendable {
    let loader: SourceLoader
    let rateLimiter: OriginRateLimiter
    let stores: SourceCacheStack
    let permits: FetchPermits
    let options: SourceCacheOptions
    let metrics: SourceCacheMetrics
    let origins: OriginMetrics

    /// Loads a source that is not cacheable, because it is drawn, part of the job, or on this machine.
    func fetchUncached(_ request: SourceRequest, _ urgency: WorkPriority) async throws -> CachedSource {
        let permit = try await permits.acquire(urgency)
        let response = try await permits.limitingMemory(of: permit) { try await loader.fetch(request) }
        return CachedSource(source: try response.loaded(), isFromCache: false, fence: nil, permit: permit)
    }

    // MARK: The cache

    /// Looks up a stored response, with a permit for its bytes.
    /// - Parameter archive: The archive whose copy of the source is looked up instead of the source.
    func find(
        _ request: SourceRequest, _ urgency: WorkPriority, copyOf archive: SourceArchive? = nil
    ) async throws -> (SourceCacheStack.SourceLookup, SemaphorePermit) {
        let permit = try await permits.acquire(urgency)
        let fields = loader.fields(of: request)
        let found = await stores.find(archive == nil ? request.tierKey : request.copyKey) {
            $0.entry.response.answers(request: fields) && $0.entry.copy?.identity == archive?.identity
        }
        return (found, permit)
    }

    private func freshness(of found: FoundEntry) -> SourceFreshness {
        found.entry.response.freshness(after: found.residentTime, options.freshness)
    }

    /// Returns a stored response that may be used without contacting the origin. `isOld` is true if it should be
    /// revalidated in the background.
    /// - Parameter version: The version that was known before waiting. A newer one was fetched in the meantime and may
    ///   be used even if it is stale.
    /// - Throws: The stored ``JobError``.
    func hit(
        _ finding: SourceCacheStack.SourceLookup, _ permit: SemaphorePermit, newerThan version: Int = .max
    ) throws(JobError) -> (source: CachedSource, isOld: Bool)? {
        guard let found = finding.entry else { return nil }
        if let failure = found.entry.failure {
            metrics.failed.add(1)
            throw failure.delayed(by: found.residentTime)
        }
        switch freshness(of: found) {
        case .fresh: return (use(found, permit, metrics.fresh), false)
        case .stale(whileRevalidating: true, _): return (use(found, permit, metrics.stale), true)
        case .stale where found.version.map { $0 > version } ?? false: return (use(found, permit, metrics.fresh), false)
        case .stale: return nil
        }
    }

    /// Returns a stored response that may be used if no origin may be contacted.
    /// - Throws: ``JobError`` `not_found` if there is no usable response; `internal` if the shared store could not be
    ///   asked for one.
    func kept(_ finding: SourceCacheStack.SourceLookup, _ permit: SemaphorePermit) throws(JobError) -> CachedSource {
        if finding.entry?.entry.failure == nil, let (source, _) = try hit(finding, permit) { return source }
        if let error = finding.sharedStoreError {
            throw JobError(.internal, "cannot look up the source because Redis is unavailable", cause: error)
        }
        throw JobError(.notFound, "the source is not cached, and the job requires cache.onlyIfCached")
    }

    /// Returns a stale response that may be used because the origin fails (RFC 5861, section 4).
    /// - Throws: The given error if there is no such response.
    func stale(_ found: FoundEntry?, after failure: JobError) throws(JobError) -> CachedSource {
        guard failure.isRetryable, !failure.forbidsStaleUse, let found, found.entry.failure == nil,
            case .stale(_, onError: true) = freshness(of: found)
        else { throw failure }
        return use(found, nil, metrics.stale)
    }

    private func use(_ found: FoundEntry, _ permit: SemaphorePermit?, _ counter: Counter) -> CachedSource {
        counter.add(1)
        var source = CachedSource(
            found.entry, completedAt: Timestamp.now.seconds - found.residentTime, found.fence, permit)
        source.loadedFor = found.loadedFor
        return source
    }

    // MARK: Origins

    /// Fetches a source or revalidates the stored response, and stores the result if it is cacheable.
    /// - Parameter known: The stored response.
    /// - Returns: The source, and true if other workers can find it in the cache.
    func fetch(
        _ request: SourceRequest, _ known: FoundEntry?, _ use: SourceCacheUse, _ terms: StoreOptions,
        _ context: WorkContext
    ) async throws -> (source: CachedSource, isShared: Bool) {
        let fields = loader.fields(of: request)
        let fence = terms.fence > 0 ? terms.fence : nil
        do {
            let reply = try await ask(request, ifNoneMatch: known?.entry.response.validators, context)
            var isShared = false
            switch reply.response {
            case .loaded(let loaded):
                metrics.loaded.add(1)
                metrics.fetchedBytes.add(loaded.body.count)
                let response = StoredResponse(
                    status: loaded.status ?? 200, headers: loaded.headers, request: fields,
                    requestedAt: reply.requestedAt, receivedAt: loaded.completedAt)
                if use != .none {
                    let entry = SourceEntry(response: response, body: loaded.body)
                    isShared = await store(response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                }
                return (CachedSource(source: loaded, isFromCache: false, fence: fence, permit: reply.permit), isShared)
            case .notModified(let confirmation):
                guard let known else {
                    throw JobError(
                        .internal,
                        "\(request.source.shownText): unexpected 304 Not Modified for an unconditional request")
                }
                metrics.confirmed.add(1)
                var entry = known.entry
                entry.response = entry.response.confirmed(
                    by: StoredResponse(
                        status: 304, headers: confirmation.headers, request: fields, requestedAt: reply.requestedAt,
                        receivedAt: confirmation.completedAt))
                isShared = await store(entry.response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                return (CachedSource(entry, completedAt: confirmation.completedAt, fence, reply.permit), isShared)
            }
        } catch let failure as JobError {
            // A transient error does not replace a stored response that may be used later.
            let isFinal = !failure.isRetryable || (known == nil && use == .standard)
            if isFinal, known?.entry.copy != nil { await stores.remove(request.copyKey) }
            throw isFinal && use != .none ? await store(failure, of: request, terms) : failure
        }
    }

    /// The response of an origin.
    private struct OriginReply {
        let response: FetchResponse
        /// The time when the request was sent, in seconds since 1970. Waiting for limits and permits ends before it.
        let requestedAt: Double
        let permit: SemaphorePermit
    }

    /// Contacts the origin as soon as its limits allow another request and there is a permit.
    private func ask(
        _ request: SourceRequest, ifNoneMatch known: Validators?, _ context: WorkContext
    ) async throws -> OriginReply {
        guard let origin = loader.origin(of: request.source) else {
            let permit = try await permits.acquire(context.urgency)
            return try await fetch(request, ifNoneMatch: known, permit, context)
        }
        let (pass, permit) = try await origins.waiting(for: origin) {
            try await admit(request, to: origin, context.urgency)
        }
        do {
            let reply = try await fetch(request, ifNoneMatch: known, permit, context)
            origins.count(.answered)
            await rateLimiter.release(pass, .answered)
            return reply
        } catch {
            let outcome = (error as? JobError).map { OriginOutcome($0) } ?? .unknown
            origins.count(outcome)
            await rateLimiter.release(pass, outcome)
            throw error
        }
    }

    /// Waits until the limits of the origin allow another request and there is a permit, and holds neither while it
    /// waits for the other. Slow origins therefore take no permits from others, and jobs that wait for a permit do not
    /// keep those of other tenants from the origin.
    private func admit(
        _ request: SourceRequest, to origin: Origin, _ urgency: WorkPriority
    ) async throws -> (OriginRateLimiter.OriginPermit, SemaphorePermit) {
        var held = rateLimiter.hasWaiters(origin) ? nil : try await permits.acquire(urgency)
        while true {
            if let permit = held {
                if let pass = try await rateLimiter.tryAcquire(origin, request.tierKey) { return (pass, permit) }
                permits.giveUp(permit, urgency)
            }
            let pass = try await rateLimiter.acquire(origin, request.tierKey, urgency)
            if let permit = permits.tryAcquire(urgency) { return (pass, permit) }
            await rateLimiter.release(pass, .notStarted)
            held = try await permits.acquire(urgency)
        }
    }

    private func fetch(
        _ request: SourceRequest, ifNoneMatch known: Validators?, _ permit: SemaphorePermit, _ context: WorkContext
    ) async throws -> OriginReply {
        try context.markStarted()
        let requestedAt = Timestamp.now.seconds
        let response = try await permits.limitingMemory(of: permit) {
            try await loader.fetch(request, ifNoneMatch: known)
        }
        return OriginReply(response: response, requestedAt: requestedAt, permit: permit)
    }

    /// Stores a response; nil removes the stored one.
    private func store(_ entry: SourceEntry?, of request: SourceRequest, _ terms: StoreOptions) async -> Bool {
        guard let entry else {
            await stores.remove(request.tierKey)
            return false
        }
        return await stores.store(entry, as: entry.copy == nil ? request.tierKey : request.copyKey, terms)
    }

    /// Stores an error. No further attempts are made until it expires.
    /// - Returns: The error as stored.
    private func store(_ failure: JobError, of request: SourceRequest, _ terms: StoreOptions) async -> JobError {
        let seconds = options.failures.seconds(for: failure)
        guard seconds > 0 else { return failure }
        let failure = failure.isRetryable ? failure.retryAfter(atLeast: seconds) : failure
        let now = Timestamp.now.seconds
        let response = StoredResponse(status: 0, headers: [:], request: [:], requestedAt: now, receivedAt: now)
        let entry = SourceEntry(response: response, body: [], failure: failure)
        await stores.store(entry, as: request.tierKey, for: seconds, terms)
        return failure
    }
}
