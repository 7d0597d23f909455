import Curl
import HalcyonCoordination
import HalcyonModel
import Threads

/// Identifies a fetch that callers share: one that wants a source reloaded does not wait for one that uses the cache.
struct FetchKey: Hashable, Sendable {
    let key: String
    let use: SourceCacheUse
}

/// The fetch of one source for all who want it, in this process and in others.
struct CoalescedSourceFetch: DistributedExecution {
    private let request: SourceRequest
    private let use: SourceCacheUse
    private let fetcher: SourceFetcher
    private let meters: LoadMeters
    private let firstVersion: Int
    /// The latest that was found in the cache.
    private let found: Lock<SourceStores.Finding>

    init(
        request: SourceRequest, use: SourceCacheUse, fetcher: SourceFetcher, meters: LoadMeters,
        first: SourceStores.Finding
    ) {
        self.request = request
        self.use = use
        self.fetcher = fetcher
        self.meters = meters
        firstVersion = first.version ?? -1
        found = Lock(first)
    }

    var usesLeases: Bool { use != .none }
    var leaseKind: LeaseKind { .source }

    func lease(for key: FetchKey) -> LeaseName { LeaseName(product: key.key) }

    func seen(_ key: FetchKey) -> Seen {
        use == .reload ? .anything : found.withLock { $0.version.map { .version($0) } ?? .nothing }
    }

    /// A version that was fetched while this operation waited is used whether or not it is fresh.
    func stored(_ key: FetchKey, hasWaited: Bool, _ context: WorkContext) async throws -> CachedSource? {
        let (found, permit) = try await fetcher.find(request, context.urgency)
        self.found.withLock { $0 = found }
        guard var hit = try fetcher.hit(found, permit, newerThan: firstVersion)?.source else { return nil }
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
            guard let failure = Failure(shared: reason) else { return .askAgain }
            return .complete(try fetcher.stale(found.withLock { $0.entry }, after: failure))
        case .stored, .givenUp: return .askAgain
        }
    }

    /// A provider of the host program may crash the worker. The bytes of a response are not even looked at here, so it
    /// takes many crashes during a download to be no coincidence.
    func verdict(on key: FetchKey, deaths: Int, _ limits: DeathLimits) throws -> CachedSource? {
        let most = if case .custom = request.source { limits.deaths } else { limits.coincidences }
        // A reload tries again.
        if deaths >= most, use != .reload { throw Failure.knownPoison }
        return nil
    }

    func execute(_ keys: [FetchKey], _ execution: Execution) async throws -> [ExecutionResult<CachedSource>] {
        let known = found.withLock { $0.entry }
        let terms = KeepingTerms(
            fence: execution.leases?.first?.fence ?? 0, trace: execution.context.trace,
            isWanted: execution.isWantedElsewhere)
        return try await meters.measure(keys[0]) {
            do {
                var (source, isShared) = try await fetcher.fetch(request, known, use, terms, execution.context)
                source.loadedFor = execution.context.trace
                return [.completed(source, isShared ? .stored : .unshared)]
            } catch let failure as Failure {
                let outcome = failure.isShared ? LeaseOutcome.failed(failure.shared) : .givenUp
                do throws(Failure) {
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

/// Permits for sources that are being fetched or in memory, each for so many bytes. A larger source takes several; one
/// whose size is not known yet as many as sources have taken lately.
struct FetchPermits: Sendable {
    private let semaphore: Slots
    private let bytesPerPermit: Int
    /// A moving average of sizes in bytes, in which larger ones count for more.
    private let typical: Lock<Double>

    /// - Parameter first: bytes expected of the first source.
    init(_ semaphore: Slots, bytesPerPermit: Int, first: Int) {
        self.semaphore = semaphore
        self.bytesPerPermit = bytesPerPermit
        typical = Lock(Double(first))
    }

    /// Waits for a permit, and for as many more as sources have taken lately.
    /// - Throws: `CancellationError`.
    func acquire(_ urgency: Urgency) async throws -> Place {
        let permit = Place(of: semaphore)
        try await permit.acquire(urgency)
        try await permit.grow(more: extra(for: Int(typical.withLock { $0 })))
        return permit
    }

    /// Sets a permit to the size that its source turned out to have.
    func settle(_ permit: Place, bytes: Int) {
        permit.take(more: extra(for: bytes))
        typical.withLock { typical in
            let change = Double(bytes) - typical
            typical += change / (change > 0 ? 2 : 8)
        }
    }

    /// Performs a fetch whose transfers pause while they need more memory than the permit stands for and no more is
    /// free.
    func limitingMemory<Value>(of permit: Place, _ body: () async throws -> Value) async throws -> Value {
        let memory = SourceMemory { begun in
            HTTPAdmission(bytes: max(0, bytes(of: permit) - begun)) { needed in
                try await permit.grow(more: extra(for: begun + needed))
                return bytes(of: permit) - begun
            }
        }
        return try await SourceMemory.$current.withValue(memory, operation: body)
    }

    /// Permits beside the first that a source of so many bytes takes.
    private func extra(for bytes: Int) -> Int { max(0, bytes - 1) / bytesPerPermit }

    private func bytes(of permit: Place) -> Int {
        let (product, overflow) = permit.places.multipliedReportingOverflow(by: bytesPerPermit)
        return overflow ? .max : product
    }
}

/// The memory that the transfers of a fetch may take.
///
/// It is a task-local value, as ``LoadMeter`` is, so that it reaches them without a parameter in every provider.
struct SourceMemory: Sendable {
    /// The memory of the fetch that the current task performs.
    @TaskLocal static var current: SourceMemory?

    /// For one request of the fetch; the argument is the number of bytes received earlier, if the request is for the
    /// rest.
    let admission: @Sendable (_ begun: Int) -> HTTPAdmission
}
