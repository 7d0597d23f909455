/// The actions of processes whose waiters leave.
extension ModelWorld {
    /// Removes the last waiter in a process. The process stops unless another one waits for its products.
    mutating func leave(_ number: Int) throws(Violation) {
        guard processes[number].itemStates.contains(where: { ($0.work?.fence ?? 0) > 0 }) else {
            allowAnotherExecution(number)
            return end(number)
        }
        processes[number].hasNoLocalWaiters = true
        if table.mutation != .staysInWaiterLists {
            for (index, item) in items(number).enumerated() where processes[number].itemStates[index].isWaiting {
                table.leave(item, owner(number))
                processes[number].itemStates[index] = .done
            }
        }
        try checkWaiters(number)
    }

    /// Checks whether other processes still wait for the products of this one.
    mutating func checkWaiters(_ number: Int) throws(Violation) {
        let held = items(number).indices.compactMap { index in
            processes[number].itemStates[index].work.map { (item: items(number)[index], fence: $0.fence) }
        }
        let before = table
        let isWanted = table.abandon(owner(number), held)
        for (item, _) in held {
            let waiting = before.items[item].waiters
            let waiters = processes.indices.filter { isWaiting($0, for: item) && $0 != number }
            if isWanted { continue }
            // Waiters ask again soon if they have a pending notification, or after a loss of data or messages.
            try check(
                hasLostData || hasLostMessage || waiters.allSatisfy { !processes[$0].notifications.isEmpty },
                .workContinuesForOtherWaiters,
                "\(number) ends while \(waiters) wait for \(item), and \(waiting.count) are known")
        }
        if isWanted {
            let isTrue = held.contains { item, _ in before.items[item].waiters.contains { wants($0.owner, item) } }
            return try check(isTrue, .workEndsWithItsLastWaiter, "\(number) continues without waiters")
        }
        for (item, fence) in held { recordEnd(fence, item, withoutResult: true) }
        allowAnotherExecution(number)
        for (index, item) in items(number).enumerated() where processes[number].itemStates[index].work != nil {
            try check(
                table.items[item].holder?.owner != owner(number), .workEndsWithItsLastWaiter,
                "the lease of \(item) stays")
            processes[number].itemStates[index] = .done
        }
        end(number)
    }

    /// Allows another execution of each product whose work is given up.
    mutating func allowAnotherExecution(_ number: Int) {
        for (index, item) in items(number).enumerated() where processes[number].itemStates[index].work != nil {
            histories[item].allowedExecutions += 1
        }
    }

    private func isWaiting(_ number: Int, for item: Int) -> Bool {
        !processes[number].hasNoLocalWaiters && processes[number].state(for: item)?.isWaiting == true
    }

    /// Whether a waiter wants an item, or its leave message has not arrived yet.
    private func wants(_ waiter: LeaseTable.Owner, _ item: Int) -> Bool {
        let process = processes[waiter.process]
        return process.hasCrashed || messagesInFlight.contains(.leave(item: item, waiter))
            || process.attempt == waiter.attempt && !process.hasNoLocalWaiters
                && process.state(for: item)?.isWaiting == true
    }

    /// Lets all waiters leave before the reply to a request arrives.
    mutating func leaveWhileAcquiring(_ number: Int) throws(Violation) {
        let indexes = items(number).indices.filter { processes[number].itemStates[$0] != .done }
        startNewAttempt(number, indexes)
        let owner = owner(number)
        let reply = table.enter(owner, indexes.map { (items(number)[$0], processes[number].seen[$0]) })
        table.tick += 2
        for (index, answer) in zip(indexes, reply.answers) {
            let item = items(number)[index]
            if table.mutation != .keepsUnconfirmedLeases {
                messagesInFlight.append(.release(item: item, owner, fence: 0))
                messagesInFlight.append(.leave(item: item, owner))
            }
            processes[number].itemStates[index] = .done
            if case .acquired(let fence, let deaths) = answer {
                try recordAcquisition(fence, deaths, item)
                histories[item].executions += 1
                histories[item].allowedExecutions += 1
            }
        }
        end(number)
    }
}
