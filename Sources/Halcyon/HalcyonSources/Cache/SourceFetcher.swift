import Formats
import HalcyonCoordination
import HalcyonModel
import Telemetry
import Threads

/// Fetches sources from their origins within the limits of each origin, stores responses that may be stored, and says
/// which stored response may be used.
struct SourceFetcher: Sendable {
    let loader: SourceLoader
    let gate: OriginGate
    let stores: SourceStores
    let permits: FetchPermits
    let options: SourceTierOptions
    let metrics: SourceTierMetrics
    let origins: OriginMetrics

    /// Fetches a source that is not cached, because it is drawn, came with the job or lies on this machine.
    func fetchUncached(_ request: SourceRequest, _ urgency: Urgency) async throws -> CachedSource {
        let permit = try await permits.acquire(urgency)
        let response = try await permits.limitingMemory(of: permit) { try await loader.fetch(request) }
        return CachedSource(source: try response.loaded(), isFromCache: false, fence: nil, permit: permit)
    }

    // MARK: The cache

    /// Looks for a stored response, with a permit for its bytes.
    func find(_ request: SourceRequest, _ urgency: Urgency) async throws -> (SourceStores.Finding, Place) {
        let permit = try await permits.acquire(urgency)
        let fields = loader.fields(of: request)
        return (await stores.find(request.tierKey) { $0.entry.response.answers(request: fields) }, permit)
    }

    private func freshness(of found: FoundEntry) -> SourceFreshness {
        found.entry.response.freshness(after: found.residentTime, options.freshness)
    }

    /// A stored response that may be used without asking the origin; `isOld` if it should be revalidated in the
    /// background.
    /// - Parameter version: a newer one was fetched while somebody waited for it, who may use it whether or not it is
    ///   fresh.
    /// - Throws: the ``Failure`` that is stored.
    func hit(
        _ finding: SourceStores.Finding, _ permit: Place, newerThan version: Int = .max
    ) throws(Failure) -> (source: CachedSource, isOld: Bool)? {
        guard let found = finding.entry else { return nil }
        if let failure = found.entry.failure {
            metrics.failed.add(1)
            throw failure.later(by: found.residentTime)
        }
        switch freshness(of: found) {
        case .fresh: return (use(found, permit, metrics.fresh), false)
        case .stale(whileRevalidating: true, _): return (use(found, permit, metrics.stale), true)
        case .stale where found.version.map { $0 > version } ?? false: return (use(found, permit, metrics.fresh), false)
        case .stale: return nil
        }
    }

    /// A stored response that may be used if no origin is to be asked, now or later.
    /// - Throws: ``Failure`` `not_found` if there is none.
    func kept(_ finding: SourceStores.Finding, _ permit: Place) throws(Failure) -> CachedSource {
        if finding.entry?.entry.failure == nil, let (source, _) = try hit(finding, permit) { return source }
        throw Failure(.notFound, "the source is not in the cache, and the job says cache.onlyIfCached")
    }

    /// A stale response that may be used because the origin fails (RFC 5861, section 4).
    /// - Throws: the failure if there is none.
    func stale(_ found: FoundEntry?, after failure: Failure) throws(Failure) -> CachedSource {
        guard failure.isRetryable, !failure.forbidsStaleUse, let found, found.entry.failure == nil,
            case .stale(_, onError: true) = freshness(of: found)
        else { throw failure }
        return use(found, nil, metrics.stale)
    }

    private func use(_ found: FoundEntry, _ permit: Place?, _ counter: Counter) -> CachedSource {
        counter.add(1)
        var source = CachedSource(
            found.entry, completedAt: Timestamp.now.seconds - found.residentTime, found.version, permit)
        source.loadedFor = found.loadedFor
        return source
    }

    // MARK: Origins

    /// Fetches a source, or has its origin confirm the stored response, and stores what may be stored.
    /// - Parameter known: the stored response.
    /// - Returns: the source, and whether other workers find it in the cache.
    func fetch(
        _ request: SourceRequest, _ known: FoundEntry?, _ use: SourceCacheUse, _ terms: KeepingTerms,
        _ context: WorkContext
    ) async throws -> (source: CachedSource, isShared: Bool) {
        let fields = loader.fields(of: request)
        let requestedAt = Timestamp.now.seconds
        let fence = terms.fence > 0 ? terms.fence : nil
        do {
            let (response, permit) = try await ask(request, ifNoneMatch: known?.entry.response.validators, context)
            var isShared = false
            switch response {
            case .loaded(let loaded):
                metrics.loaded.add(1)
                metrics.fetchedBytes.add(loaded.body.count)
                let response = StoredResponse(
                    status: loaded.status ?? 200, headers: loaded.headers, request: fields, requestedAt: requestedAt,
                    receivedAt: loaded.completedAt)
                if use != .none {
                    let entry = SourceEntry(response: response, body: loaded.body)
                    isShared = await store(response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                }
                return (CachedSource(source: loaded, isFromCache: false, fence: fence, permit: permit), isShared)
            case .notModified(let confirmation):
                guard let known else {
                    throw Failure(.internal, "\(request.source.shownText): unchanged, and nobody had asked")
                }
                metrics.confirmed.add(1)
                var entry = known.entry
                entry.response = entry.response.confirmed(
                    by: StoredResponse(
                        status: 304, headers: confirmation.headers, request: fields, requestedAt: requestedAt,
                        receivedAt: confirmation.completedAt))
                isShared = await store(entry.response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                return (CachedSource(entry, completedAt: confirmation.completedAt, fence, permit), isShared)
            }
        } catch let failure as Failure {
            // A passing failure removes nothing that may be of use afterwards.
            let isFinal = !failure.isRetryable || (known == nil && use == .standard)
            throw isFinal && use != .none ? await store(failure, of: request, terms) : failure
        }
    }

    /// Asks the origin when its limits let one more request begin. Who waits for that holds no permit.
    private func ask(
        _ request: SourceRequest, ifNoneMatch known: Validators?, _ context: WorkContext
    ) async throws -> (FetchResponse, Place) {
        guard let origin = loader.origin(of: request.source) else {
            return try await fetch(request, ifNoneMatch: known, context)
        }
        let pass = try await origins.waiting(for: origin) {
            try await gate.enter(origin, request.tierKey, context.urgency)
        }
        do {
            let response = try await fetch(request, ifNoneMatch: known, context)
            origins.count(.answered)
            await gate.leave(pass, .answered)
            return response
        } catch {
            let outcome = (error as? Failure).map { OriginOutcome($0) } ?? .unknown
            origins.count(outcome)
            await gate.leave(pass, outcome)
            throw error
        }
    }

    private func fetch(
        _ request: SourceRequest, ifNoneMatch known: Validators?, _ context: WorkContext
    ) async throws -> (FetchResponse, Place) {
        let permit = try await permits.acquire(context.urgency)
        try context.markStarted()
        let response = try await permits.limitingMemory(of: permit) {
            try await loader.fetch(request, ifNoneMatch: known)
        }
        return (response, permit)
    }

    /// Stores a response; nil removes what is stored.
    private func store(_ entry: SourceEntry?, of request: SourceRequest, _ terms: KeepingTerms) async -> Bool {
        guard let entry else {
            await stores.remove(request.tierKey)
            return false
        }
        return await stores.keep(entry, as: request.tierKey, terms)
    }

    /// Stores a failure: while it is stored, no other attempt is made.
    /// - Returns: the failure as it is stored.
    private func store(_ failure: Failure, of request: SourceRequest, _ terms: KeepingTerms) async -> Failure {
        let seconds = options.failures.seconds(for: failure)
        guard seconds > 0 else { return failure }
        let failure = failure.isRetryable ? failure.notBefore(seconds) : failure
        let now = Timestamp.now.seconds
        let response = StoredResponse(status: 0, headers: [:], request: [:], requestedAt: now, receivedAt: now)
        let entry = SourceEntry(response: response, body: [], failure: failure)
        await stores.keep(entry, as: request.tierKey, for: seconds, terms)
        return failure
    }
}
