import HalcyonCoordination
import Redis
import TestSupport
import Testing

/// The invariants of docs/coalescing.md in real time, on a real Redis, with reproducible faults.
@Suite(.limitedParallelism, .extended) struct LeaseSoakTests {
    private static let processes = 4

    private func run(
        products: Int, _ options: LeaseOptions, _ faults: @escaping @Sendable (SoakFixture) async throws -> Void
    ) async throws -> SoakFixture.Log {
        try await LeaseFixture.with(.server, ["--enable-debug-command", "yes"]) { fixture in
            let soak = SoakFixture(fixture, products: products, options)
            try await withThrowingTaskGroup { group in
                for number in 0..<Self.processes { group.addTask { try await soak.runProcess(number) } }
                let injector = Task { try await faults(soak) }
                try await group.waitForAll()
                injector.cancel()
                _ = await injector.result
            }
            return soak.log.withLock { $0 }
        }
    }

    @Test func producesEachProductOnceWithoutFaults() async throws {
        let log = try await run(products: 40, LeaseFixture.patient) { _ in }
        #expect(log.executions == Array(repeating: 1, count: 40))
        #expect(log.completedJobs == 40 * Self.processes)
    }

    @Test(arguments: [1, 2] as [UInt64]) func completesEveryJobUnderFaultsWithoutStaleResults(seed: UInt64) async throws
    {
        var options = LeaseOptions()
        options.duration = .milliseconds(1000)
        options.recheck = .milliseconds(200)
        let log = try await run(products: 40, options) { soak in
            var numbers = SeededNumbers(seed: seed)
            while !Task.isCancelled {
                try await Task.sleep(for: .milliseconds(Int.random(in: 50..<250, using: &numbers)))
                soak.log.withLock { $0.faults += 1 }
                let process = Int.random(in: 0..<Self.processes, using: &numbers)
                switch Int.random(in: 0..<6, using: &numbers) {
                case 0: soak.log.withLock { $0.pendingFaults[process] = .crash }
                case 1: soak.log.withLock { $0.pendingFaults[process] = .pause }
                case 2: try await soak.flush()
                case 3: _ = try await soak.fixture.redis.send(["CLIENT", "PAUSE", "300", "ALL"])
                case 4: _ = try await soak.fixture.redis.send(["DEBUG", "SLEEP", "0.3"])
                default: try await soak.purge()
                }
            }
        }
        #expect(log.completedJobs == 40 * Self.processes)
        #expect(log.faults > 3)
        for stored in log.stored {
            #expect(stored.previousFence <= stored.fence, "a newer product was overwritten: \(stored)")
            let flushed = log.flushes.last { $0 <= stored.storedAt } ?? 0
            let purged = log.purges.last { $0 < stored.storedAt && $0 > flushed } ?? 0
            #expect(stored.fence == 0 || stored.fence >= stored.startedAt)
            #expect(stored.startedAt > purged || stored.fence > purged, "a purged product was restored: \(stored)")
        }
        // Each fault can cause one more execution per process.
        #expect(log.executions.reduce(0, +) <= 40 + log.faults * Self.processes)
    }
}
