import Concurrency
import TestSupport

/// Injects faults in a few parallel sequences, so that some overlap. The faults and their order in each sequence depend
/// only on the seed. Their timing also depends on the speed of the machine.
final class FaultSchedule: Sendable {
    private let environment: ChaosEnvironment
    private let kinds: [FaultKind]
    private let most: Int
    private let progress = Lock(Progress())
    /// The time for which ending a fault is retried.
    private let healingTime: Duration

    private struct Progress {
        var made = 0
        var isEnding = false
        /// The first failure to inject or end a fault.
        var failure: FaultError?
    }

    /// Creates a schedule.
    /// - Parameters:
    ///   - kinds: The kinds to draw from, by weight. Those that the environment does not support are left out.
    ///   - most: The maximum number of faults.
    ///   - healingTime: The time for which ending a fault is retried.
    init(_ environment: ChaosEnvironment, kinds: [FaultKind], most: Int, healingTime: Duration) {
        self.environment = environment
        self.healingTime = healingTime
        self.kinds = kinds.filter(environment.canInject)
        self.most = most
    }

    /// Stops ``run(lines:)`` after the current faults have ended.
    func end() { progress.withLock { $0.isEnding = true } }

    /// False after ``end()``, and after a fault that could not be injected or ended.
    var isRunning: Bool { progress.withLock { !$0.isEnding } }

    /// Injects faults until the maximum is reached or ``end()`` is called.
    ///
    /// If a fault cannot be injected or ended, no others are injected. Those of the other sequences end as usual, so
    /// that the environment is as healthy as possible afterwards.
    /// - Throws: ``FaultError`` for the first such fault.
    func run(lines: Int) async throws {
        guard !kinds.isEmpty else { return }
        await withDiscardingTaskGroup { group in
            for line in 0..<lines {
                group.addTask {
                    var numbers = SeededNumbers(seed: self.environment.plan.seed &* 1_000 &+ UInt64(line))
                    while self.goesOn { await self.next(&numbers) }
                }
            }
        }
        if let failure = progress.withLock({ $0.failure }) { throw failure }
    }

    private var goesOn: Bool { !Task.isCancelled && progress.withLock { !$0.isEnding && $0.made < most } }

    private func next(_ numbers: inout SeededNumbers) async {
        try? await Task.sleep(for: .milliseconds(Int.random(in: 200...2500, using: &numbers)))
        guard goesOn else { return }
        var draw = Int.random(in: 0..<kinds.reduce(0) { $0 + $1.weight }, using: &numbers)
        let kind = kinds.first { kind in
            draw -= kind.weight
            return draw < 0
        }
        let fault = kind!.draw(workers: environment.plan.workers, &numbers)
        guard environment.victims.take(fault.victims) else { return }
        // Another sequence may have reached the maximum meanwhile.
        guard
            progress.withLock({ progress in
                let goesOn = !progress.isEnding && progress.made < most
                if goesOn { progress.made += 1 }
                return goesOn
            })
        else { return environment.victims.release(fault.victims) }
        await inject(fault)
    }

    /// Injects a fault. After a failure its victims stay taken, because they may still be affected.
    private func inject(_ fault: any Fault) async {
        let begin = environment.ledger.now
        do throws(FaultError) {
            try await perform(fault)
        } catch {
            say("  \(error)")
            progress.withLock { progress in
                progress.isEnding = true
                if progress.failure == nil { progress.failure = error }
            }
            // Faults of the other sequences may be waiting for a broker.
            await environment.abortTraffic()
            return
        }
        environment.victims.release(fault.victims)
        let record = FaultRecord(
            kind: fault.kind, what: fault.what, begin: begin, end: environment.ledger.now,
            disturbances: fault.disturbances, hitsRedis: fault.kind.hitsRedis)
        environment.ledger.add(record)
        say("  \(record.description)")
    }

    /// Begins a fault, waits for its length, and ends it, also if it could not begin or the run was cancelled.
    private func perform(_ fault: any Fault) async throws(FaultError) {
        var failure: FaultError?
        do {
            try await fault.begin(environment)
            try await Task.sleep(for: fault.length)
        } catch is CancellationError {
            // The run cannot continue.
        } catch {
            failure = FaultError(fault, "injected", error)
        }
        try await end(fault)
        if let failure { throw failure }
    }

    /// Ends a fault. After an error it tries again every second, for ``healingTime``.
    private func end(_ fault: any Fault) async throws(FaultError) {
        let end = ContinuousClock.now + healingTime
        var attempts = 0
        while true {
            attempts += 1
            do {
                // A cancellation of this run must not reach the servers that are started again.
                return try await Task { [environment] in try await fault.end(environment) }.value
            } catch {
                let failure = FaultError(fault, "ended", error)
                // A single attempt may take longer than the time for all of them.
                guard ContinuousClock.now < end || attempts < 2 else { throw failure }
                say("  \(failure); trying again")
            }
            await Task { try? await Task.sleep(for: .seconds(1)) }.value
        }
    }
}

/// A fault could not be injected or ended, so that the guarantees cannot be checked.
public struct FaultError: Error, CustomStringConvertible {
    /// The fault and the error.
    public let description: String

    init(_ fault: any Fault, _ step: String, _ error: any Error) {
        description = "\(fault.kind.rawValue) \(fault.what) cannot be \(step): \(error)"
    }
}
