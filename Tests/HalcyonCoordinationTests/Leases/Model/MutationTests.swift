import Testing

/// Shows that the explorer detects violations: without any part of the protocol, an invariant breaks.
@Suite(.serialized) struct MutationTests {
    private static let one = ModelWorld.Job(items: [0])
    private static let reload = ModelWorld.Job(items: [0], isReload: true)
    private static let both = ModelWorld.Job(items: [0, 1])
    private static let second = ModelWorld.Job(items: [1])
    private static let reversed = ModelWorld.Job(items: [1, 0])

    /// Returns a scenario that reveals the mutation, and the invariant that it breaks.
    private static func scenario(for mutation: Mutation) -> (Scenario, Invariant) {
        let two = [[one], [one]]
        return switch mutation {
        case .skipsAvailabilityCheck: (Scenario("", two, []), .executionsAreBounded)
        case .releasesForeignLeases: (Scenario("", two, [.expiry], limit: 1), .onlyOwnersEndLeases)
        case .renewsOutdatedLeases: (Scenario("", two, [.expiry], lateRenewals: 1), .ownerHasTheNewestFence)
        case .doesNotCloseFences: (Scenario("", two, [], lateRenewals: 1), .leaseOwnersAreActive)
        case .storesWithoutFencing: (Scenario("", two, [.expiry, .purge]), .olderNeverOverwritesNewer)
        case .ignoresFloors: (Scenario("", two, [.purge]), .purgedItemsStayPurged)
        case .abandonsWithoutCheckingWaiters: (Scenario("", two, [.leave]), .workContinuesForOtherWaiters)
        case .abandonsOneByOne:
            (Scenario("", [[reversed], [one], [second]], [.leave], limit: 1), .executionsAreBounded)
        case .tracksWaitersByProcess: (Scenario("", [[one], [one, one]], [.leave]), .workContinuesForOtherWaiters)
        case .waitsForPurgedWork: (Scenario("", two, [.purge], limit: 1), .requestsAfterPurgeStartNewWork)
        case .ignoresFenceOfProduct:
            (Scenario("", two, [.clockSetBack, .expiredFences], stale: 5), .executionsAreBounded)
        case .purgeKeepsLastFence: (Scenario("", two, [.clockSetBack, .purge], stale: 5), .purgedItemsStayPurged)
        case .countsReleasesAsCrashes: (Scenario("", two, [.leave], limit: 1), .onlyCrashesAreCounted)
        case .countsCrashesBeforePurge: (Scenario("", two, [.expiry, .purge]), .onlyCrashesAreCounted)
        case .takeoverForgetsCrashes: (Scenario("", [[one], [one], [one]], [.expiry]), .crashesAreRemembered)
        case .givingUpResetsCrashes: (Scenario("", [[one], [one], [one]], [.crash, .leave]), .crashesAreRemembered)
        case .waitsForMessagesOnly: (Scenario("", two, [.lostMessage]), .everyJobEnds)
        case .waitsWhileHoldingLeases: (Scenario("", [[one], [both]], []), .waitersHoldNoLeases)
        case .keepsUnconfirmedLeases: (Scenario("", two, [.leave]), .leaseOwnersAreActive)
        case .staysInWaiterLists: (Scenario("", [[one], [both], [second]], [.leave]), .workEndsWithItsLastWaiter)
        case .reloadRejectsEveryVersion: (Scenario("", [[one, reload], [one, one]], [.purge]), .executionsAreBounded)
        case .reusesAttempt: (Scenario("", two, [.purge, .flush], lateRenewals: 1), .olderNeverOverwritesNewer)
        }
    }

    @Test(arguments: Mutation.allCases) func everyMutationBreaksItsInvariant(_ mutation: Mutation) async {
        var (scenario, invariant) = Self.scenario(for: mutation)
        let original = await Explorer(scenario)
        #expect(original.violations.isEmpty, "no invariant breaks without the mutation")
        scenario.mutation = mutation
        let explorer = await Explorer(scenario, until: invariant)
        #expect(explorer.violations[invariant] != nil)
    }
}
