/// The next state of a world, and by what step; with `isFault` by one that nobody takes who only wants to get on.
struct ModelStep {
    /// Made only when it is told: there are many steps.
    var name: () -> String
    var world: ModelWorld
    var isFault = false
}

/// All steps that are possible in a world.
struct ModelSteps {
    let scenario: Scenario
    let world: ModelWorld
    private(set) var steps: [ModelStep] = []
    /// Invariants that one of the steps breaks.
    private(set) var broken: [Broken] = []

    init(_ scenario: Scenario, _ world: ModelWorld) {
        self.scenario = scenario
        self.world = world
        for process in world.processes.indices where !world.processes[process].isDead { addSteps(of: process) }
        for (place, letter) in world.letters.enumerated() {
            step("\(letter) arrives") { world throws(Broken) in try world.arrive(place) }
        }
        for item in world.table.items.indices { addSteps(on: item) }
        if isPossible(.flush) { fault("FLUSHALL") { $0.flush() } }
        if isPossible(.purgeOfAll) { fault("purge of all") { $0.purge(nil) } }
        if isPossible(.clockBack), world.table.tick > 0 { fault("clock set back") { $0.table.tick = 0 } }
        if isPossible(.forgottenFences), world.table.last > 0, world.letters.isEmpty,
            !world.processes.contains(where: \.isAtWork)
        {
            fault("fences forgotten") { $0.forgetFences() }
        }
    }

    private func isPossible(_ fault: Scenario.Fault) -> Bool {
        world.faults < scenario.limit && scenario.faults.contains(fault)
    }

    private mutating func step(
        _ name: @escaping @autoclosure () -> String, isFault: Bool = false,
        _ change: (inout ModelWorld) throws(Broken) -> Void
    ) {
        var next = world
        if isFault { next.faults += 1 }
        do throws(Broken) {
            try change(&next)
            steps.append(ModelStep(name: name, world: next, isFault: isFault))
        } catch {
            broken.append(Broken(error.invariant, "\(name()): \(error.detail)"))
        }
    }

    private mutating func fault(
        _ name: @escaping @autoclosure () -> String, _ change: (inout ModelWorld) throws(Broken) -> Void
    ) {
        step(name(), isFault: true, change)
    }

    // MARK: Of leases

    private mutating func addSteps(on item: Int) {
        if let holder = world.table.items[item].holder {
            if world.isAlive(holder.owner, at: item) {
                if isPossible(.lapse) {
                    fault("the lease of \(item) runs out") {
                        $0.table.lapse(item)
                        $0.histories[item].allowed += 1
                    }
                }
            } else {
                step("the dead lease of \(item) runs out") { $0.table.lapse(item) }
            }
        }
        if isPossible(.purge) { fault("purge of \(item)") { $0.purge(item) } }
    }

    // MARK: Of processes

    private mutating func addSteps(of number: Int) {
        let process = world.processes[number]
        if isPossible(.crash) { fault("\(number) dies") { $0.die(number) } }
        if isPossible(.lostMessage), !process.heard.isEmpty {
            fault("\(number) misses a message") {
                $0.processes[number].heard.removeFirst()
                $0.isDeaf = true
            }
        }
        guard let job = process.job else {
            guard process.begun < scenario.jobs[number].count else { return }
            let job = scenario.jobs[number][process.begun]
            return step("\(number) looks") { $0.look(number, job) }
        }
        for (place, item) in job.items.enumerated() {
            switch process.wishes[place] {
            case .working(let work):
                step("\(number) stores \(item)") { world throws(Broken) in try world.store(number, place, item, work) }
                if isPossible(.failure) {
                    fault("\(number) fails at \(item)") {
                        $0.processes[number].wishes[place] = .ending(work, .failed, again: false)
                        $0.histories[item].allowed += 1
                    }
                }
                addRenewals(of: number, item, work)
            case .ending(let work, let outcome, let again):
                step("\(number) gives \(item) back") { world throws(Broken) in
                    try world.release(number, place, item, work, outcome, again)
                }
                addRenewals(of: number, item, work)
            default: break
            }
        }
        if !process.isAtWork || scenario.mutation == .waitsWhileHolding { addAsking(of: number) }
        if isPossible(.leave), !process.isForOthers {
            fault("all leave \(number)") { world throws(Broken) in try world.leave(number) }
        }
        if process.isForOthers, process.isAtWork {
            step("\(number) asks whether it is wanted") { world throws(Broken) in try world.linger(number) }
        }
    }

    private mutating func addRenewals(of number: Int, _ item: Int, _ work: ModelWorld.Work) {
        guard work.fence > 0 else { return }
        let owner = world.owner(number)
        if world.table.items[item].holder == nil {
            step("\(number) renews \(item)") { _ = $0.table.renew(item, owner, fence: work.fence) }
        }
        if world.lateRenewals > 0 {
            step("\(number) sends a renewal of \(item)") {
                $0.lateRenewals -= 1
                $0.letters.append(.renew(item: item, owner, fence: work.fence))
            }
        }
    }

    private mutating func addAsking(of number: Int) {
        let process = world.processes[number]
        let isFirst = process.wishes.contains(.unasked)
        if !process.heard.isEmpty, !isFirst {
            step("\(number) hears") { world throws(Broken) in
                world.hear(number)
                if world.processes[number].job != nil { try world.ask(number) }
            }
        }
        if isFirst || scenario.mutation != .onlyMessagesWake {
            let isWaiting = process.wishes.contains { $0.isWaiting || $0 == .unasked }
            if isWaiting {
                step("\(number) asks") { world throws(Broken) in try world.ask(number) }
                if isPossible(.without) {
                    fault("\(number) asks in vain") { world throws(Broken) in try world.workWithout(number) }
                }
                if isPossible(.leave), !process.isForOthers {
                    fault("all leave \(number) while it asks") { world throws(Broken) in
                        try world.leaveWhileAsking(number)
                    }
                }
            }
        }
    }
}
