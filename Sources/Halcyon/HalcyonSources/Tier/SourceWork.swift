import HalcyonLeases
import HalcyonModel
import Telemetry
import Threads

/// The work of loading one source for all who want it, here and elsewhere.
struct SourceWork: Sendable {
    let request: SourceRequest
    let use: SourceCacheUse
    let urgency: Urgency
    /// The place in a trace of what it is loaded for, where that is recorded.
    let trace: TraceContext?
    let loading: SourceLoading
    let onBegin: @Sendable () -> Bool
    /// Says that the work goes on while it is wanted elsewhere; nil: no longer.
    let goesOn: @Sendable ((@Sendable () async -> Bool)?) -> Void

    /// - Parameters:
    ///   - first: what is kept, and of no use as it is.
    ///   - leases: nil for a process that is alone.
    /// - Throws: ``Failure``; `CancellationError`.
    func run(_ first: SourceStores.Finding, _ leases: Leases?) async throws -> TieredSource {
        guard let leases, use != .none else { return try await load(first) }
        let name = LeaseName(product: request.tierKey)
        return try await leases.attempting([name], .source, urgency) { try await share(first, name, $0, leases) }
    }

    private func share(
        _ first: SourceStores.Finding, _ name: LeaseName, _ attempt: LeaseAttempt, _ leases: Leases
    ) async throws -> TieredSource {
        var (found, hasWaited) = (first, false)
        while true {
            let seen: Seen = use == .reload ? .anything : found.version.map { .version($0) } ?? .nothing
            switch try await attempt.ask([(name, seen)])[0] {
            case .there: break
            case .mine(let lease):
                try await check(lease, leases.options.deaths, attempt)
                return try await load(found, lease, attempt)
            case .without: return try await load(found)
            case .held:
                hasWaited = true
                switch try await attempt.wait(for: [name])[name] {
                case .unshared where use != .reload: return try await load(found)
                case .failed(let reason) where use != .reload:
                    if let failure = Failure(shared: reason) { return try loading.stale(found.entry, after: failure) }
                default: break
                }
            }
            if use == .reload { continue }
            let place: Place
            (found, place) = try await loading.find(request, urgency)
            if case (var hit, _)? = try loading.hit(found, place, newerThan: first.version ?? -1) {
                guard onBegin() else { throw CancellationError() }
                hit.isShared = hasWaited
                return hit
            }
        }
    }

    /// Loading happens in the worker itself, which a provider of the host program may end. What comes over the network is not even looked
    /// at there: it takes many deaths in the middle of it until somebody believes that they are no coincidence.
    /// - Throws: ``Failure`` `poison`.
    private func check(_ lease: Lease, _ limits: DeathLimits, _ attempt: LeaseAttempt) async throws(Failure) {
        let most = if case .custom = request.source { limits.deaths } else { limits.coincidences }
        // Who wants it loaded anew has it tried again.
        guard lease.deaths >= most, use != .reload else { return }
        await attempt.finish(lease, .givenUp)
        throw .knownPoison
    }

    /// Under a lease, and tells those who wait what came of it.
    private func load(
        _ known: SourceStores.Finding, _ lease: Lease, _ attempt: LeaseAttempt
    ) async throws -> TieredSource {
        // Other workers may wait when nobody here does any more.
        goesOn { await attempt.isWantedElsewhere() }
        defer { goesOn(nil) }
        do {
            let (source, isShared) = try await loading.load(
                request, known.entry, use, urgency,
                KeepingTerms(fence: lease.fence, trace: trace) { await attempt.isWantedElsewhere() }, onBegin: onBegin)
            await attempt.finish(lease, isShared ? .stored : .unshared)
            return source
        } catch let failure as Failure {
            await attempt.finish(lease, failure.isShared ? .failed(failure.shared) : .givenUp)
            return try loading.stale(known.entry, after: failure)
        }
    }

    /// Without a lease.
    private func load(_ known: SourceStores.Finding) async throws -> TieredSource {
        do {
            return try await loading.load(request, known.entry, use, urgency, onBegin: onBegin).source
        } catch let failure as Failure {
            return try loading.stale(known.entry, after: failure)
        }
    }
}
