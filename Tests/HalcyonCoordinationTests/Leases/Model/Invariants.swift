/// The invariants that hold in every reachable state, whatever fails. docs/coalescing.md lists them under these names.
enum Invariant: String, CaseIterable {
    case executionsAreBounded, ownerHasTheNewestFence, onlyOwnersEndLeases, leaseOwnersAreActive,
        requestsAfterPurgeStartNewWork,
        olderNeverOverwritesNewer, purgedItemsStayPurged, waitersHoldNoLeases
    case crashesAreRemembered, onlyCrashesAreCounted
    case workEndsWithItsLastWaiter, workContinuesForOtherWaiters, everyJobEnds
}

/// A violation of an invariant.
struct Violation: Error, CustomStringConvertible {
    let invariant: Invariant
    let detail: String

    init(_ invariant: Invariant, _ detail: String) {
        self.invariant = invariant
        self.detail = detail
    }

    var description: String { "\(invariant): \(detail)" }
}

func check(_ condition: Bool, _ invariant: Invariant, _ detail: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(invariant, detail()) }
}

extension ModelWorld {
    /// Checks the invariants that depend on a state alone, not on the step that led to it.
    func checkState() throws(Violation) {
        // After a loss of data, Redis cannot tell older and newer work apart.
        if hasLostData { return }
        for (item, state) in table.items.enumerated() {
            guard let holder = state.holder else { continue }
            try check(
                processes[holder.owner.process].hasCrashed || isAlive(holder.owner, at: item), .leaseOwnersAreActive,
                "\(holder) does not work on \(item)")
            for (number, process) in processes.enumerated() {
                guard let work = process.state(for: item)?.work else { continue }
                try check(
                    work.fence <= holder.fence, .ownerHasTheNewestFence,
                    "\(number) has a newer lease of \(item) than \(holder)")
            }
        }
    }
}
