import TestSupport
import Threads

/// Makes faults, one after the other on each of a few lines, so that some meet; the same ones in the same order on each line for the same
/// seed. When they come also depends on how long the machine takes.
final class FaultSchedule: Sendable {
    private let ground: Ground
    private let kinds: [FaultKind]
    private let most: Int
    private let taken = Lock<Set<Victim>>([])
    private let progress = Lock((made: 0, isEnding: false))

    /// - Parameters:
    ///   - kinds: those that are drawn, by their weights.
    ///   - most: how many are made.
    init(_ ground: Ground, kinds: [FaultKind], most: Int) {
        self.ground = ground
        self.kinds = kinds.filter { kind in
            switch kind {
            // Without a disk of its own none can be full.
            case .diskFull: ground.disk != nil
            case .transactionPause: ground.plan.mode == .exactlyOnce
            default: true
            }
        }
        self.most = most
    }

    /// Has ``run(lines:)`` return when those under way are mended.
    func end() { progress.withLock { $0.isEnding = true } }

    /// Makes faults until there have been as many as wanted, or ``end()``.
    /// - Throws: what a server said that does not come back.
    func run(lines: Int) async throws {
        guard !kinds.isEmpty else { return }
        try await withThrowingDiscardingTaskGroup { group in
            for line in 0..<lines {
                group.addTask {
                    var numbers = SeededNumbers(seed: self.ground.plan.seed &* 1_000 &+ UInt64(line))
                    while self.goesOn { try await self.next(&numbers) }
                }
            }
        }
    }

    private var goesOn: Bool { progress.withLock { !$0.isEnding && $0.made < most } }

    private func next(_ numbers: inout SeededNumbers) async throws {
        try await Task.sleep(for: .milliseconds(Int.random(in: 200...2500, using: &numbers)))
        var draw = Int.random(in: 0..<kinds.reduce(0) { $0 + $1.weight }, using: &numbers)
        let kind = kinds.first { kind in
            draw -= kind.weight
            return draw < 0
        }
        let fault = kind!.draw(workers: ground.plan.workers, &numbers)
        let isFree = taken.withLock { taken in
            guard taken.isDisjoint(with: fault.victims) else { return false }
            taken.formUnion(fault.victims)
            return true
        }
        guard isFree else { return }
        defer { taken.withLock { $0.subtract(fault.victims) } }
        // Another line may have made the last one meanwhile.
        guard
            progress.withLock({ progress in
                let goesOn = !progress.isEnding && progress.made < most
                if goesOn { progress.made += 1 }
                return goesOn
            })
        else { return }
        let begin = ground.ledger.now
        try await fault.begin(ground)
        try await Task.sleep(for: fault.length)
        try await fault.end(ground)
        let record = FaultRecord(
            kind: kind!, what: fault.what, begin: begin, end: ground.ledger.now, disturbances: fault.disturbances,
            hitsRedis: kind!.hitsRedis)
        ground.ledger.add(record)
        say("  \(record.description)")
    }
}
