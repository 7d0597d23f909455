import Glibc
import TestSupport

/// Injects faults into workers that hold leases, one after the other, and measures how soon others take over.
struct FaultInjector: Sendable {
    /// The kind of fault.
    enum Kind: Sendable {
        /// The worker is killed, and another one is started after its work has been taken over. (Starting it sooner
        /// would cause a rebalance, in which waiting jobs are returned to the queue.)
        case kill
        /// The worker is paused for longer than a lease.
        case stop
        /// The worker is paused until the group has continued without it.
        case longStop
    }

    /// The phase of the work that the fault interrupts.
    enum Phase: Sendable { case fetch, render }

    /// The outcome of one fault.
    struct Report: Sendable {
        let kind: Kind
        let phase: Phase
        /// The number of leases on sources that the worker held. Each may cost one more fetch.
        let fetches: Int
        /// The time that each takeover of a lease took.
        let takeovers: [Duration]
        /// The lag of the machine meanwhile.
        let lag: Duration
        /// The number of keys whose waiters left before the lease ended.
        let abandoned: Int

        /// True if there were takeovers, each within 1.5 s after the end of the lease, plus the lag of the machine.
        var isInTime: Bool {
            !takeovers.isEmpty && takeovers.allSatisfy { $0 <= FaultInjector.lease + .milliseconds(1500) + lag }
        }
    }

    static let lease = Duration.seconds(2)

    let processes: WorkerProcesses
    let monitor: LeaseMonitor

    /// Waits until a worker is in this phase while another one waits for it, and injects the fault.
    func inject(_ kind: Kind, in phase: Phase, _ numbers: inout SeededNumbers) async throws -> Report {
        while true {
            let victim = try await candidate(phase, &numbers)
            let start = ContinuousClock.now
            victim.child.send(SIGSTOP)
            let snapshot = try await monitor.poll()
            let awaited = awaited(of: victim, in: snapshot)
            guard awaited.contains(where: { self.phase(of: $0, in: snapshot) == phase }) else {
                // The worker has finished in the meantime.
                victim.child.send(SIGCONT)
                continue
            }
            let fetches = snapshot.holders.count { $0.value.process == victim.name && $0.key.hasSuffix("}:source") }
            if kind == .kill { await processes.kill(victim) }
            let (takeovers, lag) = try await takeovers(of: awaited, from: victim, in: snapshot, since: start)
            switch kind {
            case .kill: try await processes.add()
            case .stop: try await Task.sleep(until: start + Self.lease * 2, clock: .continuous)
            case .longStop: try await Task.sleep(until: start + .seconds(9), clock: .continuous)
            }
            victim.child.send(SIGCONT)
            try await waitForAllWorkers()
            return Report(
                kind: kind, phase: phase, fetches: fetches, takeovers: takeovers, lag: lag,
                abandoned: awaited.count - takeovers.count)
        }
    }

    private func candidate(_ phase: Phase, _ numbers: inout SeededNumbers) async throws -> WorkerProcesses.Member {
        let end = ContinuousClock.now + .patience
        while .now < end {
            let snapshot = monitor.snapshot
            let found = processes.members.shuffled(using: &numbers).first { member in
                awaited(of: member, in: snapshot).contains { self.phase(of: $0, in: snapshot) == phase }
            }
            if let found { return found }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw ConditionTimeout(description: "no worker holds an awaited lease in phase \(phase)")
    }

    /// Returns the keys whose leases a worker holds and another running one waits for.
    private func awaited(of member: WorkerProcesses.Member, in snapshot: LeaseSnapshot) -> [String] {
        snapshot.holders
            .filter { $0.value.process == member.name && isAwaited($0.key, by: member, in: snapshot) }
            .map(\.key)
    }

    private func isAwaited(_ key: String, by member: WorkerProcesses.Member, in snapshot: LeaseSnapshot) -> Bool {
        let others = Set(processes.members.map(\.name)).subtracting([member.name])
        return !others.isDisjoint(with: snapshot.waiters[key] ?? [])
    }

    /// Returns the phase of the work on a result: its source is fetched first, and the result is rendered once the
    /// source is stored.
    private func phase(of key: String, in snapshot: LeaseSnapshot) -> Phase? {
        let source = key.prefix { $0 != "}" } + "}:source"
        guard let fetching = snapshot.holders[String(source)] else {
            return monitor.isStored(String(source)) ? .render : nil
        }
        return fetching.process == snapshot.holders[key]?.process ? .fetch : nil
    }

    private func takeovers(
        of keys: [String], from victim: WorkerProcesses.Member, in snapshot: LeaseSnapshot,
        since start: ContinuousClock.Instant
    ) async throws -> ([Duration], Duration) {
        var open = Set(keys)
        var times: [Duration] = []
        let end = start + .seconds(60)
        while !open.isEmpty, .now < end {
            let now = monitor.snapshot
            for key in open {
                if let moment = monitor.takeover(of: key, after: snapshot.holders[key]!.fence) {
                    times.append(start.duration(to: moment))
                    open.remove(key)
                } else if now.holders[key] == nil, !isAwaited(key, by: victim, in: now) {
                    open.remove(key)
                }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        guard open.isEmpty else { throw ConditionTimeout(description: "no worker took over \(open)") }
        let slowest = start + (times.max() ?? .zero)
        return (times, monitor.lag(from: start, to: slowest))
    }

    /// Waits until each worker has been seen working or waiting for others, that is until the group has settled.
    private func waitForAllWorkers() async throws {
        var missing = Set(processes.members.map(\.name))
        let end = ContinuousClock.now + .patience
        // The first snapshot may show leases from before the fault.
        let old = monitor.snapshot
        while !missing.isEmpty {
            guard .now < end else {
                throw ConditionTimeout(
                    description: "\(missing) of \(processes.members.map(\.name)) have no work: \(monitor.snapshot)")
            }
            try await Task.sleep(for: .milliseconds(50))
            let snapshot = monitor.snapshot
            for (key, holder) in snapshot.holders where holder.fence != old.holders[key]?.fence {
                missing.remove(holder.process)
            }
            for (key, waiting) in snapshot.waiters { missing.subtract(waiting.subtracting(old.waiters[key] ?? [])) }
        }
    }
}
