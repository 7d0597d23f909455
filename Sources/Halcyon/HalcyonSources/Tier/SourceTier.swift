import CivilTime
import HalcyonModel
import Redis
import Telemetry
import Threads

/// Sources from where they lie nearest: what was loaded once is kept with what its origin said of it, and used again as a
/// shared cache may (RFC 9111), so that another size of an image is no second download, and an unchanged one is none either.
public struct SourceTier: Sendable {
    private let loader: SourceLoader
    private let gate: OriginGate
    private let stores: SourceStores
    private let options: SourceTierOptions
    private let revalidations = Revalidations()
    private let metrics: SourceTierMetrics

    /// It blocks where sources are kept in a folder. The loader and the client stay their maker's, who closes them.
    /// - Parameter redis: what all workers share; nil for a process that is alone.
    /// - Throws: what is wrong with the folder.
    public init(
        _ loader: SourceLoader, _ redis: RedisClient?, options: SourceTierOptions = SourceTierOptions(),
        limits: OriginLimits = OriginLimits(), log: Log, metrics: Metrics
    ) throws {
        self.loader = loader
        self.options = options
        gate = OriginGate(redis, limits)
        stores = try SourceStores(options, redis, log)
        self.metrics = SourceTierMetrics(metrics)
    }

    /// The source, from the tier where that may be used, else from its origin.
    ///
    /// - Parameter place: what the caller holds for a source that is on its way or in memory. It is given back while an origin
    ///   is waited for, and held again when this returns.
    /// - Throws: ``Failure``, also one that is remembered; `CancellationError` when the task is cancelled, which ends the
    ///   transfer.
    public func load(
        _ source: Source, _ use: SourceCacheUse = .standard, holding place: Place? = nil
    ) async throws -> TieredSource {
        guard source.isWorthKeeping, use != .none else { return try await loaded(source, nil, use, place) }
        let found = await stores.find(source.tierKey) { isUsable($0, for: source) }
        guard let found, use != .reload else { return try await loaded(source, nil, use, place) }
        if let failure = found.entry.failure {
            metrics.failed.add(1)
            throw failure
        }
        let freshness = found.entry.response.freshness(after: found.residentTime, options.freshness)
        switch freshness {
        case .fresh:
            return hit(found, metrics.fresh)
        case .stale(whileRevalidating: true, _):
            await revalidations.run(source.tierKey) { _ = try? await loaded(source, found, use, nil) }
            return hit(found, metrics.stale)
        case .stale(_, let onError):
            do {
                return try await loaded(source, found, use, place)
            } catch let failure as Failure where onError && failure.isRetryable {
                return hit(found, metrics.stale)
            }
        }
    }

    /// Ends what goes on in the background, and its files.
    public func close() async {
        await revalidations.close()
        await stores.close()
    }

    private func isUsable(_ found: FoundEntry, for source: Source) -> Bool {
        found.entry.response.answers(request: loader.requestFields(for: source))
    }

    private func hit(_ found: FoundEntry, _ counter: Counter) -> TieredSource {
        counter.add(1)
        return TieredSource(found.entry, completedAt: Timestamp.now.seconds - found.residentTime)
    }

    /// From the origin, or what is known if the origin says that it still holds; kept, where it may be.
    private func loaded(
        _ source: Source, _ known: FoundEntry?, _ use: SourceCacheUse, _ place: Place?
    ) async throws -> TieredSource {
        let request = loader.requestFields(for: source)
        let requestedAt = Timestamp.now.seconds
        do {
            switch try await answer(source, known, place) {
            case .loaded(let loaded):
                metrics.loaded.add(1)
                let response = StoredResponse(
                    status: loaded.status ?? 200, headers: loaded.headers, request: request, requestedAt: requestedAt,
                    receivedAt: loaded.completedAt)
                if source.isWorthKeeping, use != .none {
                    let isKept = response.mayBeStored(request: request)
                    await keep(isKept ? SourceEntry(response: response, body: loaded.body) : nil, of: source)
                }
                return TieredSource(source: loaded, isFromTier: false)
            case .notModified(let confirmation):
                guard let known else { throw Failure(.internal, "\(source.text): unchanged, and nobody had asked") }
                metrics.confirmed.add(1)
                var entry = known.entry
                entry.response = entry.response.confirmed(
                    by: StoredResponse(
                        status: 304, headers: confirmation.headers, request: request, requestedAt: requestedAt,
                        receivedAt: confirmation.completedAt))
                await keep(entry, of: source)
                return TieredSource(entry, completedAt: confirmation.completedAt)
            }
        } catch let failure as Failure {
            // What is known may still be of use when the origin is well again.
            if known == nil, source.isWorthKeeping, use != .none { await keep(failure, of: source) }
            throw failure
        }
    }

    /// Asks the origin, in its turn.
    private func answer(_ source: Source, _ known: FoundEntry?, _ place: Place?) async throws -> SourceAnswer {
        guard let origin = loader.origin(of: source) else { return try await ask(source, known) }
        place?.release()
        let pass = try await gate.enter(origin)
        do {
            try await place?.acquire()
            let answer = try await ask(source, known)
            await gate.leave(pass, .answered)
            return answer
        } catch {
            await gate.leave(pass, (error as? Failure).map { OriginOutcome($0) } ?? .unknown)
            throw error
        }
    }

    private func ask(_ source: Source, _ known: FoundEntry?) async throws -> SourceAnswer {
        if let validators = known?.entry.response.validators {
            return try await loader.load(source, unlike: validators)
        }
        return .loaded(try await loader.load(source))
    }

    /// Nil for what must not be kept: then what was there goes.
    private func keep(_ entry: SourceEntry?, of source: Source) async {
        if let entry { await stores.keep(entry, as: source.tierKey) } else { await stores.remove(source.tierKey) }
    }

    private func keep(_ failure: Failure, of source: Source) async {
        let seconds = options.failures.seconds(for: failure)
        guard seconds > 0 else { return }
        let now = Timestamp.now.seconds
        let response = StoredResponse(status: 0, headers: [], request: [], requestedAt: now, receivedAt: now)
        await stores.keep(SourceEntry(response: response, body: [], failure: failure), as: source.tierKey, for: seconds)
    }
}

/// What a job lets the source tier do.
public enum SourceCacheUse: Hashable, Sendable {
    /// Look there first, and keep what was loaded.
    case standard
    /// Load it, and keep that in place of what is there.
    case reload
    /// Neither look nor keep.
    case none
}

/// A source, and where it came from.
public struct TieredSource: Sendable {
    /// The bytes, and what their origin said.
    public let source: LoadedSource
    /// Whether its bytes were there: nothing was downloaded, or no more than the word that they still hold.
    public let isFromTier: Bool
}
