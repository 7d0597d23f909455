import Kafka
import Testing

@testable import HalcyonCluster

/// A partition's whole life under owners whose commits carry the events, and who come, go and crash: each job is told of once, however
/// little room there is.
@Suite struct TransactionLifeTests {
    private let partition = TopicPartition("jobs", 0)

    @Test(arguments: 0..<100) func everyJobIsToldOfOnce(seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        let records = (Int64(0)..<300).filter { _ in Int.random(in: 0..<9, using: &dice) > 0 }
        let limit = [0, 14, 30, 4096].randomElement(using: &dice)!
        // What a transaction changes, and nothing else does.
        var (broker, told): (GroupOffset?, [Int64: Int]) = (nil, [:])
        var lives = 0
        while (broker?.offset ?? 0) <= records.last!, lives < 2000 {
            lives += 1
            var ledger = OffsetTracker(window: 16, metadataLimit: limit)
            var credit = ledger.reassign(partition, broker)
            var unread = records.drop { $0 < broker?.offset ?? 0 }
            var (held, waiting): ([OffsetTracker.Entry], [OffsetTracker.Entry]) = ([], [])
            // Some owners crash soon, others see it to the end.
            life: for _ in 0..<Int.random(in: 5..<600, using: &dice) {
                switch Int.random(in: 0..<4, using: &dice) {
                case 0 where credit != .none && !unread.isEmpty:
                    credit += -1
                    switch ledger.receive(unread.removeFirst(), bytes: 1, of: partition) {
                    case .taken(let entry): held.append(entry)
                    case .hasEnded(let more): credit += more
                    case .notOurs: Issue.record("a record came that is nobody's")
                    }
                case 1 where !held.isEmpty:
                    let entry = held.remove(at: Int.random(in: held.indices, using: &dice))
                    expect(ledger.begin(entry), true)
                    waiting.append(entry)
                case 2:
                    let batch = waiting.filter { _ in Int.random(in: 0..<4, using: &dice) > 0 }
                    let snapshot = ledger.snapshot(ending: batch)
                    let chosen = batch.filter { !snapshot.untracked.contains($0) }
                    for entry in chosen { told[entry.offset, default: 0] += 1 }
                    #expect(chosen.isEmpty || snapshot.offsets[partition] != nil)
                    broker = snapshot.offsets[partition] ?? broker
                    // It may be committed, and nobody left to hear of it.
                    if Int.random(in: 0..<30, using: &dice) == 0 { break life }
                    ledger.committed(snapshot.offsets)
                    for entry in chosen { credit += ledger.end(entry) }
                    waiting.removeAll { chosen.contains($0) }
                case 3 where unread.isEmpty:
                    ledger.reachEnd(records.last! + 2, of: partition)
                default: break
                }
                if let broker { #expect(broker.metadata.utf8.count <= limit) }
            }
        }
        #expect(lives < 2000, "it does not come to an end")
        #expect(told.count == records.count)
        #expect(told.values.allSatisfy { $0 == 1 })
    }
}
