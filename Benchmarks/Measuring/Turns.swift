/// One of those that are compared: a piece of work that is done once a round.
public struct Contender<Outcome: Sendable>: Sendable {
    let work: @Sendable () async throws -> Outcome

    /// Takes the work.
    public init(_ work: @escaping @Sendable () async throws -> Outcome) {
        self.work = work
    }
}

/// What a contender took.
public struct Score<Outcome: Sendable>: Sendable {
    /// Seconds of CPU, one figure a round.
    public fileprivate(set) var seconds: [Double] = []
    /// What came of it.
    public let outcome: Outcome

    /// Milliseconds of CPU, the median of the rounds.
    public var milliseconds: Double { median(seconds) * 1e3 }

    /// How this one compares to another that ran in the same rounds: the median of the rounds' ratios, and the quartiles.
    public func ratio(to other: Score) -> String { quotient(seconds, other.seconds) }
}

/// How figures compare to others of the same rounds: the median of the rounds' ratios, and the quartiles.
public func quotient(_ figures: [Double], _ others: [Double]) -> String {
    let ratios = zip(figures, others).map(/)
    let spread = quartiles(ratios)
    return "\(decimal(median(ratios), 3)) (\(decimal(spread.low, 2))–\(decimal(spread.high, 2)))"
}

/// Lets them work in turns, each round in another order, so that whatever else the machine does meets all alike. One round
/// warms up and says how many more `budget` seconds of CPU allow: 5 to 25.
public func takeTurns<Outcome>(_ contenders: [Contender<Outcome>], budget: Double) async throws -> [Score<Outcome>] {
    let start = processorTime()
    var scores: [Score<Outcome>] = []
    for contender in contenders { scores.append(Score(outcome: try await contender.work())) }
    let rounds = Int(min(25, max(5, budget / (processorTime() - start))))
    for round in 0..<rounds {
        for turn in contenders.indices {
            let index = (turn + round) % contenders.count
            let before = processorTime()
            _ = try await contenders[index].work()
            scores[index].seconds.append(processorTime() - before)
        }
    }
    return scores
}
