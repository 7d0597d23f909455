import HalcyonCluster
import HalcyonModel

/// The effects of a flood of jobs on a worker. It is pure, so that it can be tested with synthetic data.
public struct Flood: Sendable {
    /// The number of jobs sent, and the number completed during the flood, for each lane in order of priority.
    public let lanes: [(lane: Lane, sent: Int, done: Int)]
    /// The peak resident memory of the worker in bytes, in the second and in the last quarter of the flood.
    public let memory: (early: Int, late: Int)
    /// The number of waiting jobs that `halcyon doctor` reported.
    public let lag: Int

    /// The minimum ratio of the producers' rate to the worker's.
    static let pressure = 20.0
    /// The maximum ratio of the late to the early memory peak.
    static let growth = 1.15

    /// Creates the report.
    /// - Parameters:
    ///   - sent: All jobs that were sent.
    ///   - ends: The terminal events published during the flood.
    ///   - memory: Samples of the worker's resident memory in bytes.
    ///   - lag: The number of waiting jobs that `halcyon doctor` reported.
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

    /// The lines of the report.
    var lines: [String] {
        let parts = lanes.map { "\($0.lane.rawValue) \($0.done) of \($0.sent)" }
        return [
            "completed \(done) of \(sent) jobs in the flood; producers were \(sent / max(1, done)) times as fast: "
                + parts.joined(separator: ", "),
            "peak memory: \(memory.early >> 20) MiB in the second quarter, \(memory.late >> 20) MiB in the last",
        ]
    }

    /// The violated guarantees, one sentence each.
    public var broken: [String] {
        var list: [String] = []
        if Double(sent) < Self.pressure * Double(done) { list.append("this was no flood: send more jobs (--rate)") }
        if Double(memory.late) > Self.growth * Double(memory.early) { list.append("the worker's memory grew") }
        let shares = lanes.map { Double($0.done) / Double(max(1, $0.sent)) }
        if zip(shares, shares.dropFirst()).contains(where: { $0 < $1 }) { list.append("the lanes were out of order") }
        if lanes.contains(where: { $0.done == 0 }) { list.append("a lane starved") }
        // Jobs that were sent while the doctor ran are not in the ledger yet, and some have ended since.
        if lag < (sent - done) / 2 { list.append("the doctor reported \(lag) of \(sent - done) waiting jobs") }
        return list
    }
}
