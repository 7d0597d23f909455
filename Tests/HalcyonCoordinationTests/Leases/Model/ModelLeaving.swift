/// What comes of it when those who wait go away.
extension ModelWorld {
    /// The last one in a process who waits goes away. The process stops unless somebody elsewhere waits for what it makes.
    mutating func leave(_ number: Int) throws(Broken) {
        guard processes[number].wishes.contains(where: { ($0.work?.fence ?? 0) > 0 }) else {
            allowAnother(number)
            return end(number)
        }
        processes[number].isForOthers = true
        if table.mutation != .leavesWithoutLeaving {
            for (place, item) in items(number).enumerated() where processes[number].wishes[place].isWaiting {
                table.leave(item, owner(number))
                processes[number].wishes[place] = .done
            }
        }
        try linger(number)
    }

    /// Asks whether anybody elsewhere wants what is made for others.
    mutating func linger(_ number: Int) throws(Broken) {
        let held = items(number).indices.compactMap { place in
            processes[number].wishes[place].work.map { (item: items(number)[place], fence: $0.fence) }
        }
        let before = table
        let isWanted = table.abandon(owner(number), held)
        for (item, _) in held {
            let waiting = before.items[item].waiters
            let wishers = processes.indices.filter { isWaiting($0, for: item) && $0 != number }
            if isWanted { continue }
            // Who has not been told of an end yet asks soon; who was forgotten or told in vain, too.
            try check(
                isForgetful || isDeaf || wishers.allSatisfy { !processes[$0].heard.isEmpty }, .goesOnForOthers,
                "\(number) ends while \(wishers) want \(item), and \(waiting.count) are known")
        }
        if isWanted {
            let isTrue = held.contains { item, _ in before.items[item].waiters.contains { wants($0.owner, item) } }
            return try check(isTrue, .endsWithTheLast, "\(number) goes on for nobody")
        }
        for (item, fence) in held { ended(fence, item, withNothing: true) }
        allowAnother(number)
        for (place, item) in items(number).enumerated() where processes[number].wishes[place].work != nil {
            try check(table.items[item].holder?.owner != owner(number), .endsWithTheLast, "the lease of \(item) stays")
            processes[number].wishes[place] = .done
        }
        end(number)
    }

    /// Work that is given up is made anew by whoever comes next.
    mutating func allowAnother(_ number: Int) {
        for (place, item) in items(number).enumerated() where processes[number].wishes[place].work != nil {
            histories[item].allowed += 1
        }
    }

    private func isWaiting(_ number: Int, for item: Int) -> Bool {
        !processes[number].isForOthers && processes[number].wish(for: item)?.isWaiting == true
    }

    /// Whether a waiter wants an item, or is not known yet to want it no more.
    private func wants(_ waiter: LeaseTable.Owner, _ item: Int) -> Bool {
        let process = processes[waiter.process]
        return process.isDead || letters.contains(.leave(item: item, waiter))
            || process.attempt == waiter.attempt && !process.isForOthers && process.wish(for: item)?.isWaiting == true
    }

    /// The answer to its asking does not find anybody any more.
    mutating func leaveWhileAsking(_ number: Int) throws(Broken) {
        let places = items(number).indices.filter { processes[number].wishes[$0] != .done }
        renewAttempt(number, places)
        let owner = owner(number)
        let reply = table.enter(owner, places.map { (items(number)[$0], processes[number].seen[$0]) })
        table.tick += 2
        for (place, answer) in zip(places, reply.answers) {
            let item = items(number)[place]
            if table.mutation != .keepsWhatItDoesNotKnowOf {
                letters.append(.release(item: item, owner, fence: 0))
                letters.append(.leave(item: item, owner))
            }
            processes[number].wishes[place] = .done
            if case .acquired(let fence, let deaths) = answer {
                try given(fence, deaths, item)
                histories[item].works += 1
                histories[item].allowed += 1
            }
        }
        end(number)
    }
}
