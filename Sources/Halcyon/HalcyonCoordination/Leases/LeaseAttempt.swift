import Threads

/// One attempt to get products made: it asks for leases, waits for those of others, and gives back its own.
///
/// The order of calls: ``ask(_:)``; what is ``LeaseAnswer/mine(_:)`` is made and ``finish(_:_:)``ed; else ``wait(for:)`` and ask again;
/// at the end ``end()``, which ``Leases/attempting(_:_:_:_:)`` sees to.
public final class LeaseAttempt: Sendable {
    private struct State {
        var name = String(UInt64.random(in: .min ... .max), radix: 36)
        var held: [LeaseName: Lease] = [:]
        /// Who held a product when it was last asked for.
        var holders: [LeaseName: Holder] = [:]
        /// Asked for without an answer: some may have been given to this attempt.
        var unanswered: Set<LeaseName> = []
        /// When what is to be made anew was first asked for: the fence of who made it then.
        var since: [LeaseName: Int] = [:]
        /// What was held under this name and given back.
        var returned: Set<LeaseName> = []

        /// Who asks again for what it gave back is somebody new: what is still on its way of its old lease concerns it no more.
        /// - Returns: the old name.
        mutating func renewName(for wanted: [LeaseName]) -> String? {
            guard held.isEmpty, !returned.isDisjoint(with: wanted) else { return nil }
            let old = name
            (name, returned) = (State().name, [])
            return old
        }
    }

    private let leases: Leases
    private let watch: Watch
    private let metrics: LeaseMetrics.Kind
    private let urgency: Urgency
    private let state = Lock(State())

    init(_ leases: Leases, _ watch: Watch, _ metrics: LeaseMetrics.Kind, _ urgency: Urgency) {
        self.leases = leases
        self.watch = watch
        self.metrics = metrics
        self.urgency = urgency
    }

    /// Asks for products. Who wants one made anew (``Seen/anything``) is content with any that was begun after it first asked.
    ///
    /// While Redis does not answer this takes as long as ``LeaseOptions/patience``.
    /// - Returns: what to do about each, in their order.
    /// - Throws: `CancellationError`.
    public func ask(_ wanted: [(name: LeaseName, seen: Seen)]) async throws -> [LeaseAnswer] {
        let (name, old, waited, since) = state.withLock { state in
            let old = state.renewName(for: wanted.map(\.name))
            state.unanswered.formUnion(wanted.map(\.name))
            return (state.name, old, old == nil ? [] : Array(state.holders.keys), state.since)
        }
        if let old { await leases.leave(waited, attempt: old) }
        let known = wanted.map { name, seen in
            (name: name, seen: seen == .anything ? since[name].map { .version($0) } ?? seen : seen)
        }
        let answers = try await leases.enter(known, attempt: name, level: urgency.level)
        state.withLock { $0.unanswered.subtract(wanted.map(\.name)) }
        for (want, answer) in zip(wanted, answers) { note(answer, want) }
        return answers
    }

    private func note(_ answer: LeaseAnswer, _ want: (name: LeaseName, seen: Seen)) {
        let name = want.name
        func begin(_ state: inout State, _ fence: Int) {
            if want.seen == .anything, state.since[name] == nil { state.since[name] = fence }
        }
        switch answer {
        case .mine(let lease):
            let isTakenOver = state.withLock { state in
                begin(&state, lease.fence)
                state.held[name] = lease
                return state.holders.removeValue(forKey: name) != nil
            }
            (isTakenOver ? metrics.takenOver : metrics.taken).add()
            leases.hold(lease, urgency)
        case .held(let holder):
            let isFirst = state.withLock { state in
                begin(&state, holder.fence)
                return state.holders.updateValue(holder, forKey: name) == nil
            }
            if isFirst { metrics.waited.add() }
        case .without: metrics.without.add()
        case .there: state.withLock { $0.holders[name] = nil }
        }
    }

    /// What the holders told of some of the products that were waited for.
    public typealias News = [LeaseName: LeaseOutcome]

    /// Waits until something is heard of one of the products, or until it is time to ask again.
    /// - Returns: what their present holders told; of what was told by others, or by nobody, nothing.
    /// - Throws: `CancellationError`.
    public func wait(for names: [LeaseName]) async throws -> News {
        let holders = state.withLock { $0.holders }
        let soonest = names.compactMap { holders[$0]?.left }.min() ?? .zero
        // Not all processes at the same moment.
        let limit = min(soonest, leases.options.recheck) + leases.options.recheck * Double.random(in: 0.01...0.1)
        let hints = try await watch.next(atMost: limit)
        var news = News()
        for name in names {
            if let hint = hints.last(where: { $0.lease == name.lease && $0.fence == holders[name]?.fence }) {
                news[name] = hint.outcome
            }
        }
        return news
    }

    /// Whether anybody else waits for what is made under one of the leases that are held. Without one nobody can. If nobody does, all of
    /// them are at their end, and whoever comes now starts afresh: the work must stop.
    public func isWantedElsewhere() async -> Bool {
        let held = state.withLock { Array($0.held.values) }
        if held.isEmpty { return false }
        // Who asks this wants nothing any more, and must not keep others at work.
        let (name, waited) = state.withLock { ($0.name, Array($0.holders.keys)) }
        await leases.leave(waited, attempt: name)
        guard let answer = await leases.areWanted(held) else { return false }
        if !answer { state.withLock { state in for lease in held { state.held[lease.name] = nil } } }
        return answer
    }

    /// Gives a lease back, and tells those who wait what came of it.
    /// - Parameter deaths: how many deaths whoever has it next is told of (``Lease/deaths``). Unless it is said, as many as before
    ///   where the work was given up, and else none.
    public func finish(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async {
        state.withLock { state in
            state.held[lease.name] = nil
            state.returned.insert(lease.name)
        }
        await leases.release(lease, outcome, deaths: deaths)
    }

    /// Something newer was there when what had been made under a lease was to be stored.
    public func wasFencedOut() { metrics.fencedOut.add() }

    /// Gives back what is still held, and waits for nothing any more.
    func end() async {
        watch.end()
        let (name, held, left) = state.withLock { state in
            defer { (state.held, state.holders, state.unanswered) = ([:], [:], []) }
            let unknown = state.unanswered.filter { state.held[$0] == nil }
            let perhaps = unknown.map { leases.perhaps($0, attempt: state.name) }
            return (state.name, Array(state.held.values) + perhaps, state.unanswered.union(state.holders.keys))
        }
        for lease in held { await leases.release(lease, .givenUp) }
        await leases.leave(Array(left), attempt: name)
    }
}

/// What came of the work under a lease, as those are told who wait for it. It is a hint: whoever misses it looks again soon.
public enum LeaseOutcome: Hashable, Sendable {
    /// The product is there.
    case stored
    /// The product cannot be shared: whoever wants it makes it.
    case unshared
    /// It cannot be made, for a reason that holds for everybody; the text says which, in words of those who wait.
    case failed(String)
    /// The work was given up, or failed for a reason of the worker's own: somebody else may try.
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
    /// The work under a lease of this process is more urgent for somebody who waits.
    case raise(lease: String, level: Int)

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
            self = .raise(lease: lease, level: level)
        default: return nil
        }
    }
}
