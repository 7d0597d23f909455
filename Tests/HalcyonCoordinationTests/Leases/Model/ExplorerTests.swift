import Testing

/// Explores every interleaving of a few processes and faults (docs/coalescing.md).
@Suite(.serialized) struct ExplorerTests {
    private static let one = ModelWorld.Job(items: [0])
    private static let reload = ModelWorld.Job(items: [0], isReload: true)
    private static let both = ModelWorld.Job(items: [0, 1])
    private static let reversed = ModelWorld.Job(items: [1, 0])

    private static let workerFaults: Set<Scenario.Fault> = [.crash, .expiry, .lostMessage, .leave]
    private static let redisFaults: Set<Scenario.Fault> = [.flush, .purge, .redisOutage, .expiry]

    static let scenarios: [Scenario] = [
        Scenario("three processes, no fault", [[one], [one], [one]], [], lateRenewals: 1),
        Scenario("two processes, two jobs each, no fault", [[one, reload], [one, one]], [], lateRenewals: 1),
        Scenario("two products in one attempt, no fault", [[both], [reversed]], [], lateRenewals: 1),
        Scenario("three attempts at two products, no fault", [[both], [reversed], [both]], []),
        Scenario("two processes, all faults", [[one], [one]], allFaults, lateRenewals: 1),
        Scenario("two processes, three faults", [[one], [one]], workerFaults, limit: 3),
        Scenario("reloads", [[reload], [reload]], redisFaults, lateRenewals: 1),
        Scenario("two jobs each, faults of workers", [[one, reload], [one, one]], workerFaults),
        Scenario("two jobs each, purges", [[one, reload], [one, one]], [.purge, .redisOutage, .failure]),
        Scenario("three processes, faults of workers", [[one], [one], [one]], workerFaults),
        Scenario("three processes, faults of Redis", [[one], [one], [one]], [.flush, .purge]),
        Scenario("two products, faults of workers", [[both], [reversed]], workerFaults),
        Scenario("two products, purges", [[both], [reversed]], [.purgeAll, .redisOutage]),
        Scenario(
            "two products, loss of Redis data", [[both], [reversed]], [.flush, .expiry], limit: 1, lateRenewals: 1),
        Scenario("a clock set back", [[one], [one], [one]], [.clockSetBack, .expiredFences, .expiry], stale: 5),
        Scenario("a clock set back, two products", [[both], [reversed]], [.clockSetBack, .expiredFences], stale: 5),
    ]

    /// All faults except a clock that is set back, because with a loss of data it makes older and newer work
    /// indistinguishable.
    private static let allFaults = Set(Scenario.Fault.allCases).subtracting([.clockSetBack, .expiredFences])

    @Test(arguments: scenarios) func everyInvariantHolds(in scenario: Scenario) async {
        let explorer = await Explorer(scenario)
        #expect(explorer.violations.isEmpty)
        #expect(explorer.stateCount > 100)
    }
}
