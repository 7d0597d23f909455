import Threads

/// What all scenarios have in common: a ground, a line about progress now and then, the summary.
enum Scenario {
    /// Makes a ground, runs `body` on it and prints the summary.
    /// - Parameter body: gives back the promises of its own that were broken.
    /// - Returns: whether every promise was kept.
    static func on(_ plan: Ground.Plan, _ body: (Ground) async throws -> [String]) async throws -> Bool {
        let ground = try await Ground(plan)
        if ground.disk == nil { say("no disk of its own can be mounted here: none will be full") }
        let progress = Task { try await report(ground) }
        let result: Result<[String], any Error>
        do {
            result = .success(try await body(ground))
        } catch {
            result = .failure(error)
        }
        progress.cancel()
        await ground.closeSeats()
        // What a worker told in its last moment is there for the reader of events soon.
        try? await Task.sleep(for: .seconds(1))
        let summary = Summary(audit: ground.audit, ledger: ground.ledger, journal: ground.journal)
        let crashes = ground.journal.ends.filter { $0.contains("signal") }
        await ground.remove()
        if let path = plan.books { Books(ledger: ground.ledger).write(to: path) }
        summary.lines.forEach(say)
        var broken = summary.audit.broken + (try result.get())
        if !crashes.isEmpty { broken.append("\(crashes.count) workers crashed") }
        for promise in broken { say("BROKEN: \(promise)") }
        if broken.isEmpty { say("every promise was kept") }
        return broken.isEmpty
    }

    private static func report(_ ground: Ground) async throws {
        while true {
            try await Task.sleep(for: .seconds(10))
            let ledger = ground.ledger
            say("\(seconds(ledger.now)): \(ledger.count) jobs, \(ledger.open) open, \(ledger.faults.count) faults")
        }
    }
}
