import Concurrency

/// One attempt to obtain products. It acquires leases, waits for those of other attempts, and releases its own.
///
/// The order of calls: ``acquire(_:)``; produce what is ``AcquireResult/mine(_:)`` and ``finish(_:_:)`` it; otherwise
/// ``wait(for:)`` and acquire again; finally ``end()``, which ``Leases/withLeases(_:_:_:_:)`` calls.
public final class LeaseSession: Sendable {
    private struct State {
        var name = String(UInt64.random(in: .min ... .max), radix: 36)
        var held: [LeaseName: Lease] = [:]
        /// The owner of each product at the last request.
        var holders: [LeaseName: LeaseOwner] = [:]
        /// Requests without a reply. Some of these leases may have been granted to this attempt.
        var unanswered: Set<LeaseName> = []
        /// The fence of the current work when a product was first requested with ``KnownVersion/anything``.
        var since: [LeaseName: Int] = [:]
        /// The leases that were held under the current name and released.
        var returned: Set<LeaseName> = []

        /// Chooses a new name if the attempt asks again for a lease that it released, so that late messages about the
        /// old lease do not affect the new one.
        /// - Returns: the requests under the old name; nil if it is unchanged.
        mutating func renewName(for wanted: [LeaseName]) -> Requests? {
            guard held.isEmpty, !returned.isDisjoint(with: wanted) else { return nil }
            let old = requests
            (name, returned, unanswered) = (State().name, [], [])
            return old
        }

        /// The requests under the current name.
        var requests: Requests {
            Requests(attempt: name, unanswered: unanswered.subtracting(held.keys), waited: Set(holders.keys))
        }
    }

    /// The requests under one name that have acquired no lease as far as is known.
    private struct Requests {
        let attempt: String
        /// Products whose leases may have been granted.
        let unanswered: Set<LeaseName>
        /// Products whose leases others hold.
        let waited: Set<LeaseName>
    }

    private let leases: Leases
    private let watch: LeaseWaiter
    private let metrics: LeaseMetrics.Kind
    private let urgency: WorkPriority
    private let state = Lock(State())

    init(_ leases: Leases, _ watch: LeaseWaiter, _ metrics: LeaseMetrics.Kind, _ urgency: WorkPriority) {
        self.leases = leases
        self.watch = watch
        self.metrics = metrics
        self.urgency = urgency
    }

    /// Requests products. For ``KnownVersion/anything``, any product is accepted whose work started after the first
    /// request.
    ///
    /// If Redis does not respond, the call takes up to ``LeaseOptions/fallbackTimeout``.
    /// - Returns: the result for each product, in their order.
    /// - Throws: `CancellationError`.
    public func acquire(_ wanted: [(name: LeaseName, seen: KnownVersion)]) async throws -> [AcquireResult] {
        let (name, old, since) = state.withLock { state in
            let old = state.renewName(for: wanted.map(\.name))
            state.unanswered.formUnion(wanted.map(\.name))
            return (state.name, old, state.since)
        }
        if let old { await withdraw(old) }
        let known = wanted.map { name, seen in
            (name: name, seen: seen == .anything ? since[name].map { .version($0) } ?? seen : seen)
        }
        let (answers, areCertain) = try await leases.enter(known, attempt: name, level: urgency.level)
        if areCertain { state.withLock { $0.unanswered.subtract(wanted.map(\.name)) } }
        for (want, answer) in zip(wanted, answers) { record(answer, want) }
        return answers
    }

    private func record(_ answer: AcquireResult, _ want: (name: LeaseName, seen: KnownVersion)) {
        let name = want.name
        func begin(_ state: inout State, _ fence: Int) {
            if want.seen == .anything, state.since[name] == nil { state.since[name] = fence }
        }
        switch answer {
        case .acquired(let lease):
            let isTakenOver = state.withLock { state in
                begin(&state, lease.fence)
                state.held[name] = lease
                return state.holders.removeValue(forKey: name) != nil
            }
            (isTakenOver ? metrics.takenOver : metrics.taken).add()
            leases.hold(lease, urgency)
        case .heldByOther(let holder):
            let isFirst = state.withLock { state in
                begin(&state, holder.fence)
                return state.holders.updateValue(holder, forKey: name) == nil
            }
            if isFirst { metrics.waited.add() }
        case .unavailable: metrics.without.add()
        case .available: state.withLock { $0.holders[name] = nil }
        }
    }

    /// The outcomes that owners published for products that were waited for.
    public typealias ReleaseNotice = [LeaseName: LeaseOutcome]

    /// Waits until a notification about one of the products arrives, or until it is time to ask again.
    /// - Returns: the outcomes that the current owners published. Notifications of other owners are ignored.
    /// - Throws: `CancellationError`.
    public func wait(for names: [LeaseName]) async throws -> ReleaseNotice {
        let holders = state.withLock { $0.holders }
        let soonest = names.compactMap { holders[$0]?.left }.min() ?? .zero
        // Jitter, so that processes do not ask at the same time.
        let limit = min(soonest, leases.options.recheck) + leases.options.recheck * Double.random(in: 0.01...0.1)
        let hints = try await watch.next(withTimeout: limit)
        var news = ReleaseNotice()
        for name in names {
            if let hint = hints.last(where: { $0.lease == name.lease && $0.fence == holders[name]?.fence }) {
                news[name] = hint.outcome
            }
        }
        return news
    }

    /// Returns true if another attempt waits for a product of the leases that are held. Without leases no attempt can
    /// wait. If it returns false, all of the leases have ended and new requests start over, so the work must stop.
    public func isWantedElsewhere() async -> Bool {
        let held = state.withLock { Array($0.held.values) }
        if held.isEmpty { return false }
        // This attempt has no callers any more and must not count as a waiter for the work of others.
        let (name, waited) = state.withLock { ($0.name, Array($0.holders.keys)) }
        await leases.leave(waited, attempt: name)
        guard let answer = await leases.areWanted(held) else { return false }
        if !answer { state.withLock { state in for lease in held { state.held[lease.name] = nil } } }
        return answer
    }

    /// Releases a lease and notifies waiters of the outcome.
    /// - Parameter deaths: the number of crashes to record for the next owner (``Lease/deaths``). By default, as many
    ///   as before if the work was given up, otherwise none.
    public func finish(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async {
        state.withLock { state in
            state.held[lease.name] = nil
            state.returned.insert(lease.name)
        }
        await leases.release(lease, outcome, deaths: deaths)
    }

    /// Counts a product that was rejected because a newer one was stored.
    public func recordFenced() { metrics.fencedOut.add() }

    /// Releases all leases that are held and stops waiting.
    func end() async {
        watch.end()
        let (held, requests) = state.withLock { state in
            defer { (state.held, state.holders, state.unanswered) = ([:], [:], []) }
            return (Array(state.held.values), state.requests)
        }
        for lease in held { await leases.release(lease, .givenUp) }
        await withdraw(requests)
    }

    /// Releases the leases that requests may have acquired, and stops waiting.
    private func withdraw(_ requests: Requests) async {
        for name in requests.unanswered {
            await leases.release(leases.perhaps(name, attempt: requests.attempt), .givenUp)
        }
        await leases.leave(Array(requests.unanswered.union(requests.waited)), attempt: requests.attempt)
    }
}

/// The outcome of the work under a lease, as published to waiters. It is a hint: a waiter that misses it soon asks
/// again.
public enum LeaseOutcome: Hashable, Sendable {
    /// The product is stored.
    case stored
    /// The product cannot be shared. Each attempt produces its own.
    case unshared
    /// The product cannot be produced, for a reason that is the same for all attempts. The text contains the encoded
    /// error.
    case failed(String)
    /// The work was given up, or failed for a reason specific to the worker. Another attempt may succeed.
    case givenUp

    var text: String {
        switch self {
        case .stored: "stored"
        case .unshared: "unshared"
        case .failed(let reason): "failed \(reason)"
        case .givenUp: "given-up"
        }
    }

    init?(text: Substring) {
        let parts = text.split(separator: " ", maxSplits: 1)
        switch (parts.first, parts.count) {
        case ("stored", 1): self = .stored
        case ("unshared", 1): self = .unshared
        case ("failed", 2): self = .failed(String(parts[1]))
        case ("given-up", 1): self = .givenUp
        default: return nil
        }
    }
}

/// A message to a process.
enum LeaseMessage: Hashable, Sendable {
    /// The work under a lease has ended.
    case ended(lease: String, fence: Int, LeaseOutcome)
    /// A waiter with a higher priority waits for the work under a lease of this process.
    case escalate(lease: String, level: Int)

    init?(_ payload: [UInt8]) {
        let text = String(decoding: payload, as: UTF8.self)
        let parts = text.split(separator: " ", maxSplits: 3)
        guard parts.count >= 3 else { return nil }
        let lease = String(parts[1])
        switch parts[0] {
        case "ended":
            guard parts.count == 4, let fence = Int(parts[2]), let outcome = LeaseOutcome(text: parts[3]) else {
                return nil
            }
            self = .ended(lease: lease, fence: fence, outcome)
        case "raise":
            guard let level = Int(parts[2]) else { return nil }
            self = .escalate(lease: lease, level: level)
        default: return nil
        }
    }
}
