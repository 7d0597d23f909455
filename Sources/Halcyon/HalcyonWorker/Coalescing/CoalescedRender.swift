import Concurrency
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel

/// The rendering of some results of one source, for all jobs that need them, in this process and in others: fetch,
/// render, store.
///
/// It runs in a separate task, which belongs to no job.
struct CoalescedRender: DistributedExecution {
    let render: RenderStage
    let store: StoreStage
    /// The persistent result store; nil if there is none.
    let persist: PersistStage?
    /// The job that started the rendering. The results are the same for all jobs.
    let job: JobContext
    /// True if cached results are not used.
    let bypassesCache: Bool

    /// True if the results are not shared with other workers, because the job must not be shared or accepts only cached
    /// results. The lease then does not prevent duplicate work. It counts the crashes caused by the record of the job.
    private var isAlone: Bool { !job.sharesResults || job.job.cache.onlyIfCached }

    var usesLeases: Bool { true }
    var leaseKind: LeaseKind { isAlone ? .unshared : .result }

    func lease(for key: CoalescingKey) -> LeaseName {
        LeaseName(product: isAlone ? "\(key.key):\(job.origin.coordinates)" : key.key.description)
    }

    func seen(_ key: CoalescingKey) -> KnownVersion { bypassesCache ? .anything : .nothing }

    /// Each job reads the result from the cache by its own TTL policy.
    func stored(_ key: CoalescingKey, hasWaited: Bool, _ context: WorkContext) -> CoalescedOutcome? { .cached }

    func reaction(to outcome: LeaseOutcome, of key: CoalescingKey) -> LeaseReaction<CoalescedOutcome> {
        guard case .failed(let reason) = outcome, let failure = JobError(shared: reason) else { return .askAgain }
        return .complete(.failed(failure))
    }

    func verdict(on key: CoalescingKey, deaths: Int, _ limits: CrashThresholds) -> CoalescedOutcome? {
        // A job with `reload` tries again.
        deaths >= limits.coincidences && !bypassesCache ? .failed(.knownPoison.forVariant(0)) : nil
    }

    func execute(
        _ keys: [CoalescingKey], _ execution: Execution
    ) async throws -> [ExecutionResult<CoalescedOutcome>] {
        let restored = await restore(keys, execution)
        if !restored.isEmpty {
            // Keys that are given up are asked for again, without those that are back in Redis.
            return keys.map { restored.contains($0) ? .completed(.restored, .stored) : .completed(.none, .givenUp) }
        }
        let indices = keys.compactMap { job.keys.firstIndex(of: $0.key) }
        let isolation = execution.quarantine.map { RenderService.Isolation.trial(children: max(1, $0.deaths - 1)) }
        do {
            let fetched = try await render.fetch(indices, of: job, execution.context)
            let fences = execution.leases.map { isAlone ? $0.map { _ in 0 } : $0.map(\.fence) }
            let results = try await render.render(
                fetched, indices, of: job, fences: fences ?? indices.map { _ in 0 }, isolation ?? .whereNeeded,
                execution.context.urgency)
            var stored: [ExecutionResult<CoalescedOutcome>] = []
            for result in results { stored.append(await store(result)) }
            return stored
        } catch let failure as JobError {
            // With several results, the failure may be about another one.
            let outcome: LeaseOutcome = keys.count == 1 && failure.isShared ? .failed(failure.shared) : .givenUp
            return keys.indices.map { index in
                let isOthers = failure.variant.map { $0 != index } ?? false
                let own = failure.variant == nil ? failure : failure.forVariant(0)
                return .completed(isOthers ? .none : .failed(own), outcome, isPoison: failure.code == .poison)
            }
        }
    }

    /// Puts evicted results back into Redis from the result store.
    private func restore(_ keys: [CoalescingKey], _ execution: Execution) async -> Set<CoalescingKey> {
        guard let persist, execution.leases != nil, !isAlone, !bypassesCache else { return [] }
        return await withTaskGroup(of: CoalescingKey?.self) { group in
            for key in keys { group.addTask { await persist.restore(key.key, of: job) ? key : nil } }
            return await group.reduce(into: []) { if let key = $1 { $0.insert(key) } }
        }
    }

    private func store(_ result: RenderedResult) async -> ExecutionResult<CoalescedOutcome> {
        if isAlone { return .completed(.rendered(result), .unshared) }
        guard let stored = await store.store(result, of: job) else { return .fenced(.rendered(result)) }
        return .completed(.rendered(stored), stored.isStored ? .stored : .unshared)
    }
}
