import Concurrency

/// The common part of all scenarios: the environment, progress reports and the summary.
enum Scenario {
    /// Creates an environment, runs `body` in it and prints the summary.
    /// - Parameter body: Returns descriptions of additional violated guarantees.
    /// - Returns: True if no guarantee was violated.
    /// - Throws: An error if the guarantees cannot be checked.
    static func on(
        _ plan: ChaosEnvironment.Plan, _ body: @escaping @Sendable (ChaosEnvironment) async throws -> [String]
    ) async throws -> Bool {
        let environment = try await ChaosEnvironment(plan)
        let progress = Task { try await report(environment) }
        let result: Result<[String], any Error>
        do {
            result = .success(
                try await failing(with: environment) {
                    try await environment.startWorkers()
                    return try await body(environment)
                })
        } catch {
            result = .failure(error)
        }
        progress.cancel()
        await environment.closeSeats()
        // The event reader needs a moment for the last events of the workers.
        try? await Task.sleep(for: .seconds(1))
        let stored: Result<StoreAudit?, any Error>
        do {
            stored = .success(try await environment.auditStore())
        } catch {
            stored = .failure(error)
        }
        // An error is thrown below, after the summary.
        let storeAudit = (try? stored.get()) ?? nil
        let summary = Summary(
            audit: environment.audit, batches: environment.batchAudit, store: storeAudit, ledger: environment.ledger,
            journal: environment.journal)
        let crashes = environment.journal.ends.filter { $0.contains("signal") }
        await environment.remove()
        if let path = plan.books { LedgerExport(ledger: environment.ledger).write(to: path) }
        summary.lines.forEach(say)
        var broken = summary.audit.broken + (try result.get()) + (try stored.get()?.broken ?? [])
        if summary.hasBatches { broken += summary.batches.broken }
        if !crashes.isEmpty { broken.append("\(crashes.count) workers crashed") }
        for promise in broken { say("VIOLATED: \(promise)") }
        if broken.isEmpty { say("no guarantee was violated") }
        return broken.isEmpty
    }

    /// Runs `body`, and cancels it if the environment fails.
    private static func failing(
        with environment: ChaosEnvironment, _ body: @escaping @Sendable () async throws -> [String]
    ) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            group.addTask { try await body() }
            group.addTask {
                do {
                    try await environment.waitForFailure()
                } catch {
                    if !Task.isCancelled { await environment.abortTraffic() }
                    throw error
                }
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    private static func report(_ environment: ChaosEnvironment) async throws {
        while true {
            try await Task.sleep(for: .seconds(10))
            let ledger = environment.ledger
            say("\(seconds(ledger.now)): \(ledger.count) jobs, \(ledger.open) open, \(ledger.faults.count) faults")
        }
    }
}
