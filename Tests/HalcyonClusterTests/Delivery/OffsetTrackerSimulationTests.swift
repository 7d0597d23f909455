import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// Simulates a partition whose owners join, leave, crash and have varying metadata limits, and compares with sets.
@Suite struct OffsetTrackerSimulationTests {
    private let partition = TopicPartition("jobs", 0)

    @Test(arguments: 0..<150) func completesAllJobsAndRepeatsNoCommittedOne(seed: Int) {
        var generator = SeededNumbers(seed: UInt64(seed))
        // Some offsets have no record, like those of markers and compacted records.
        let records = (Int64(0)..<300).filter { _ in Int.random(in: 0..<9, using: &generator) > 0 }
        let limit = [0, 14, 30, 4096].randomElement(using: &generator)!
        var committedOffset: GroupOffset?
        var executions: [Int64: Int] = [:]
        /// The completed offsets that the last commit recorded.
        var recorded: Set<Int64> = []
        var owners = 0

        while (committedOffset?.offset ?? 0) <= records.last! {
            owners += 1
            #expect(owners < 500, "the simulation does not end")
            if owners == 500 { return }
            var tracker = OffsetTracker(window: 16, metadataLimit: limit)
            _ = tracker.reassign(partition, committedOffset)
            var unread = records.drop { $0 < committedOffset?.offset ?? 0 }
            var received: [OffsetTracker.Entry] = []
            var begun: [OffsetTracker.Entry] = []
            // Recorded offsets stay recorded, unless the metadata limit is reached.
            var completed = recorded

            func commit() {
                guard let offset = tracker.uncommitted()[partition] else { return }
                #expect(offset.metadata.utf8.count <= limit)
                #expect(offset.offset >= committedOffset?.offset ?? 0)
                tracker.committed([partition: offset])
                committedOffset = offset
                let map =
                    CompletedRanges(commitMetadata: offset.metadata, at: offset.offset)
                    ?? CompletedRanges(from: offset.offset)
                recorded = Set(records.filter { map.contains($0) })
                // Every offset that a commit records was completed.
                #expect(recorded.allSatisfy { executions[$0, default: 0] > 0 })
            }
            func end() {
                let entry = begun.remove(at: Int.random(in: begun.indices, using: &generator))
                #expect(!recorded.contains(entry.offset), "offset \(entry.offset) was recorded as completed before")
                executions[entry.offset, default: 0] += 1
                completed.insert(entry.offset)
                _ = tracker.end(entry)
            }

            for _ in 0..<Int.random(in: 1...120, using: &generator) {
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<4:
                    guard received.count + begun.count < 16, let offset = unread.popFirst() else { break }
                    if let entry = tracker.taken(offset, of: partition) { received.append(entry) }
                case 4..<7:
                    guard let index = received.indices.randomElement(using: &generator) else { break }
                    expect(tracker.begin(received[index]), true)
                    begun.append(received.remove(at: index))
                case 7..<9: if !begun.isEmpty { end() }
                default: commit()
                }
            }
            // After a crash or a lost partition nothing is committed. Otherwise started jobs complete, and the others
            // are returned to the queue.
            if Int.random(in: 0..<3, using: &generator) == 0 { continue }
            _ = tracker.close(nil)
            for entry in received {
                expect(tracker.begin(entry), false)
                tracker.returnToQueue(entry)
            }
            while !begun.isEmpty { end() }
            #expect(tracker.begun(in: nil) == 0)
            commit()
            if tracker.untracked(in: nil) == 0 { #expect(recorded.isSuperset(of: completed)) }
        }
        #expect(Set(executions.keys) == Set(records))
    }
}
