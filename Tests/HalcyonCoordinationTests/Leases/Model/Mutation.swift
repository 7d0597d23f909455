/// The protocol without one of its parts. Each mutation breaks an invariant, which shows that the explorer detects it.
enum Mutation: Hashable, CaseIterable {
    // In the scripts.
    case skipsAvailabilityCheck, releasesForeignLeases, renewsOutdatedLeases, doesNotCloseFences, storesWithoutFencing,
        ignoresFloors
    case abandonsWithoutCheckingWaiters, abandonsOneByOne, tracksWaitersByProcess, waitsForPurgedWork,
        ignoresFenceOfProduct
    case purgeKeepsLastFence, countsReleasesAsCrashes, countsCrashesBeforePurge, takeoverForgetsCrashes,
        givingUpResetsCrashes
    // In the workers.
    case waitsForMessagesOnly, waitsWhileHoldingLeases, keepsUnconfirmedLeases, staysInWaiterLists, reusesAttempt
    case reloadRejectsEveryVersion
}
