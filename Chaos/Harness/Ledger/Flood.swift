import HalcyonCluster
import HalcyonModel

/// What a flood of jobs did to a worker, as far as the books say it: pure, so that it can be tested with made-up books.
public struct Flood: Sendable {
    /// Jobs that were sent, and those of them that were done while the flood went on, of each lane, the most urgent first.
    public let lanes: [(lane: Lane, sent: Int, done: Int)]
    /// The worker's resident memory, in bytes: its most in the second and in the last quarter of the flood.
    public let memory: (early: Int, late: Int)
    /// How many jobs `halcyon doctor` said wait.
    public let lag: Int

    /// How many times faster than the worker its producers must be at least.
    static let pressure = 20.0
    /// How much a worker's memory may grow between the two quarters.
    static let growth = 1.15

    /// - Parameters:
    ///   - ends: told while the flood went on.
    ///   - memory: the worker's resident bytes, again and again.
    public init(sent: [SentJob], ends: [TerminalEvent], memory: [Int], lag: Int) {
        let topics = Topics()
        let ready = Set(ends.lazy.filter { $0.end == "ready" }.map(\.place))
        lanes = Lane.allCases.map { lane in
            let all = sent.filter { $0.place.hasPrefix(topics.jobs(lane) + "-") }
            return (lane, all.count, all.count { ready.contains($0.place) })
        }
        let quarter = memory.count / 4
        self.memory = (memory[quarter..<(2 * quarter)].max() ?? 0, memory.suffix(quarter).max() ?? 0)
        self.lag = lag
    }

    private var sent: Int { lanes.reduce(0) { $0 + $1.sent } }
    private var done: Int { lanes.reduce(0) { $0 + $1.done } }

    /// What is told of it.
    var lines: [String] {
        let parts = lanes.map { "\($0.lane.rawValue) \($0.done) of \($0.sent)" }
        return [
            "while it was flooded it did \(done) of \(sent) jobs, so that producers were \(sent / max(1, done)) times as fast: "
                + parts.joined(separator: ", "),
            "its resident memory was at most \(memory.early >> 20) MiB in the second quarter and \(memory.late >> 20) MiB in the last",
        ]
    }

    /// The promises that were broken, a sentence each.
    public var broken: [String] {
        var list: [String] = []
        if Double(sent) < Self.pressure * Double(done) { list.append("this was no flood: send more jobs (--rate)") }
        if Double(memory.late) > Self.growth * Double(memory.early) { list.append("the worker's memory grew") }
        let shares = lanes.map { Double($0.done) / Double(max(1, $0.sent)) }
        if zip(shares, shares.dropFirst()).contains(where: { $0 < $1 }) { list.append("the lanes were out of order") }
        if lanes.contains(where: { $0.done == 0 }) { list.append("a lane starved") }
        // What was sent while the doctor looked is not in the books yet, and some of it has ended.
        if lag < (sent - done) / 2 { list.append("the doctor saw \(lag) jobs wait, of \(sent - done) that did") }
        return list
    }
}
