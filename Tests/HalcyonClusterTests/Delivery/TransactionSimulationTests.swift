import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// Simulates a partition whose owners join, leave and crash and publish events with their commits. Each job is
/// published once, whatever the metadata limit, unless it is lowered.
@Suite struct TransactionSimulationTests {
    private let partition = TopicPartition("jobs", 0)

    @Test(arguments: 0..<100) func publishesEachJobOnce(seed: Int) {
        let counts = simulate(seed: seed, isLimitConstant: true)
        #expect(counts.allSatisfy { $0 == 1 })
    }

    /// Owners have different limits, as during a rolling restart. A commit with a lower limit may omit jobs of earlier
    /// owners, which are then published again, but it reports all of its own.
    @Test(arguments: 0..<100) func commitsReportTheirJobsWithAnyLimit(seed: Int) {
        _ = simulate(seed: seed, isLimitConstant: false)
    }

    /// Processes all jobs, and checks that each commit reports the jobs that were published with it.
    /// - Returns: how often each job was published.
    private func simulate(seed: Int, isLimitConstant: Bool) -> [Int] {
        var generator = SeededNumbers(seed: UInt64(seed))
        let records = (Int64(0)..<300).filter { _ in Int.random(in: 0..<9, using: &generator) > 0 }
        let limits = [0, 14, 30, 4096]
        var limit = limits.randomElement(using: &generator)!
        // The state that only transactions change.
        var (committedOffset, published): (GroupOffset?, [Int64: Int]) = (nil, [:])
        var owners = 0
        while (committedOffset?.offset ?? 0) <= records.last!, owners < 2000 {
            owners += 1
            if !isLimitConstant { limit = limits.randomElement(using: &generator)! }
            var tracker = OffsetTracker(window: 16, metadataLimit: limit)
            var credit = tracker.reassign(partition, committedOffset)
            // Some owners are sent the partition from its beginning.
            let isReset = Int.random(in: 0..<4, using: &generator) == 0
            var unread = records.drop { !isReset && $0 < committedOffset?.offset ?? 0 }
            var (received, waiting): ([OffsetTracker.Entry], [OffsetTracker.Entry]) = ([], [])
            // Some owners crash soon, others stay until the end.
            owner: for _ in 0..<Int.random(in: 5..<600, using: &generator) {
                switch Int.random(in: 0..<4, using: &generator) {
                case 0 where credit != .none && !unread.isEmpty:
                    credit += -1
                    let offset = unread.removeFirst()
                    switch tracker.receive(offset, bytes: 1, of: partition, logEnd: records.last! + 2) {
                    case .taken(let entry): received.append(entry)
                    case .hasEnded(let more), .precedesCommit(_, let more): credit += more
                    case .notOurs: Issue.record("a record of an unassigned partition was received")
                    }
                case 1 where !received.isEmpty:
                    let entry = received.remove(at: Int.random(in: received.indices, using: &generator))
                    expect(tracker.begin(entry), true)
                    waiting.append(entry)
                case 2:
                    let batch = waiting.filter { _ in Int.random(in: 0..<4, using: &generator) > 0 }
                    let snapshot = tracker.snapshot(ending: batch)
                    let chosen = batch.filter { !snapshot.untracked.contains($0) }
                    for entry in chosen { published[entry.offset, default: 0] += 1 }
                    #expect(chosen.isEmpty || snapshot.offsets[partition] != nil)
                    if let offset = snapshot.offsets[partition] {
                        committedOffset = offset
                        #expect(offset.metadata.utf8.count <= limit)
                        let reported =
                            CompletedRanges(commitMetadata: offset.metadata, at: offset.offset)
                            ?? CompletedRanges(from: offset.offset)
                        let areReported = chosen.allSatisfy { reported.contains($0.offset) }
                        #expect(areReported)
                    }
                    // The owner may crash after the commit and before its response.
                    if Int.random(in: 0..<30, using: &generator) == 0 { break owner }
                    tracker.committed(snapshot.offsets)
                    for entry in chosen { credit += tracker.end(entry) }
                    waiting.removeAll { chosen.contains($0) }
                case 3 where unread.isEmpty:
                    tracker.reachEnd(records.last! + 2, of: partition)
                default: break
                }
            }
        }
        #expect(owners < 2000, "the simulation does not end")
        #expect(published.count == records.count)
        return Array(published.values)
    }
}
