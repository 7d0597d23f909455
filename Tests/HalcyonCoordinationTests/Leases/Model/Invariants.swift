/// What holds in every state that can be reached, whatever goes wrong. Each is written down in docs/coalescing.md under its name.
enum Invariant: String, CaseIterable {
    case worksAreBounded, newestHolds, ownersEndTheirLeases, leasesAreWorkedOn, lateJoinersStartAfresh,
        nothingOlderOverNewer, purgedStaysAway, waitersHoldNothing
    case deathsAreRemembered, endsAreNoDeaths
    case endsWithTheLast, goesOnForOthers, everyJobEnds
}

/// That an invariant does not hold.
struct Broken: Error, CustomStringConvertible {
    let invariant: Invariant
    let detail: String

    init(_ invariant: Invariant, _ detail: String) {
        self.invariant = invariant
        self.detail = detail
    }

    var description: String { "\(invariant): \(detail)" }
}

func check(_ condition: Bool, _ invariant: Invariant, _ detail: @autoclosure () -> String) throws(Broken) {
    if !condition { throw Broken(invariant, detail()) }
}

extension ModelWorld {
    /// The invariants that can be seen in a state, without the step that led to it.
    func checkState() throws(Broken) {
        // What Redis has forgotten it cannot keep apart.
        if isForgetful { return }
        for (item, state) in table.items.enumerated() {
            guard let holder = state.holder else { continue }
            try check(
                processes[holder.owner.process].isDead || isAlive(holder.owner, at: item), .leasesAreWorkedOn,
                "\(holder) does not work on \(item)")
            for (number, process) in processes.enumerated() {
                guard let work = process.wish(for: item)?.work else { continue }
                try check(
                    work.fence <= holder.fence, .newestHolds, "\(number) has a newer lease of \(item) than \(holder)")
            }
        }
    }
}
