import Testing

/// Every interleaving of a few processes, with a few faults (docs/coalescing.md).
@Suite(.serialized) struct ExplorerTests {
    private static let one = ModelWorld.Job(items: [0])
    private static let anew = ModelWorld.Job(items: [0], isReload: true)
    private static let both = ModelWorld.Job(items: [0, 1])
    private static let turned = ModelWorld.Job(items: [1, 0])

    private static let ofWorkers: Set<Scenario.Fault> = [.crash, .lapse, .lostMessage, .leave]
    private static let ofRedis: Set<Scenario.Fault> = [.flush, .purge, .without, .lapse]

    static let scenarios: [Scenario] = [
        Scenario("three processes, no fault", [[one], [one], [one]], [], lateRenewals: 1),
        Scenario("two processes, two jobs each, no fault", [[one, anew], [one, one]], [], lateRenewals: 1),
        Scenario("two products in one attempt, no fault", [[both], [turned]], [], lateRenewals: 1),
        Scenario("three attempts at two products, no fault", [[both], [turned], [both]], []),
        Scenario("two processes, all faults", [[one], [one]], allFaults, lateRenewals: 1),
        Scenario("two processes, three faults", [[one], [one]], ofWorkers, limit: 3),
        Scenario("to be made anew", [[anew], [anew]], ofRedis, lateRenewals: 1),
        Scenario("two jobs each, faults of workers", [[one, anew], [one, one]], ofWorkers),
        Scenario("two jobs each, purges", [[one, anew], [one, one]], [.purge, .without, .failure]),
        Scenario("three processes, faults of workers", [[one], [one], [one]], ofWorkers),
        Scenario("three processes, faults of Redis", [[one], [one], [one]], [.flush, .purge]),
        Scenario("two products, faults of workers", [[both], [turned]], ofWorkers),
        Scenario("two products, purges", [[both], [turned]], [.purgeOfAll, .without]),
        Scenario("two products, lost by Redis", [[both], [turned]], [.flush, .lapse], limit: 1, lateRenewals: 1),
        Scenario("a clock set back", [[one], [one], [one]], [.clockBack, .forgottenFences, .lapse], stale: 5),
        Scenario("a clock set back, two products", [[both], [turned]], [.clockBack, .forgottenFences], stale: 5),
    ]

    /// A Redis that loses everything while its clock goes back can keep nothing apart.
    private static let allFaults = Set(Scenario.Fault.allCases).subtracting([.clockBack, .forgottenFences])

    @Test(arguments: scenarios) func everyInvariantHolds(in scenario: Scenario) async {
        let explorer = await Explorer(scenario)
        #expect(explorer.broken.isEmpty)
        #expect(explorer.stateCount > 100)
    }
}
