import Concurrency
import Curl
import HalcyonCoordination
import HalcyonModel

/// The key of a shared fetch. A caller that wants a source reloaded does not share the fetch of one that uses the
/// cache.
struct FetchKey: Hashable, Sendable {
    let key: String
    let use: SourceCacheUse
}

/// The fetch of one source on behalf of all callers, in this process and in others.
struct CoalescedSourceFetch: DistributedExecution {
    private let request: SourceRequest
    private let use: SourceCacheUse
    private let cache: SourceCache
    private let firstVersion: Int
    /// The making of the archive copy; nil if the source itself is fetched.
    private let copy: CopyWork?
    /// The latest lookup result.
    private let found: Lock<SourceCacheStack.SourceLookup>

    init(
        request: SourceRequest, use: SourceCacheUse, cache: SourceCache, first: SourceCacheStack.SourceLookup,
        copy: CopyWork? = nil
    ) {
        self.request = request
        self.use = use
        self.cache = cache
        firstVersion = first.version ?? -1
        found = Lock(first)
        self.copy = copy
    }

    private var fetcher: SourceFetcher { cache.fetcher }

    var usesLeases: Bool { use != .none }
    var leaseKind: LeaseKind { .source }

    func lease(for key: FetchKey) -> LeaseName { LeaseName(product: key.key) }

    func seen(_ key: FetchKey) -> KnownVersion {
        use == .reload ? .anything : found.withLock { $0.version.map { .version($0) } ?? .nothing }
    }

    func willWait() { copy?.dropOriginal() }

    /// Looks the source up in the cache. A version that was fetched while this operation waited is used even if it is
    /// stale.
    func stored(_ key: FetchKey, hasWaited: Bool, _ context: WorkContext) async throws -> CachedSource? {
        // A job that waits for a permit holds none.
        copy?.dropOriginal()
        let (found, permit) = try await fetcher.find(request, context.urgency, copyOf: copy?.archive)
        self.found.withLock { $0 = found }
        guard var hit = try fetcher.hit(found, permit, newerThan: firstVersion)?.source else {
            fetcher.permits.giveUp(permit, context.urgency)
            return nil
        }
        try context.markStarted()
        hit.isShared = hasWaited
        if !hasWaited { hit.loadedFor = context.trace }
        return hit
    }

    func reaction(to outcome: LeaseOutcome, of key: FetchKey) throws -> LeaseReaction<CachedSource> {
        guard use != .reload else { return .askAgain }
        switch outcome {
        case .unshared: return .executeWithoutLease
        case .failed(let reason):
            guard let failure = JobError(shared: reason) else { return .askAgain }
            return .complete(try fetcher.stale(found.withLock { $0.entry }, after: failure))
        case .stored, .givenUp: return .askAgain
        }
    }

    /// Declares the source poison after repeated crashes. A custom provider may crash the worker, so the normal
    /// threshold applies to it. The bytes of a response are not decoded here, so crashes during a download are treated
    /// as coincidences up to a higher threshold.
    func verdict(on key: FetchKey, deaths: Int, _ limits: CrashThresholds) throws -> CachedSource? {
        let most = if case .custom = request.source { limits.deaths } else { limits.coincidences }
        // A reload always makes another attempt.
        if deaths >= most, use != .reload { throw JobError.knownPoison }
        return nil
    }

    func execute(_ keys: [FetchKey], _ execution: Execution) async throws -> [ExecutionResult<CachedSource>] {
        let known = found.withLock { $0.entry }
        let terms = StoreOptions(
            fence: execution.leases?.first?.fence ?? 0, trace: execution.context.trace,
            isWanted: execution.isWantedElsewhere)
        return try await cache.meters.measure(keys[0]) {
            do {
                var (source, isShared) =
                    if let copy {
                        try await copy.run(request, known, use, terms, execution, cache)
                    } else {
                        try await fetcher.fetch(request, known, use, terms, execution.context)
                    }
                source.loadedFor = execution.context.trace
                return [.completed(source, isShared ? .stored : .unshared)]
            } catch let failure as JobError {
                let outcome = failure.isShared ? LeaseOutcome.failed(failure.shared) : .givenUp
                do throws(JobError) {
                    var source = try fetcher.stale(known, after: failure)
                    source.loadedFor = execution.context.trace
                    return [.completed(source, outcome)]
                } catch {
                    return [.failed(error, outcome)]
                }
            }
        }
    }
}

/// Permits for sources that are fetched or in memory. Each permit stands for a number of bytes, and a larger source
/// needs several. A source of unknown size acquires as many as recent sources have needed.
struct FetchPermits: Sendable {
    private let semaphore: PrioritySemaphore
    private let bytesPerPermit: Int
    /// A moving average of sizes in bytes that follows increases faster than decreases.
    private let typical: Lock<Double>

    /// Creates a pool of permits.
    /// - Parameter first: The expected size of the first source, in bytes.
    init(_ semaphore: PrioritySemaphore, bytesPerPermit: Int, first: Int) {
        self.semaphore = semaphore
        self.bytesPerPermit = bytesPerPermit
        typical = Lock(Double(first))
    }

    /// Acquires a permit, and as many more as recent sources have needed.
    /// - Throws: `CancellationError`.
    func acquire(_ urgency: WorkPriority) async throws -> SemaphorePermit {
        let permit = SemaphorePermit(of: semaphore)
        try await permit.acquire(urgency)
        try await permit.grow(more: extra(for: Int(typical.withLock { $0 })))
        return permit
    }

    /// Acquires a permit if one is free. The fetch acquires more of them when it needs them.
    func tryAcquire(_ urgency: WorkPriority) -> SemaphorePermit? {
        let permit = SemaphorePermit(of: semaphore)
        return permit.tryAcquire(urgency) ? permit : nil
    }

    /// Adjusts a permit to the actual size of its source.
    func settle(_ permit: SemaphorePermit, bytes: Int) {
        permit.setExtraPermits(extra(for: bytes))
        typical.withLock { typical in
            let change = Double(bytes) - typical
            typical += change / (change > 0 ? 2 : 8)
        }
    }

    /// Releases a permit whose source was not found. It does not count towards the share of the job's flow, because the
    /// job acquires another one to fetch the source.
    func giveUp(_ permit: SemaphorePermit, _ urgency: WorkPriority) {
        permit.release()
        semaphore.refund(urgency)
    }

    /// Performs a fetch. Its transfers pause while they need more memory than the permit covers and no more is
    /// available.
    func limitingMemory<Value>(of permit: SemaphorePermit, _ body: () async throws -> Value) async throws -> Value {
        let memory = SourceMemory { begun in
            HTTPAdmission(bytes: max(0, bytes(of: permit) - begun)) { needed in
                try await permit.grow(more: extra(for: begun + needed))
                return bytes(of: permit) - begun
            }
        }
        return try await SourceMemory.$current.withValue(memory, operation: body)
    }

    /// The number of permits, in addition to the first, for a source of this size.
    private func extra(for bytes: Int) -> Int { max(0, bytes - 1) / bytesPerPermit }

    private func bytes(of permit: SemaphorePermit) -> Int {
        let (product, overflow) = permit.permits.multipliedReportingOverflow(by: bytesPerPermit)
        return overflow ? .max : product
    }
}

/// The memory limit of the transfers of a fetch.
///
/// It is a task-local value like ``LoadMeter``, so that it reaches them without a parameter in every provider.
struct SourceMemory: Sendable {
    /// The memory limit of the fetch that the current task performs.
    @TaskLocal static var current: SourceMemory?

    /// Returns the admission callback for one request of the fetch. The argument is the number of bytes received
    /// earlier, if the request is for the rest.
    let admission: @Sendable (_ begun: Int) -> HTTPAdmission
}
