/// Takes every step in every reachable state, and checks all invariants.
struct Explorer {
    private(set) var stateCount = 0
    /// The first violation of each invariant, with the steps that led to it.
    private(set) var violations: [Invariant: String] = [:]

    private struct Origin {
        var state: Int
        var step: () -> String
    }

    private var stateNumbers: [ModelWorld: Int] = [:]
    private var origins: [Origin] = []
    /// The steps other than faults, as pairs of states.
    private var edges: [(from: Int, to: Int)] = []
    private var finalStates: [Int] = []
    private var frontier: [(Int, ModelWorld)] = []

    /// - Parameter wanted: the invariant whose violation ends the exploration; nil for any.
    init(_ scenario: Scenario, until wanted: Invariant? = nil) async {
        _ = number(scenario.start, from: Origin(state: -1, step: { "start" }))
        while let (number, world) = frontier.popLast() {
            // Lets other tests run.
            if number % 16 == 0 { await Task.yield() }
            if world.isDone(scenario) { finalStates.append(number) }
            visit(number, world, scenario)
            if let wanted { if violations[wanted] != nil { break } } else if !violations.isEmpty { break }
        }
        stateCount = origins.count
        // Final states may be missing if the exploration ended early.
        if frontier.isEmpty { checkTermination() }
    }

    private mutating func visit(_ number: Int, _ world: ModelWorld, _ scenario: Scenario) {
        do throws(Violation) { try world.checkState() } catch { record(error, at: number) }
        let all = ModelSteps(scenario, world)
        for error in all.violations { record(error, at: number) }
        for step in all.steps where step.world != world {
            let next = self.number(step.world, from: Origin(state: number, step: step.name))
            if !step.isFault { edges.append((number, next)) }
        }
    }

    private mutating func number(_ world: ModelWorld, from origin: Origin) -> Int {
        if let known = stateNumbers[world] { return known }
        let number = origins.count
        stateNumbers[world] = number
        origins.append(origin)
        frontier.append((number, world))
        return number
    }

    /// Checks that a final state can be reached from every state without further faults. There are finitely many
    /// states, so fair execution reaches it.
    private mutating func checkTermination() {
        var before: [[Int]] = Array(repeating: [], count: origins.count)
        for (from, to) in edges { before[to].append(from) }
        var canFinish = Array(repeating: false, count: origins.count)
        var next = finalStates
        for end in finalStates { canFinish[end] = true }
        while let state = next.popLast() {
            for earlier in before[state] where !canFinish[earlier] {
                canFinish[earlier] = true
                next.append(earlier)
            }
        }
        if let stuck = canFinish.firstIndex(of: false) {
            record(Violation(.everyJobEnds, "no final state can be reached"), at: stuck)
        }
    }

    private mutating func record(_ error: Violation, at state: Int) {
        guard violations[error.invariant] == nil else { return }
        var steps: [String] = []
        var index = state
        while index >= 0 {
            steps.append(origins[index].step())
            index = origins[index].state
        }
        violations[error.invariant] = "\(error), after: \(steps.reversed().joined(separator: "; "))"
    }
}
