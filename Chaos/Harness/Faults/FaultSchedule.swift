import Concurrency
import TestSupport

/// Injects faults in a few parallel sequences, so that some overlap. The faults and their order in each sequence depend
/// only on the seed. Their timing also depends on the speed of the machine.
final class FaultSchedule: Sendable {
    private let environment: ChaosEnvironment
    private let kinds: [FaultKind]
    private let most: Int
    private let taken = Lock<Set<Victim>>([])
    private let progress = Lock((made: 0, isEnding: false))

    /// Creates a schedule.
    /// - Parameters:
    ///   - kinds: The kinds to draw from, by weight.
    ///   - most: The maximum number of faults.
    init(_ environment: ChaosEnvironment, kinds: [FaultKind], most: Int) {
        self.environment = environment
        self.kinds = kinds.filter { kind in
            switch kind {
            // Only a scratch disk may be filled.
            case .diskFull: environment.disk != nil
            case .transactionPause: environment.plan.mode == .exactlyOnce
            default: true
            }
        }
        self.most = most
    }

    /// Stops ``run(lines:)`` after the current faults have ended.
    func end() { progress.withLock { $0.isEnding = true } }

    /// Injects faults until the maximum is reached or ``end()`` is called.
    /// - Throws: The error of a server that cannot be restarted.
    func run(lines: Int) async throws {
        guard !kinds.isEmpty else { return }
        try await withThrowingDiscardingTaskGroup { group in
            for line in 0..<lines {
                group.addTask {
                    var numbers = SeededNumbers(seed: self.environment.plan.seed &* 1_000 &+ UInt64(line))
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
        let fault = kind!.draw(workers: environment.plan.workers, &numbers)
        let isFree = taken.withLock { taken in
            guard taken.isDisjoint(with: fault.victims) else { return false }
            taken.formUnion(fault.victims)
            return true
        }
        guard isFree else { return }
        defer { taken.withLock { $0.subtract(fault.victims) } }
        // Another sequence may have reached the maximum meanwhile.
        guard
            progress.withLock({ progress in
                let goesOn = !progress.isEnding && progress.made < most
                if goesOn { progress.made += 1 }
                return goesOn
            })
        else { return }
        let begin = environment.ledger.now
        try await fault.begin(environment)
        try await Task.sleep(for: fault.length)
        try await fault.end(environment)
        let record = FaultRecord(
            kind: kind!, what: fault.what, begin: begin, end: environment.ledger.now, disturbances: fault.disturbances,
            hitsRedis: kind!.hitsRedis)
        environment.ledger.add(record)
        say("  \(record.description)")
    }
}
