/// The actions of processes, as performed by `LeaseSession`, `Leases` and their callers.
extension ModelWorld {
    /// Whether an attempt works on an item, or is about to release it.
    func isAlive(_ owner: LeaseTable.Owner, at item: Int) -> Bool {
        let process = processes[owner.process]
        if process.hasCrashed { return false }
        if process.attempt == owner.attempt, process.state(for: item)?.work != nil { return true }
        return messagesInFlight.contains { message in
            if case .release(item, owner, _) = message { true } else { false }
        }
    }

    mutating func startJob(_ number: Int, _ job: Job) {
        let seen: LeaseTable.KnownVersion = job.isReload ? .anything : stale > 0 ? .version(stale) : .nothing
        if job.items.allSatisfy({ table.isAvailable($0, seen) }) {
            processes[number].startedJobs += 1
            return
        }
        processes[number].startedJobs += 1
        processes[number].attempt += 1
        processes[number].job = job
        processes[number].itemStates = job.items.map { _ in .notRequested }
        processes[number].seen = job.items.map { _ in seen }
    }

    func items(_ number: Int) -> [Int] { processes[number].job?.items ?? [] }

    mutating func acquire(_ number: Int) throws(Violation) {
        let indexes = items(number).indices.filter {
            processes[number].itemStates[$0] == .notRequested || processes[number].itemStates[$0].isWaiting
        }
        try check(!processes[number].isWorking, .waitersHoldNoLeases, "it waits while it executions")
        startNewAttempt(number, indexes)
        let reply = table.enter(owner(number), indexes.map { (items(number)[$0], processes[number].seen[$0]) })
        for (index, answer) in zip(indexes, reply.answers) {
            switch answer {
            case .available: processes[number].itemStates[index] = .done
            case .acquired(let fence, let deaths):
                recordKnownFence(number, index, fence)
                try begin(number, index, items(number)[index], fence)
                try recordAcquisition(fence, deaths, items(number)[index])
            case .heldByOther(let holder):
                recordKnownFence(number, index, holder.fence)
                let item = items(number)[index]
                try check(
                    holder.fence >= max(table.floor, table.items[item].floor), .requestsAfterPurgeStartNewWork,
                    "\(number) waits for purged work")
                processes[number].itemStates[index] = .waiting(fence: holder.fence)
            }
        }
        finishIfDone(number)
    }

    /// Records a granted lease, and checks the number of crashes that its owner is told.
    mutating func recordAcquisition(_ fence: Int, _ deaths: Int, _ item: Int) throws(Violation) {
        if histories[item].openLease != fence {
            if histories[item].openLease != nil { histories[item].deaths += 1 }
            histories[item].openLease = fence
        }
        if hasLostData { return }
        let known = histories[item].deaths
        try check(deaths >= known, .crashesAreRemembered, "\(deaths) of \(known) crashes on \(item)")
        try check(deaths <= known, .onlyCrashesAreCounted, "\(deaths) crashes on \(item) instead of \(known)")
    }

    /// Records that the owner of a lease ended it.
    mutating func recordEnd(_ fence: Int, _ item: Int, withoutResult: Bool) {
        guard histories[item].openLease == fence else { return }
        histories[item].openLease = nil
        if !withoutResult { histories[item].deaths = 0 }
    }

    /// Starts a new attempt if the process requests a product again that it released.
    mutating func startNewAttempt(_ number: Int, _ indexes: [Int]) {
        let process = processes[number]
        guard table.mutation != .reusesAttempt,
            indexes.contains(where: { process.released.contains(items(number)[$0]) })
        else { return }
        for index in indexes where process.itemStates[index].isWaiting {
            messagesInFlight.append(.leave(item: items(number)[index], owner(number)))
        }
        processes[number].attempt += 1
        processes[number].released = []
    }

    /// Lets a reload accept any product whose work started after its first request.
    private mutating func recordKnownFence(_ number: Int, _ index: Int, _ fence: Int) {
        if processes[number].seen[index] == .anything, table.mutation != .reloadRejectsEveryVersion {
            processes[number].seen[index] = .version(fence)
        }
    }

    mutating func workWithoutLease(_ number: Int) throws(Violation) {
        for (index, item) in items(number).enumerated() where processes[number].itemStates[index] != .done {
            histories[item].allowedExecutions += 1
            if processes[number].itemStates[index].isWaiting {
                messagesInFlight.append(.leave(item: item, owner(number)))
            }
            try begin(number, index, item, 0)
        }
    }

    private mutating func begin(_ number: Int, _ index: Int, _ item: Int, _ fence: Int) throws(Violation) {
        table.tick += 2
        histories[item].executions += 1
        try check(
            histories[item].executions <= histories[item].allowedExecutions, .executionsAreBounded,
            "\(histories[item].executions) executions for \(item), \(histories[item].allowedExecutions) allowed")
        processes[number].itemStates[index] = .working(Work(fence: fence, number: histories[item].executions))
    }

    mutating func store(_ number: Int, _ index: Int, _ item: Int, _ work: Work) throws(Violation) {
        let before = table.items[item].product
        let isStored = table.store(item, fence: work.fence)
        if isStored {
            try check(
                work.number > histories[item].purged, .purgedItemsStayPurged,
                "work \(work.number) started before the purge")
            // The order of work without a lease is unknown.
            let isKnown = (before ?? 0) > 0 && work.fence > 0
            try check(
                !isKnown || work.number >= histories[item].stored, .olderNeverOverwritesNewer,
                "work \(work.number) over work \(histories[item].stored)")
            histories[item].stored = work.number
        }
        if work.fence == 0 {
            processes[number].itemStates[index] = .ending(work, .stored, again: false)
        } else {
            processes[number].itemStates[index] = .ending(work, isStored ? .stored : .givenUp, again: !isStored)
        }
    }

    mutating func release(
        _ number: Int, _ index: Int, _ item: Int, _ work: Work, _ outcome: LeaseTable.Outcome, _ again: Bool
    ) throws(Violation) {
        if work.fence > 0 { try releaseLease(item, owner(number), fence: work.fence, outcome) }
        processes[number].itemStates[index] = again ? .notRequested : .done
        if again { processes[number].released.append(item) }
        finishIfDone(number)
    }

    mutating func releaseLease(
        _ item: Int, _ owner: LeaseTable.Owner, fence: Int, _ outcome: LeaseTable.Outcome
    ) throws(Violation) {
        let holder = table.items[item].holder
        publish(table.release(item, owner, fence: fence, outcome) ?? [])
        let isForeign = holder != nil && holder?.owner != owner
        if !isForeign { recordEnd(holder?.fence ?? fence, item, withoutResult: outcome == .givenUp) }
        try check(!isForeign || table.items[item].holder == holder, .onlyOwnersEndLeases, "\(owner) ends \(holder!)")
    }

    mutating func receiveNotifications(_ number: Int) {
        for (index, item) in items(number).enumerated() {
            guard case .waiting(let fence) = processes[number].itemStates[index] else { continue }
            if processes[number].notifications.contains(where: {
                $0.item == item && $0.text == .ended(fence: fence, .failed)
            }) {
                processes[number].itemStates[index] = .done
            }
        }
        processes[number].notifications = []
        finishIfDone(number)
    }

    private mutating func finishIfDone(_ number: Int) {
        let process = processes[number]
        if process.itemStates.allSatisfy({ $0 == .done }) {
            end(number)
        } else if process.hasNoLocalWaiters, !process.isWorking {
            end(number)
        }
    }

    /// Ends an attempt like `LeaseSession.end()`, whatever its outcome.
    mutating func end(_ number: Int) {
        let owner = owner(number)
        for (index, item) in items(number).enumerated() {
            switch processes[number].itemStates[index] {
            case .waiting: messagesInFlight.append(.leave(item: item, owner))
            case .working(let work) where work.fence > 0, .ending(let work, _, _) where work.fence > 0:
                messagesInFlight.append(.release(item: item, owner, fence: work.fence))
            default: break
            }
        }
        processes[number].job = nil
        processes[number].itemStates = []
        processes[number].seen = []
        processes[number].released = []
        processes[number].notifications = []
        processes[number].hasNoLocalWaiters = false
    }

    mutating func publish(_ messages: [LeaseTable.Message]) {
        for message in messages where processes[message.process].state(for: message.item)?.isWaiting == true {
            processes[message.process].notifications.append(message)
        }
    }
}
