import Kafka
import Testing

@testable import HalcyonCluster

/// A partition's whole life under owners that come, go, crash and are told lies about room, against the plainest books there are.
@Suite struct LedgerLifeTests {
    private let partition = TopicPartition("jobs", 0)

    @Test(arguments: 0..<150) func everyJobIsDoneAndNoneTwiceThatACommitToldOf(seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        // Some offsets hold no record: markers, or what compaction took.
        let records = (Int64(0)..<300).filter { _ in Int.random(in: 0..<9, using: &dice) > 0 }
        let limit = [0, 14, 30, 4096].randomElement(using: &dice)!
        var broker: GroupOffset?
        var times: [Int64: Int] = [:]
        /// Ended when the last commit was made, and told by it.
        var told: Set<Int64> = []
        var lives = 0

        while (broker?.offset ?? 0) <= records.last! {
            lives += 1
            #expect(lives < 500, "it does not come to an end")
            if lives == 500 { return }
            var ledger = OffsetTracker(window: 16, metadataLimit: limit)
            _ = ledger.reassign(partition, broker)
            var unread = records.drop { $0 < broker?.offset ?? 0 }
            var held: [OffsetTracker.Entry] = []
            var begun: [OffsetTracker.Entry] = []
            // What was told before stays told, where there is room.
            var endedHere = told

            func commit() {
                guard let offset = ledger.uncommitted()[partition] else { return }
                #expect(offset.metadata.utf8.count <= limit)
                #expect(offset.offset >= broker?.offset ?? 0)
                ledger.committed([partition: offset])
                broker = offset
                let map =
                    CompletedRanges(commitMetadata: offset.metadata, at: offset.offset)
                    ?? CompletedRanges(from: offset.offset)
                told = Set(records.filter { map.contains($0) })
                // What a commit tells has ended, without exception.
                #expect(told.allSatisfy { times[$0, default: 0] > 0 })
            }
            func end() {
                let entry = begun.remove(at: Int.random(in: begun.indices, using: &dice))
                #expect(!told.contains(entry.offset), "a commit had told that \(entry.offset) has ended")
                times[entry.offset, default: 0] += 1
                endedHere.insert(entry.offset)
                _ = ledger.end(entry)
            }

            for _ in 0..<Int.random(in: 1...120, using: &dice) {
                switch Int.random(in: 0..<10, using: &dice) {
                case 0..<4:
                    guard held.count + begun.count < 16, let offset = unread.popFirst() else { break }
                    if let entry = ledger.taken(offset, of: partition) { held.append(entry) }
                case 4..<7:
                    guard let index = held.indices.randomElement(using: &dice) else { break }
                    expect(ledger.begin(held[index]), true)
                    begun.append(held.remove(at: index))
                case 7..<9: if !begun.isEmpty { end() }
                default: commit()
                }
            }
            // A crash, or a partition that was lost, tells nothing; otherwise what has begun ends, and the rest is handed back.
            if Int.random(in: 0..<3, using: &dice) == 0 { continue }
            _ = ledger.close(nil)
            for entry in held {
                expect(ledger.begin(entry), false)
                ledger.returnToQueue(entry)
            }
            while !begun.isEmpty { end() }
            #expect(ledger.begun(in: nil) == 0)
            commit()
            if ledger.untracked(in: nil) == 0 { #expect(told.isSuperset(of: endedHere)) }
        }
        #expect(Set(times.keys) == Set(records))
    }
}
