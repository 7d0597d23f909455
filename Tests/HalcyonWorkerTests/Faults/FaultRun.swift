import Glibc
import TestSupport

/// Faults of workers that hold leases, one after the other, and how soon others went on.
struct FaultRun: Sendable {
    /// What happens to a worker.
    enum Kind: Sendable {
        /// It is killed, and another one started when its work has been taken over. (One that comes sooner has Kafka hand out the
        /// partitions anew, and then who waited gives back its jobs.)
        case kill
        /// It stands still for longer than a lease.
        case stop
        /// It stands still until the group has gone on without it.
        case longStop
    }

    /// What was in its way.
    enum Phase: Sendable { case fetch, render }

    /// What came of one fault.
    struct Report: Sendable {
        let kind: Kind
        let phase: Phase
        /// Leases on sources that the worker held: each may cost one fetch more.
        let fetches: Int
        /// Products that were taken over, and how long each took.
        let takeovers: [Duration]
        /// How late the machine was meanwhile.
        let lag: Duration
        /// Products whose waiters left before the lease ended.
        let abandoned: Int
    }

    static let lease = Duration.seconds(2)

    let team: WorkerTeam
    let watch: LeaseWatch

    /// Waits for a worker that is at such work while another one waits for it, and lets the fault happen.
    func fault(_ kind: Kind, in phase: Phase, _ numbers: inout SeededNumbers) async throws -> Report {
        while true {
            let victim = try await candidate(phase, &numbers)
            let start = ContinuousClock.now
            victim.child.send(SIGSTOP)
            let view = try await watch.look()
            let awaited = awaited(of: victim, in: view)
            guard awaited.contains(where: { self.phase(of: $0, in: view) == phase }) else {
                // It was done in the meantime.
                victim.child.send(SIGCONT)
                continue
            }
            let fetches = view.held.count { $0.value.process == victim.name && $0.key.hasSuffix("}:source") }
            if kind == .kill { await team.kill(victim) }
            let (takeovers, lag) = try await takeovers(of: awaited, from: victim, in: view, since: start)
            switch kind {
            case .kill: try await team.add()
            case .stop: try await Task.sleep(until: start + Self.lease * 2, clock: .continuous)
            case .longStop: try await Task.sleep(until: start + .seconds(9), clock: .continuous)
            }
            victim.child.send(SIGCONT)
            try await everybodyWorks()
            return Report(
                kind: kind, phase: phase, fetches: fetches, takeovers: takeovers, lag: lag,
                abandoned: awaited.count - takeovers.count)
        }
    }

    private func candidate(_ phase: Phase, _ numbers: inout SeededNumbers) async throws -> WorkerTeam.Member {
        let end = ContinuousClock.now + .seconds(120)
        while .now < end {
            let view = watch.view
            let found = team.members.shuffled(using: &numbers).first { member in
                awaited(of: member, in: view).contains { self.phase(of: $0, in: view) == phase }
            }
            if let found { return found }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw NotInTime(description: "nobody holds a lease in the middle of \(phase)")
    }

    /// What a worker makes that another living one waits for.
    private func awaited(of member: WorkerTeam.Member, in view: LeaseView) -> [String] {
        view.held.filter { $0.value.process == member.name && isAwaited($0.key, by: member, in: view) }.map(\.key)
    }

    private func isAwaited(_ product: String, by member: WorkerTeam.Member, in view: LeaseView) -> Bool {
        let others = Set(team.members.map(\.name)).subtracting([member.name])
        return !others.isDisjoint(with: view.waiters[product] ?? [])
    }

    /// Whoever makes a result has the source fetched first, and renders when that is there.
    private func phase(of product: String, in view: LeaseView) -> Phase? {
        let source = product.prefix { $0 != "}" } + "}:source"
        guard let fetching = view.held[String(source)] else { return watch.isStored(String(source)) ? .render : nil }
        return fetching.process == view.held[product]?.process ? .fetch : nil
    }

    private func takeovers(
        of products: [String], from victim: WorkerTeam.Member, in view: LeaseView, since start: ContinuousClock.Instant
    ) async throws -> ([Duration], Duration) {
        var open = Set(products)
        var times: [Duration] = []
        let end = start + .seconds(60)
        while !open.isEmpty, .now < end {
            let now = watch.view
            for product in open {
                if let moment = watch.takeover(of: product, after: view.held[product]!.fence) {
                    times.append(start.duration(to: moment))
                    open.remove(product)
                } else if now.held[product] == nil, !isAwaited(product, by: victim, in: now) {
                    open.remove(product)
                }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        guard open.isEmpty else { throw NotInTime(description: "nobody took over \(open)") }
        let slowest = start + (times.max() ?? .zero)
        return (times, watch.lag(from: start, to: slowest))
    }

    /// Until each worker is seen at work, or waiting for others: the group has settled.
    private func everybodyWorks() async throws {
        var missing = Set(team.members.map(\.name))
        let end = ContinuousClock.now + .seconds(120)
        // What is there at first may be left of the time before.
        let old = watch.view
        while !missing.isEmpty {
            guard .now < end else {
                throw NotInTime(
                    description: "nothing to do for \(missing) of \(team.members.map(\.name)): \(watch.view)")
            }
            try await Task.sleep(for: .milliseconds(50))
            let view = watch.view
            for (product, held) in view.held where held.fence != old.held[product]?.fence {
                missing.remove(held.process)
            }
            for (product, waiting) in view.waiters { missing.subtract(waiting.subtracting(old.waiters[product] ?? [])) }
        }
    }
}
