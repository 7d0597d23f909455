/// Takes every step in every state that can be reached, and looks whether an invariant breaks.
struct Explorer {
    private(set) var stateCount = 0
    /// Of each invariant that broke, the first time, with the steps that led there.
    private(set) var broken: [Invariant: String] = [:]

    private struct Origin {
        var state: Int
        var step: () -> String
    }

    private var numbers: [ModelWorld: Int] = [:]
    private var origins: [Origin] = []
    /// Steps other than faults, as pairs of states, from one to the other.
    private var ways: [(from: Int, to: Int)] = []
    private var ends: [Int] = []
    private var waiting: [(Int, ModelWorld)] = []

    /// - Parameter wanted: looks on until this invariant is broken; else until any is.
    init(_ scenario: Scenario, until wanted: Invariant? = nil) async {
        _ = number(scenario.start, from: Origin(state: -1, step: { "start" }))
        while let (number, world) = waiting.popLast() {
            // Other tests go on meanwhile.
            if number % 16 == 0 { await Task.yield() }
            if world.isDone(scenario) { ends.append(number) }
            visit(number, world, scenario)
            if let wanted { if broken[wanted] != nil { break } } else if !broken.isEmpty { break }
        }
        stateCount = origins.count
        // Where states were left out ends may be among them.
        if waiting.isEmpty { checkEnds() }
    }

    private mutating func visit(_ number: Int, _ world: ModelWorld, _ scenario: Scenario) {
        do throws(Broken) { try world.checkState() } catch { note(error, at: number) }
        let all = ModelSteps(scenario, world)
        for error in all.broken { note(error, at: number) }
        for step in all.steps where step.world != world {
            let next = self.number(step.world, from: Origin(state: number, step: step.name))
            if !step.isFault { ways.append((number, next)) }
        }
    }

    private mutating func number(_ world: ModelWorld, from origin: Origin) -> Int {
        if let known = numbers[world] { return known }
        let number = origins.count
        numbers[world] = number
        origins.append(origin)
        waiting.append((number, world))
        return number
    }

    /// Once nothing goes wrong any more, the end can be reached from every state. There are finitely many, so whoever takes every step
    /// that is possible again and again gets there.
    private mutating func checkEnds() {
        var before: [[Int]] = Array(repeating: [], count: origins.count)
        for (from, to) in ways { before[to].append(from) }
        var isGood = Array(repeating: false, count: origins.count)
        var next = ends
        for end in ends { isGood[end] = true }
        while let state = next.popLast() {
            for earlier in before[state] where !isGood[earlier] {
                isGood[earlier] = true
                next.append(earlier)
            }
        }
        if let stuck = isGood.firstIndex(of: false) { note(Broken(.everyJobEnds, "no way to the end"), at: stuck) }
    }

    private mutating func note(_ error: Broken, at state: Int) {
        guard broken[error.invariant] == nil else { return }
        var steps: [String] = []
        var place = state
        while place >= 0 {
            steps.append(origins[place].step())
            place = origins[place].state
        }
        broken[error.invariant] = "\(error), after: \(steps.reversed().joined(separator: "; "))"
    }
}
