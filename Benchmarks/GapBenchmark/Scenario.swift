import Glibc

/// A change to the workers of a cluster.
enum Scenario: String, CaseIterable, Sendable {
    case killRestart = "kill-restart"
    case kill
    case stop
    case heartbeat
    case scale

    /// The title of its row.
    var title: String {
        switch self {
        case .killRestart: "`kill -9`, restart after 1 s"
        case .kill: "`kill -9`, no restart"
        case .stop: "SIGSTOP, SIGCONT after 20 s"
        case .heartbeat: "rolling restart"
        case .scale: "3 → 6 → 3 workers"
        }
    }

    /// Returns when the partitions are assigned to the workers that are left.
    func play(on cluster: Cluster) async throws -> [Disruption] {
        let workers = cluster.workers
        switch self {
        case .killRestart:
            let disruption = Disruption(of: [workers[0]])
            await cluster.end(workers[0], by: SIGKILL)
            try await Task.sleep(for: .seconds(1))
            try await cluster.add()
            try await cluster.settle()
            return [disruption]
        case .kill:
            let disruption = Disruption(of: [workers[0]])
            await cluster.end(workers[0], by: SIGKILL)
            try await cluster.settle()
            return [disruption]
        case .stop:
            let disruption = Disruption(of: [workers[0]])
            workers[0].process.send(SIGSTOP)
            try await Task.sleep(for: .seconds(20))
            workers[0].process.send(SIGCONT)
            try await cluster.settle()
            return [disruption]
        case .heartbeat:
            var disruptions: [Disruption] = []
            for worker in workers {
                disruptions.append(Disruption(of: [worker]))
                await cluster.end(worker, by: SIGTERM)
                try await cluster.add()
                try await cluster.settle()
            }
            return disruptions
        case .scale:
            // A worker that joins stops no other one, so no partition is out of the count.
            let growth = Disruption(of: [])
            for _ in workers { try await cluster.add() }
            try await cluster.settle()
            try await Task.sleep(for: .seconds(5))
            let added = cluster.workers.filter { worker in !workers.contains { $0 === worker } }
            let shrinkage = Disruption(of: added)
            await withTaskGroup(of: Void.self) { group in
                for worker in added { group.addTask { await cluster.end(worker, by: SIGTERM) } }
            }
            try await cluster.settle()
            return [growth, shrinkage]
        }
    }
}

/// The moment at which workers were killed, stopped or told to leave.
struct Disruption: Sendable {
    let time: ContinuousClock.Instant
    /// The partitions that were theirs.
    let partitions: Set<Int32>

    /// A disruption of these workers, now.
    init(of workers: [GapWorker]) {
        time = .now
        partitions = workers.reduce(into: []) { $0.formUnion($1.partitions) }
    }
}
