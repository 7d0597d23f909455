import Concurrency
import Formats
import HalcyonCoordination
import HalcyonModel
import Hashing
import Telemetry

/// The archive of large sources: copies of few pixels that are kept in the source cache, beside or instead of the
/// sources. A copy belongs to the bytes of its source, and has the freshness of their response.
public struct SourceArchive: Sendable {
    /// The text that identifies the pixels of a copy. Copies that were made with another one are not used.
    public let identity: String
    /// Returns true if a source may have a copy, by the beginning of its bytes.
    let mayHaveCopy: @Sendable (_ source: [UInt8]) async throws -> Bool
    /// Makes a copy. Returns nil for a source without a copy.
    let make: @Sendable (_ source: [UInt8], _ crashes: Int?, WorkPriority) async throws -> MadeCopy?
    private let metrics: SourceArchiveMetrics
    private let log: Log

    /// A copy, with the format and the upright size of the original.
    public typealias MadeCopy = (copy: [UInt8], format: ImageFormat, size: PixelSize)

    /// Creates an archive.
    /// - Parameters:
    ///   - mayHaveCopy: Returns true if a source may have a copy.
    ///   - make: Makes a copy; nil for a source without one. The second argument is the number of processes that
    ///     crashed while they made it; nil for none.
    public init(
        identity: String, log: Log, metrics: Metrics,
        mayHaveCopy: @escaping @Sendable (_ source: [UInt8]) async throws -> Bool,
        make: @escaping @Sendable (_ source: [UInt8], _ crashes: Int?, WorkPriority) async throws -> MadeCopy?
    ) {
        self.identity = identity
        self.mayHaveCopy = mayHaveCopy
        self.make = make
        self.log = log
        self.metrics = SourceArchiveMetrics(metrics)
    }

    /// Makes the copy of a source.
    /// - Returns: The copy and its original; nil if the source has none, also because it is damaged, too large to be
    ///   decoded, or in a format that is not supported. Rendering from the original reports that.
    fileprivate func copy(
        of source: [UInt8], _ sha256: String, crashes: Int?, _ request: SourceRequest, _ urgency: WorkPriority
    ) async throws -> (body: [UInt8], original: ArchivedOriginal)? {
        do {
            guard let made = try await make(source, crashes, urgency) else { return nil }
            metrics.made.add()
            return (
                made.copy,
                ArchivedOriginal(format: made.format, size: made.size, bytes: source.count, sha256: sha256)
            )
        } catch let error as JobError {
            metrics.failed.add()
            guard [.corruptImage, .tooManyPixels, .unsupportedFormat].contains(error.code) else { throw error }
            log.notice(
                "no archive copy of a source; rendering from the original",
                ["source": request.source.shownText, "reason": error.message])
            return nil
        }
    }

    fileprivate func confirmed() { metrics.confirmed.add() }
}

/// Counters of the archive.
private struct SourceArchiveMetrics: Sendable {
    let made, confirmed, failed: Counter

    init(_ metrics: Metrics) {
        func counter(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_archive_copies_total",
                help: "Archive copies of large sources that were made, confirmed as current, or could not be made.",
                labels: ["outcome": outcome])
        }
        (made, confirmed, failed) = (counter("made"), counter("confirmed"), counter("failed"))
    }
}

/// The work on the archive copy of a source, under its lease.
final class CopyWork: Sendable {
    let archive: SourceArchive
    private let held: Lock<CachedSource?>

    /// Creates work.
    /// - Parameter original: The original, if the caller has it.
    init(archive: SourceArchive, original: CachedSource? = nil) {
        self.archive = archive
        held = Lock(original)
    }

    /// The original, unless it was dropped.
    var original: CachedSource? { held.withLock { $0 } }

    /// Drops the original and its permit, unless others use them too. If the copy is made here after all, the original
    /// is fetched again.
    func dropOriginal() { _ = held.withLock { $0.take() } }

    /// Returns true if the origin can confirm a stored copy. Without a validator, the bytes of the source tell whether
    /// the copy is current.
    static func canRevalidate(_ known: FoundEntry?, _ use: SourceCacheUse) -> Bool {
        use == .standard && known?.entry.response.validators != nil
    }

    /// Returns the copy, or the original if that has none, and true if other workers can find it in the cache.
    /// - Parameter known: The stored copy.
    func run(
        _ request: SourceRequest, _ known: FoundEntry?, _ use: SourceCacheUse, _ terms: StoreOptions,
        _ execution: Execution, _ cache: SourceCache
    ) async throws -> (source: CachedSource, isShared: Bool) {
        let fetcher = cache.fetcher
        let source: CachedSource
        if let original {
            source = original
        } else if Self.canRevalidate(known, use) {
            let (fetched, isShared) = try await fetcher.fetch(request, known, use, terms, execution.context)
            if fetched.original != nil {
                archive.confirmed()
                return (fetched, isShared)
            }
            source = fetched
        } else {
            // An original that was dropped has been reloaded before.
            source = try await cache.fetch(request, use == .reload ? .standard : use, execution.context)
        }
        let digest = SHA256.hash(source.source.body).description
        let made: (body: [UInt8], original: ArchivedOriginal)?
        if let known, let copy = known.entry.copy, copy.original.sha256 == digest {
            archive.confirmed()
            made = (known.entry.body, copy.original)
        } else {
            made = try await archive.copy(
                of: source.source.body, digest, crashes: execution.quarantine?.deaths, request,
                execution.context.urgency)
        }
        guard let made else {
            if known != nil, use != .none { await fetcher.stores.remove(request.copyKey) }
            return (source, false)
        }
        let fields = fetcher.loader.fields(of: request)
        let entry = SourceEntry(
            response: StoredResponse(source.source, request: fields, now: Timestamp.now.seconds), body: made.body,
            copy: SourceEntry.Copy(original: made.original, identity: archive.identity))
        var terms = terms
        terms.since = source.fence
        var isShared = false
        if use != .none, request.source.isWorthKeeping, entry.response.mayBeStored(request: fields) {
            isShared = await fetcher.stores.store(entry, as: request.copyKey, terms)
        }
        var copy = CachedSource(
            source: LoadedSource(
                body: made.body, headers: source.source.headers, status: source.source.status,
                completedAt: source.source.completedAt),
            isFromCache: source.isFromCache, fence: source.fence, permit: source.permit, original: made.original)
        copy.isShared = source.isShared
        return (copy, isShared)
    }
}

extension SourceCache {
    /// Returns the archive copy of a source, or the source itself if it has none. The copy is made if it is not cached,
    /// even if it cannot be stored, so that results never depend on whether it was.
    ///
    /// - Parameter context: As for ``fetch(_:_:_:)``.
    /// - Throws: Like ``fetch(_:_:_:)``, and the ``JobError`` of a copy that took too long or crashed its process.
    public func fetch(
        _ request: SourceRequest, _ use: SourceCacheUse = .standard, copyFrom archive: SourceArchive,
        _ context: WorkContext = WorkContext()
    ) async throws -> CachedSource {
        guard request.source.isWorthKeeping else { return try await fetch(request, use, context) }
        var found = SourceCacheStack.SourceLookup.nothing
        if use != .none {
            let (lookup, permit) = try await fetcher.find(request, context.urgency, copyOf: archive)
            found = lookup
            if use != .reload, let (hit, isOld) = try fetcher.hit(found, permit) {
                try context.markStarted()
                if isOld { await revalidateCopy(of: request, found, archive) }
                fetcher.permits.settle(permit, bytes: hit.source.body.count)
                return hit
            }
            fetcher.permits.giveUp(permit, context.urgency)
        }
        if CopyWork.canRevalidate(found.entry, use) {
            return try await share(request, found, use, CopyWork(archive: archive), context)
        }
        // Only the work holds the original, so that it can be dropped.
        let work = CopyWork(archive: archive, original: try await fetch(request, use, context))
        if let original = work.original, !(try await archive.mayHaveCopy(original.source.body)) { return original }
        return try await share(
            request, found, use, work, WorkContext(urgency: context.urgency, trace: context.trace))
    }

    private func share(
        _ request: SourceRequest, _ found: SourceCacheStack.SourceLookup, _ use: SourceCacheUse, _ copy: CopyWork,
        _ context: WorkContext
    ) async throws -> CachedSource {
        let key = FetchKey(key: request.copyKey, use: use)
        let work = CoalescedSourceFetch(
            request: request, use: use, cache: self, first: found, copy: copy)
        guard let result = try await singleFlight.run([key], context, work)[key] else { throw CancellationError() }
        var source = result.value
        if !result.isOwn { source.isShared = true }
        return source
    }

    /// Revalidates a stale copy in the background while it is still used (RFC 5861, section 3).
    private func revalidateCopy(
        of request: SourceRequest, _ found: SourceCacheStack.SourceLookup, _ archive: SourceArchive
    ) async {
        await revalidations.run(request.copyKey) {
            let work = CopyWork(archive: archive)
            // The stale copy is used meanwhile, and errors are cached. No caller waits for this fetch.
            _ = try? await share(request, found, .standard, work, WorkContext(urgency: WorkPriority(level: 2)))
        }
    }
}

extension StoredResponse {
    /// Creates the response of a source that was loaded or cached, with its age by the local clock.
    fileprivate init(_ source: LoadedSource, request: HTTPFields, now: Double) {
        let received = StoredResponse(
            status: source.status ?? 200, headers: source.headers, request: request,
            requestedAt: source.completedAt, receivedAt: source.completedAt)
        self.init(
            status: received.status, headers: received.headers, varied: received.varied,
            initialAge: received.initialAge + max(0, now - source.completedAt))
    }
}
