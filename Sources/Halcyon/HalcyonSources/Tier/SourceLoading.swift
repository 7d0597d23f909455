import CivilTime
import HalcyonModel
import Telemetry
import Threads

/// Loads sources from their origins, each in its turn, keeps them where they may be kept, and tells what of the kept may be used.
struct SourceLoading: Sendable {
    let loader: SourceLoader
    let gate: OriginGate
    let stores: SourceStores
    let places: SourcePlaces
    let options: SourceTierOptions
    let metrics: SourceTierMetrics
    let origins: OriginMetrics

    /// A source that is as near as it can be: it is not kept.
    func near(_ request: SourceRequest, _ urgency: Urgency) async throws -> TieredSource {
        let place = try await places.place(urgency)
        let source = try await SourceMemory.$current.withValue(places.memory(of: place)) {
            try await loader.load(request)
        }
        return TieredSource(source: source, isFromTier: false, fence: nil, place: place)
    }

    // MARK: What is kept

    /// Looks for what is kept of a source, with a place for its bytes.
    func find(_ request: SourceRequest, _ urgency: Urgency) async throws -> (SourceStores.Finding, Place) {
        let place = try await places.place(urgency)
        let fields = loader.fields(of: request)
        return (await stores.find(request.tierKey) { $0.entry.response.answers(request: fields) }, place)
    }

    private func freshness(of found: FoundEntry) -> SourceFreshness {
        found.entry.response.freshness(after: found.residentTime, options.freshness)
    }

    /// What may be used as it is; `isOld` when it should be loaded anew beside that.
    /// - Parameter version: what is newer was loaded while somebody waited for it, who may use it whether or not it is fresh.
    /// - Throws: the ``Failure`` that is kept.
    func hit(
        _ finding: SourceStores.Finding, _ place: Place, newerThan version: Int = .max
    ) throws(Failure) -> (TieredSource, isOld: Bool)? {
        guard let found = finding.entry else { return nil }
        if let failure = found.entry.failure {
            metrics.failed.add(1)
            throw failure.later(by: found.residentTime)
        }
        switch freshness(of: found) {
        case .fresh: return (use(found, place, metrics.fresh), false)
        case .stale(whileRevalidating: true, _): return (use(found, place, metrics.stale), true)
        case .stale where found.version.map { $0 > version } ?? false: return (use(found, place, metrics.fresh), false)
        case .stale: return nil
        }
    }

    /// What needs no word from the origin, now or later.
    /// - Throws: ``Failure`` `not_found` when there is nothing of the kind.
    func kept(_ finding: SourceStores.Finding, _ place: Place) throws(Failure) -> TieredSource {
        if finding.entry?.entry.failure == nil, let (source, _) = try hit(finding, place) { return source }
        throw Failure(.notFound, "the source is not in the cache, and the job says cache.onlyIfCached")
    }

    /// What may be used because the origin is in trouble.
    /// - Throws: the failure when there is nothing of the kind.
    func stale(_ found: FoundEntry?, after failure: Failure) throws(Failure) -> TieredSource {
        guard failure.isRetryable, !failure.forbidsStaleUse, let found, found.entry.failure == nil,
            case .stale(_, onError: true) = freshness(of: found)
        else { throw failure }
        return use(found, nil, metrics.stale)
    }

    private func use(_ found: FoundEntry, _ place: Place?, _ counter: Counter) -> TieredSource {
        counter.add(1)
        var source = TieredSource(
            found.entry, completedAt: Timestamp.now.seconds - found.residentTime, found.version, place)
        source.loadedFor = found.loadedFor
        return source
    }

    // MARK: Origins

    /// From the origin, or what is known if the origin says that it still holds; kept, where it may be.
    /// - Parameters:
    ///   - known: what is kept of it.
    /// - Returns: the source, and whether other workers find it where all look.
    func load(
        _ request: SourceRequest, _ known: FoundEntry?, _ use: SourceCacheUse, _ urgency: Urgency,
        _ terms: KeepingTerms = KeepingTerms(), onBegin: @Sendable () -> Bool
    ) async throws -> (source: TieredSource, isShared: Bool) {
        let fields = loader.fields(of: request)
        let requestedAt = Timestamp.now.seconds
        let fence = terms.fence > 0 ? terms.fence : nil
        do {
            let (answer, place) = try await answer(request, known, urgency, onBegin)
            var isShared = false
            switch answer {
            case .loaded(let loaded):
                metrics.loaded.add(1)
                metrics.fetchedBytes.add(loaded.body.count)
                let response = StoredResponse(
                    status: loaded.status ?? 200, headers: loaded.headers, request: fields, requestedAt: requestedAt,
                    receivedAt: loaded.completedAt)
                if use != .none {
                    let entry = SourceEntry(response: response, body: loaded.body)
                    isShared = await keep(response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                }
                return (TieredSource(source: loaded, isFromTier: false, fence: fence, place: place), isShared)
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
                isShared = await keep(entry.response.mayBeStored(request: fields) ? entry : nil, of: request, terms)
                return (TieredSource(entry, completedAt: confirmation.completedAt, fence, place), isShared)
            }
        } catch let failure as Failure {
            // A trouble that passes takes nothing away that may be of use again afterwards.
            let isFinal = !failure.isRetryable || (known == nil && use == .standard)
            throw isFinal && use != .none ? await keep(failure, of: request, terms) : failure
        }
    }

    /// Asks the origin, in its turn. Who waits for it holds no place.
    private func answer(
        _ request: SourceRequest, _ known: FoundEntry?, _ urgency: Urgency, _ onBegin: @Sendable () -> Bool
    ) async throws -> (SourceAnswer, Place) {
        guard let origin = loader.origin(of: request.source) else {
            let place = try await places.place(urgency)
            guard onBegin() else { throw CancellationError() }
            return (try await ask(request, known, place), place)
        }
        let pass = try await origins.waiting(for: origin) { try await gate.enter(origin, request.tierKey, urgency) }
        do {
            let place = try await places.place(urgency)
            guard onBegin() else { throw CancellationError() }
            let answer = try await ask(request, known, place)
            origins.count(.answered)
            await gate.leave(pass, .answered)
            return (answer, place)
        } catch {
            let outcome = (error as? Failure).map { OriginOutcome($0) } ?? .unknown
            origins.count(outcome)
            await gate.leave(pass, outcome)
            throw error
        }
    }

    private func ask(_ request: SourceRequest, _ known: FoundEntry?, _ place: Place) async throws -> SourceAnswer {
        try await SourceMemory.$current.withValue(places.memory(of: place)) {
            if let validators = known?.entry.response.validators {
                return try await loader.load(request, unlike: validators)
            }
            return .loaded(try await loader.load(request))
        }
    }

    /// Nil for what must not be kept: then what was there goes.
    private func keep(_ entry: SourceEntry?, of request: SourceRequest, _ terms: KeepingTerms) async -> Bool {
        guard let entry else {
            await stores.remove(request.tierKey)
            return false
        }
        return await stores.keep(entry, as: request.tierKey, terms)
    }

    /// - Returns: the failure as it is kept: while it is, trying again gives nothing else.
    private func keep(_ failure: Failure, of request: SourceRequest, _ terms: KeepingTerms) async -> Failure {
        let seconds = options.failures.seconds(for: failure)
        guard seconds > 0 else { return failure }
        let failure = failure.isRetryable ? failure.notBefore(seconds) : failure
        let now = Timestamp.now.seconds
        let response = StoredResponse(status: 0, headers: [], request: [], requestedAt: now, receivedAt: now)
        let entry = SourceEntry(response: response, body: [], failure: failure)
        await stores.keep(entry, as: request.tierKey, for: seconds, terms)
        return failure
    }
}
