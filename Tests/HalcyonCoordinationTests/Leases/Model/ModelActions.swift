/// What processes do, as `LeaseSession`, `Leases` and those who use them do it.
extension ModelWorld {
    /// Whether an attempt makes an item, or is about to give it back.
    func isAlive(_ owner: LeaseTable.Owner, at item: Int) -> Bool {
        let process = processes[owner.process]
        if process.isDead { return false }
        if process.attempt == owner.attempt, process.wish(for: item)?.work != nil { return true }
        return letters.contains { letter in
            if case .release(item, owner, _) = letter { true } else { false }
        }
    }

    mutating func look(_ number: Int, _ job: Job) {
        let seen: LeaseTable.KnownVersion = job.isReload ? .anything : stale > 0 ? .version(stale) : .nothing
        if job.items.allSatisfy({ table.isThere($0, seen) }) {
            processes[number].begun += 1
            return
        }
        processes[number].begun += 1
        processes[number].attempt += 1
        processes[number].job = job
        processes[number].wishes = job.items.map { _ in .unasked }
        processes[number].seen = job.items.map { _ in seen }
    }

    func items(_ number: Int) -> [Int] { processes[number].job?.items ?? [] }

    mutating func ask(_ number: Int) throws(Broken) {
        let places = items(number).indices.filter {
            processes[number].wishes[$0] == .unasked || processes[number].wishes[$0].isWaiting
        }
        try check(!processes[number].isAtWork, .waitersHoldNothing, "it waits while it works")
        renewAttempt(number, places)
        let reply = table.enter(owner(number), places.map { (items(number)[$0], processes[number].seen[$0]) })
        for (place, answer) in zip(places, reply.answers) {
            switch answer {
            case .available: processes[number].wishes[place] = .done
            case .acquired(let fence, let deaths):
                asked(number, place, fence)
                try begin(number, place, items(number)[place], fence)
                try given(fence, deaths, items(number)[place])
            case .heldByOther(let holder):
                asked(number, place, holder.fence)
                let item = items(number)[place]
                try check(
                    holder.fence >= max(table.floor, table.items[item].floor), .lateJoinersStartAfresh,
                    "\(number) waits for what has been purged")
                processes[number].wishes[place] = .waiting(fence: holder.fence)
            }
        }
        finishIfDone(number)
    }

    /// A lease was given: whoever has it is told how many before it never ended.
    mutating func given(_ fence: Int, _ deaths: Int, _ item: Int) throws(Broken) {
        if histories[item].open != fence {
            if histories[item].open != nil { histories[item].deaths += 1 }
            histories[item].open = fence
        }
        if isForgetful { return }
        let known = histories[item].deaths
        try check(deaths >= known, .deathsAreRemembered, "\(deaths) of \(known) deaths over \(item)")
        try check(deaths <= known, .endsAreNoDeaths, "\(deaths) deaths over \(item), and there were \(known)")
    }

    /// Its owner says that a lease has ended.
    mutating func ended(_ fence: Int, _ item: Int, withNothing: Bool) {
        guard histories[item].open == fence else { return }
        histories[item].open = nil
        if !withNothing { histories[item].deaths = 0 }
    }

    /// Who asks again for what it gave back is somebody new.
    mutating func renewAttempt(_ number: Int, _ places: [Int]) {
        let process = processes[number]
        guard table.mutation != .keepsItsName, places.contains(where: { process.returned.contains(items(number)[$0]) })
        else { return }
        for place in places where process.wishes[place].isWaiting {
            letters.append(.leave(item: items(number)[place], owner(number)))
        }
        processes[number].attempt += 1
        processes[number].returned = []
    }

    /// Who wants a product made anew is content with any that was begun after it first asked.
    private mutating func asked(_ number: Int, _ place: Int, _ fence: Int) {
        if processes[number].seen[place] == .anything, table.mutation != .neverHasEnough {
            processes[number].seen[place] = .version(fence)
        }
    }

    mutating func workWithout(_ number: Int) throws(Broken) {
        for (place, item) in items(number).enumerated() where processes[number].wishes[place] != .done {
            histories[item].allowed += 1
            if processes[number].wishes[place].isWaiting { letters.append(.leave(item: item, owner(number))) }
            try begin(number, place, item, 0)
        }
    }

    private mutating func begin(_ number: Int, _ place: Int, _ item: Int, _ fence: Int) throws(Broken) {
        table.tick += 2
        histories[item].works += 1
        try check(
            histories[item].works <= histories[item].allowed, .worksAreBounded,
            "\(histories[item].works) works on \(item), \(histories[item].allowed) allowed")
        processes[number].wishes[place] = .working(Work(fence: fence, number: histories[item].works))
    }

    mutating func store(_ number: Int, _ place: Int, _ item: Int, _ work: Work) throws(Broken) {
        let before = table.items[item].product
        let isStored = table.store(item, fence: work.fence)
        if isStored {
            try check(work.number > histories[item].purged, .purgedStaysAway, "work \(work.number) was begun before")
            // Of works without a lease nobody knows when they were begun.
            let isKnown = (before ?? 0) > 0 && work.fence > 0
            try check(
                !isKnown || work.number >= histories[item].stored, .nothingOlderOverNewer,
                "work \(work.number) over work \(histories[item].stored)")
            histories[item].stored = work.number
        }
        if work.fence == 0 {
            processes[number].wishes[place] = .ending(work, .stored, again: false)
        } else {
            processes[number].wishes[place] = .ending(work, isStored ? .stored : .givenUp, again: !isStored)
        }
    }

    mutating func release(
        _ number: Int, _ place: Int, _ item: Int, _ work: Work, _ outcome: LeaseTable.Outcome, _ again: Bool
    ) throws(Broken) {
        if work.fence > 0 { try giveBack(item, owner(number), fence: work.fence, outcome) }
        processes[number].wishes[place] = again ? .unasked : .done
        if again { processes[number].returned.append(item) }
        finishIfDone(number)
    }

    mutating func giveBack(
        _ item: Int, _ owner: LeaseTable.Owner, fence: Int, _ outcome: LeaseTable.Outcome
    ) throws(Broken) {
        let holder = table.items[item].holder
        publish(table.release(item, owner, fence: fence, outcome) ?? [])
        let isOthers = holder != nil && holder?.owner != owner
        if !isOthers { ended(holder?.fence ?? fence, item, withNothing: outcome == .givenUp) }
        try check(!isOthers || table.items[item].holder == holder, .ownersEndTheirLeases, "\(owner) ends \(holder!)")
    }

    mutating func hear(_ number: Int) {
        for (place, item) in items(number).enumerated() {
            guard case .waiting(let fence) = processes[number].wishes[place] else { continue }
            if processes[number].heard.contains(where: { $0.item == item && $0.text == .ended(fence: fence, .failed) })
            {
                processes[number].wishes[place] = .done
            }
        }
        processes[number].heard = []
        finishIfDone(number)
    }

    private mutating func finishIfDone(_ number: Int) {
        let process = processes[number]
        if process.wishes.allSatisfy({ $0 == .done }) {
            end(number)
        } else if process.isForOthers, !process.isAtWork {
            end(number)
        }
    }

    /// The end of an attempt, whatever became of it: `LeaseSession.end()`.
    mutating func end(_ number: Int) {
        let owner = owner(number)
        for (place, item) in items(number).enumerated() {
            switch processes[number].wishes[place] {
            case .waiting: letters.append(.leave(item: item, owner))
            case .working(let work) where work.fence > 0, .ending(let work, _, _) where work.fence > 0:
                letters.append(.release(item: item, owner, fence: work.fence))
            default: break
            }
        }
        processes[number].job = nil
        processes[number].wishes = []
        processes[number].seen = []
        processes[number].returned = []
        processes[number].heard = []
        processes[number].isForOthers = false
    }

    mutating func publish(_ messages: [LeaseTable.Message]) {
        for message in messages where processes[message.process].wish(for: message.item)?.isWaiting == true {
            processes[message.process].heard.append(message)
        }
    }
}
