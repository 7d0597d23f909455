/// What the protocol would be with one of its parts left out. Each breaks an invariant: that shows that the explorer can see it.
enum Mutation: Hashable, CaseIterable {
    // Of the server's side.
    case looksNotAgain, releasesWhatIsOthers, renewsWhatIsGone, endsWithoutClosing, storesWithoutFence, forgetsFloors
    case abandonsWithoutLooking, abandonsOneByOne, waitsByProcess, waitsForThePurged, fenceBelowTheProduct
    case purgesTheLastFenceNot, countsEnds, countsThePurged, takeoversForget, forgivesWhatIsGivenUp
    // Of the workers' side.
    case onlyMessagesWake, waitsWhileHolding, keepsWhatItDoesNotKnowOf, leavesWithoutLeaving, keepsItsName
    case neverHasEnough
}
