/// A step and the state that it leads to. Steps with `isFault` are not needed for progress.
struct ModelStep {
    /// Returns the name. It is created lazily, because there are many steps.
    var name: () -> String
    var world: ModelWorld
    var isFault = false
}

/// All possible steps in a state.
struct ModelSteps {
    let scenario: Scenario
    let world: ModelWorld
    private(set) var steps: [ModelStep] = []
    /// The violations of invariants by single steps.
    private(set) var violations: [Violation] = []

    init(_ scenario: Scenario, _ world: ModelWorld) {
        self.scenario = scenario
        self.world = world
        for process in world.processes.indices where !world.processes[process].hasCrashed { addSteps(of: process) }
        for (index, message) in world.messagesInFlight.enumerated() {
            step("\(message) is delivered") { world throws(Violation) in try world.deliver(index) }
        }
        for item in world.table.items.indices { addSteps(on: item) }
        if isPossible(.flush) { fault("FLUSHALL") { $0.flush() } }
        if isPossible(.purgeAll) { fault("purge of all products") { $0.purge(nil) } }
        if isPossible(.clockSetBack), world.table.tick > 0 { fault("clock set back") { $0.table.tick = 0 } }
        if isPossible(.expiredFences), world.table.last > 0, world.messagesInFlight.isEmpty,
            !world.processes.contains(where: \.isWorking)
        {
            fault("fences expired") { $0.forgetFences() }
        }
    }

    private func isPossible(_ fault: Scenario.Fault) -> Bool {
        world.faults < scenario.limit && scenario.faults.contains(fault)
    }

    private mutating func step(
        _ name: @escaping @autoclosure () -> String, isFault: Bool = false,
        _ change: (inout ModelWorld) throws(Violation) -> Void
    ) {
        var next = world
        if isFault { next.faults += 1 }
        do throws(Violation) {
            try change(&next)
            steps.append(ModelStep(name: name, world: next, isFault: isFault))
        } catch {
            violations.append(Violation(error.invariant, "\(name()): \(error.detail)"))
        }
    }

    private mutating func fault(
        _ name: @escaping @autoclosure () -> String, _ change: (inout ModelWorld) throws(Violation) -> Void
    ) {
        step(name(), isFault: true, change)
    }

    // MARK: Leases

    private mutating func addSteps(on item: Int) {
        if let holder = world.table.items[item].holder {
            if world.isAlive(holder.owner, at: item) {
                if isPossible(.expiry) {
                    fault("the lease of \(item) expires") {
                        $0.table.expire(item)
                        $0.histories[item].allowedExecutions += 1
                    }
                }
            } else {
                step("the abandoned lease of \(item) expires") { $0.table.expire(item) }
            }
        }
        if isPossible(.purge) { fault("purge of \(item)") { $0.purge(item) } }
    }

    // MARK: Processes

    private mutating func addSteps(of number: Int) {
        let process = world.processes[number]
        if isPossible(.crash) { fault("\(number) crashes") { $0.crash(number) } }
        if isPossible(.lostMessage), !process.notifications.isEmpty {
            fault("\(number) misses a message") {
                $0.processes[number].notifications.removeFirst()
                $0.hasLostMessage = true
            }
        }
        guard let job = process.job else {
            guard process.startedJobs < scenario.jobs[number].count else { return }
            let job = scenario.jobs[number][process.startedJobs]
            return step("\(number) starts a job") { $0.startJob(number, job) }
        }
        for (index, item) in job.items.enumerated() {
            switch process.itemStates[index] {
            case .working(let work):
                step("\(number) stores \(item)") { world throws(Violation) in try world.store(number, index, item, work)
                }
                if isPossible(.failure) {
                    fault("\(number) fails at \(item)") {
                        $0.processes[number].itemStates[index] = .ending(work, .failed, again: false)
                        $0.histories[item].allowedExecutions += 1
                    }
                }
                addRenewals(of: number, item, work)
            case .ending(let work, let outcome, let again):
                step("\(number) releases \(item)") { world throws(Violation) in
                    try world.release(number, index, item, work, outcome, again)
                }
                addRenewals(of: number, item, work)
            default: break
            }
        }
        if !process.isWorking || scenario.mutation == .waitsWhileHoldingLeases { addRequests(of: number) }
        if isPossible(.leave), !process.hasNoLocalWaiters {
            fault("all waiters of \(number) leave") { world throws(Violation) in try world.leave(number) }
        }
        if process.hasNoLocalWaiters, process.isWorking {
            step("\(number) checks for waiters") { world throws(Violation) in try world.checkWaiters(number) }
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
                $0.messagesInFlight.append(.renew(item: item, owner, fence: work.fence))
            }
        }
    }

    private mutating func addRequests(of number: Int) {
        let process = world.processes[number]
        let isFirstRequest = process.itemStates.contains(.notRequested)
        if !process.notifications.isEmpty, !isFirstRequest {
            step("\(number) receives notifications") { world throws(Violation) in
                world.receiveNotifications(number)
                if world.processes[number].job != nil { try world.acquire(number) }
            }
        }
        if isFirstRequest || scenario.mutation != .waitsForMessagesOnly {
            let isWaiting = process.itemStates.contains { $0.isWaiting || $0 == .notRequested }
            if isWaiting {
                step("\(number) requests leases") { world throws(Violation) in try world.acquire(number) }
                if isPossible(.redisOutage) {
                    fault("\(number) requests leases without Redis") { world throws(Violation) in
                        try world.workWithoutLease(number)
                    }
                }
                if isPossible(.leave), !process.hasNoLocalWaiters {
                    fault("all waiters of \(number) leave during its request") { world throws(Violation) in
                        try world.leaveWhileAcquiring(number)
                    }
                }
            }
        }
    }
}
