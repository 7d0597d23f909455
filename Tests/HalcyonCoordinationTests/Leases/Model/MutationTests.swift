import Testing

/// The explorer can see what it looks for: with any part of the protocol left out some invariant breaks.
@Suite(.serialized) struct MutationTests {
    private static let one = ModelWorld.Job(items: [0])
    private static let anew = ModelWorld.Job(items: [0], isReload: true)
    private static let both = ModelWorld.Job(items: [0, 1])
    private static let second = ModelWorld.Job(items: [1])
    private static let turned = ModelWorld.Job(items: [1, 0])

    /// Where it shows, and what breaks first.
    private static func place(of mutation: Mutation) -> (Scenario, Invariant) {
        let two = [[one], [one]]
        return switch mutation {
        case .looksNotAgain: (Scenario("", two, []), .worksAreBounded)
        case .releasesWhatIsOthers: (Scenario("", two, [.lapse], limit: 1), .ownersEndTheirLeases)
        case .renewsWhatIsGone: (Scenario("", two, [.lapse], lateRenewals: 1), .newestHolds)
        case .endsWithoutClosing: (Scenario("", two, [], lateRenewals: 1), .leasesAreWorkedOn)
        case .storesWithoutFence: (Scenario("", two, [.lapse, .purge]), .nothingOlderOverNewer)
        case .forgetsFloors: (Scenario("", two, [.purge]), .purgedStaysAway)
        case .abandonsWithoutLooking: (Scenario("", two, [.leave]), .goesOnForOthers)
        case .abandonsOneByOne: (Scenario("", [[turned], [one], [second]], [.leave], limit: 1), .worksAreBounded)
        case .waitsByProcess: (Scenario("", [[one], [one, one]], [.leave]), .goesOnForOthers)
        case .waitsForThePurged: (Scenario("", two, [.purge], limit: 1), .lateJoinersStartAfresh)
        case .fenceBelowTheProduct: (Scenario("", two, [.clockBack, .forgottenFences], stale: 5), .worksAreBounded)
        case .purgesTheLastFenceNot: (Scenario("", two, [.clockBack, .purge], stale: 5), .purgedStaysAway)
        case .countsEnds: (Scenario("", two, [.leave], limit: 1), .endsAreNoDeaths)
        case .countsThePurged: (Scenario("", two, [.lapse, .purge]), .endsAreNoDeaths)
        case .takeoversForget: (Scenario("", [[one], [one], [one]], [.lapse]), .deathsAreRemembered)
        case .forgivesWhatIsGivenUp: (Scenario("", [[one], [one], [one]], [.crash, .leave]), .deathsAreRemembered)
        case .onlyMessagesWake: (Scenario("", two, [.lostMessage]), .everyJobEnds)
        case .waitsWhileHolding: (Scenario("", [[one], [both]], []), .waitersHoldNothing)
        case .keepsWhatItDoesNotKnowOf: (Scenario("", two, [.leave]), .leasesAreWorkedOn)
        case .leavesWithoutLeaving: (Scenario("", [[one], [both], [second]], [.leave]), .endsWithTheLast)
        case .neverHasEnough: (Scenario("", [[one, anew], [one, one]], [.purge]), .worksAreBounded)
        case .keepsItsName: (Scenario("", two, [.purge, .flush], lateRenewals: 1), .nothingOlderOverNewer)
        }
    }

    @Test(arguments: Mutation.allCases) func everyPartIsNeeded(_ mutation: Mutation) async {
        var (scenario, invariant) = Self.place(of: mutation)
        let whole = await Explorer(scenario)
        #expect(whole.broken.isEmpty, "nothing breaks while it is there")
        scenario.mutation = mutation
        let explorer = await Explorer(scenario, until: invariant)
        #expect(explorer.broken[invariant] != nil)
    }
}
