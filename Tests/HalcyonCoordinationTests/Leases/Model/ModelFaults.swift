/// Faults of processes, messages and Redis.
extension ModelWorld {
    mutating func crash(_ number: Int) {
        processes[number].hasCrashed = true
        processes[number].notifications = []
        allowAnotherExecution(number)
        processes[number].job = nil
        processes[number].itemStates = []
        processes[number].seen = []
        processes[number].released = []
    }

    mutating func deliver(_ index: Int) throws(Violation) {
        switch messagesInFlight.remove(at: index) {
        case .leave(let item, let owner): table.leave(item, owner)
        case .release(let item, let owner, let fence):
            try releaseLease(item, owner, fence: fence, .givenUp)
        case .renew(let item, let owner, let fence): _ = table.renew(item, owner, fence: fence)
        }
    }

    mutating func flush() {
        table.flush()
        hasLostData = true
        for item in histories.indices {
            histories[item].allowedExecutions += 1
            histories[item].purged = 0
            (histories[item].openLease, histories[item].deaths) = (nil, 0)
            histories[item].stored = 0
        }
    }

    mutating func forgetFences() {
        table.forgetFences()
        for item in histories.indices { (histories[item].openLease, histories[item].deaths) = (nil, 0) }
    }

    mutating func purge(_ item: Int?) {
        table.purge(item)
        table.tick += 2
        for item in item.map({ $0...$0 }) ?? 0...histories.count - 1 {
            histories[item].allowedExecutions += 1
            histories[item].purged = histories[item].executions
            (histories[item].openLease, histories[item].deaths) = (nil, 0)
            histories[item].stored = 0
        }
    }
}
