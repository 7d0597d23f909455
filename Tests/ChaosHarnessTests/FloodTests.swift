import ChaosHarness
import Testing

/// The checks of the overload scenario, with synthetic ledgers.
@Suite struct FloodTests {
    /// Returns a flood of a hundred jobs per lane, of which this many were completed.
    private func flood(_ high: Int, _ normal: Int, _ low: Int, memory: [Int] = [1, 1, 1, 1], lag: Int = 290) -> Flood {
        var (sent, ends): ([SentJob], [TerminalEvent]) = ([], [])
        for (lane, done) in [(".high", high), ("", normal), (".low", low)] {
            for number in 0..<100 {
                let place = "halcyon.jobs\(lane)-0-\(number)"
                sent.append(SentJob(id: place, place: place, kind: "heavy", allowed: ["ready"], at: 1))
                let end = number < done ? "ready" : "failed/expired"
                ends.append(TerminalEvent(id: "\(place)-end", end: end, at: 2))
            }
        }
        return Flood(sent: sent, ends: ends, memory: memory, lag: lag)
    }

    @Test func acceptsBoundedMemoryOrderedLanesAndReportedLag() {
        let flood = flood(7, 4, 1, memory: [10, 100, 110, 112])
        #expect(flood.broken.isEmpty, "\(flood.broken)")
        #expect(flood.lanes.map(\.done) == [7, 4, 1] && flood.memory == (100, 112))
    }

    @Test func findsEachViolation() {
        #expect(flood(7, 4, 1, memory: [10, 100, 110, 116]).broken == ["the worker's memory grew"])
        #expect(flood(4, 7, 1).broken == ["the lanes were out of order"])
        #expect(flood(7, 4, 0).broken == ["a lane starved"])
        #expect(flood(7, 4, 1, lag: 100).broken.count == 1)
        #expect(flood(20, 10, 5, lag: 270).broken == ["this was no flood: send more jobs (--rate)"])
    }
}
