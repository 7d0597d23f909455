/// What happens to processes, to what they sent, and to Redis.
extension ModelWorld {
    mutating func die(_ number: Int) {
        processes[number].isDead = true
        processes[number].heard = []
        allowAnother(number)
        processes[number].job = nil
        processes[number].wishes = []
        processes[number].seen = []
        processes[number].returned = []
    }

    mutating func arrive(_ place: Int) throws(Broken) {
        switch letters.remove(at: place) {
        case .leave(let item, let owner): table.leave(item, owner)
        case .release(let item, let owner, let fence):
            try giveBack(item, owner, fence: fence, .givenUp)
        case .renew(let item, let owner, let fence): _ = table.renew(item, owner, fence: fence)
        }
    }

    mutating func flush() {
        table.flush()
        isForgetful = true
        for item in histories.indices {
            histories[item].allowed += 1
            histories[item].purged = 0
            (histories[item].open, histories[item].deaths) = (nil, 0)
            histories[item].stored = 0
        }
    }

    mutating func forgetFences() {
        table.forgetFences()
        for item in histories.indices { (histories[item].open, histories[item].deaths) = (nil, 0) }
    }

    mutating func purge(_ item: Int?) {
        table.purge(item)
        table.tick += 2
        for item in item.map({ $0...$0 }) ?? 0...histories.count - 1 {
            histories[item].allowed += 1
            histories[item].purged = histories[item].works
            (histories[item].open, histories[item].deaths) = (nil, 0)
            histories[item].stored = 0
        }
    }
}
