import Concurrency
import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct OffsetTrackerTests {
    let partition = TopicPartition("jobs", 0)

    /// A ledger with one partition, of which this was committed, and these offsets taken.
    func ledger(
        window: Credit = 8, metadataLimit: Int = 4096, committed: GroupOffset? = nil, taking offsets: Range<Int64>
    ) -> (OffsetTracker, [OffsetTracker.Entry]) {
        var ledger = OffsetTracker(window: window, metadataLimit: metadataLimit)
        expect(ledger.reassign(partition, committed), window)
        let entries = offsets.compactMap { ledger.taken($0, of: partition) }
        return (ledger, entries)
    }

    /// A commit with a map of these runs.
    func commit(_ base: Int64, _ runs: Range<Int64>...) -> GroupOffset {
        var map = CompletedRanges(from: base)
        for run in runs { map.append(run) }
        return GroupOffset(base, metadata: map.commitMetadata(limit: 4096).text)
    }

    @Test func theOffsetHasNoHoleAndTheMapTellsTheRest() {
        var (ledger, entries) = ledger(taking: 0..<4)
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[1])
        #expect(ledger.uncommitted() == [partition: commit(0, 1..<2)])
        ledger.committed([partition: commit(0, 1..<2)])
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[0])
        #expect(ledger.uncommitted() == [partition: commit(2)])
        ledger.committed([partition: commit(2)])
        _ = ledger.end(entries[3])
        _ = ledger.end(entries[2])
        #expect(ledger.uncommitted() == [partition: commit(4)])
        // The word of an earlier commit may come late.
        ledger.committed([partition: commit(4)])
        ledger.committed([partition: commit(2)])
        #expect(ledger.uncommitted().isEmpty)
    }

    @Test func whatHasEndedBeforeIsNotGivenOutAgain() {
        var (ledger, entries) = ledger(committed: commit(10, 11..<13, 14..<15), taking: 10..<16)
        #expect(entries.map(\.offset) == [10, 13, 15])
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[0])
        #expect(ledger.uncommitted() == [partition: commit(13, 14..<15)])
        _ = ledger.end(entries[2])
        _ = ledger.end(entries[1])
        #expect(ledger.uncommitted() == [partition: commit(16)])
    }

    @Test func aMapOfOtherRecordsDoesNotCount() {
        // The topic was made anew: its offsets begin again.
        let (ledger, entries) = ledger(committed: commit(10, 11..<13), taking: 0..<12)
        #expect(entries.map(\.offset) == Array(0..<12))
        #expect(ledger.uncommitted().isEmpty)
    }

    @Test func whatTheLogLostIsPassed() {
        let (ledger, entries) = ledger(committed: commit(10, 11..<13, 21..<22), taking: 20..<23)
        #expect(entries.map(\.offset) == [20, 22])
        #expect(ledger.uncommitted() == [partition: commit(20, 21..<22)])
    }

    @Test func givesCreditBackInParcelsAndAlwaysAtTheEnd() {
        var (ledger, entries) = ledger(window: 8, taking: 0..<5)
        let credit = entries.map { ledger.end($0) }
        // Two are a quarter of the window; the last comes because nothing is left to wait for.
        #expect(credit == [0, 2, 0, 2, 1])
    }

    /// A worker that drains has not left yet, and goes on being given records.
    @Test(arguments: [0, 3] as [Int64]) func whatComesWhileAPartitionIsClosingIsNotPassed(_ count: Int64) {
        var (ledger, entries) = ledger(committed: GroupOffset(0), taking: 0..<count)
        for entry in entries { expect(ledger.begin(entry), true) }
        #expect(ledger.close(nil).isEmpty)
        expect(ledger.taken(count, of: partition), nil)
        ledger.reachEnd(count + 1, of: partition)
        for entry in entries { _ = ledger.end(entry) }
        ledger.reachEnd(count + 1, of: partition)
        #expect(ledger.uncommitted()[partition]?.offset ?? 0 == count)
    }

    @Test func bytesAreGivenBackInParcelsToo() {
        var ledger = OffsetTracker(window: Credit(records: 100, bytes: 80), metadataLimit: 4096)
        expect(ledger.reassign(partition, nil), Credit(records: 100, bytes: 80))
        let entries = [10, 5, 5, 60, 1].enumerated().compactMap { offset, bytes -> OffsetTracker.Entry? in
            guard case .taken(let entry) = ledger.receive(Int64(offset), bytes: bytes, of: partition) else {
                return nil
            }
            return entry
        }
        // What begins, rests or waits weighs as much as before.
        expect(ledger.begin(entries[0]), true)
        expect(ledger.release(entries[0]), true)
        let credit = entries.map { ledger.end($0) }
        #expect(credit == [0, 0, Credit(records: 3, bytes: 20), Credit(records: 1, bytes: 60), 1])
    }

    @Test func whatHasEndedBeforeGivesItsCreditBack() {
        var ledger = OffsetTracker(window: 8, metadataLimit: 4096)
        _ = ledger.reassign(partition, commit(0, 1..<6))
        var credit: [Credit] = []
        for offset in Int64(0)..<7 {
            if case .hasEnded(let granted) = ledger.receive(offset, bytes: 1, of: partition) { credit.append(granted) }
        }
        #expect(credit == [0, 2, 0, 2, 0])
    }

    @Test func whatWasTakenBeforeARebalanceCountsNoMore() {
        var (ledger, entries) = ledger(taking: 0..<2)
        let begun = ledger.begin(entries[0])
        ledger.revoke(partition)
        _ = ledger.reassign(partition, nil)
        #expect(begun)
        expect(ledger.end(entries[0]), 0)
        expect(ledger.begin(entries[1]), false)
        expect(ledger.onRevocation(entries[1]) {}, true)
        #expect(ledger.uncommitted().isEmpty)
        #expect(ledger.begun(in: nil) == 0)
    }

    @Test func whoRestsIsWaitedForByNobodyAndCanBeRecalledAgain() {
        var (ledger, entries) = ledger(taking: 0..<3)
        let calls = Lock(0)
        expect(ledger.begin(entries[0]), true)
        expect(ledger.onRevocation(entries[0]) { calls.withLock { $0 += 1 } }, false)
        expect(ledger.release(entries[0]), true)
        #expect(ledger.begun(in: nil) == 0 && ledger.uncommitted().isEmpty)
        expect(ledger.onRevocation(entries[0]) { calls.withLock { $0 += 100 } }, false)
        // It begins again, and another one that has not begun rests too.
        expect(ledger.begin(entries[0]), true)
        expect(ledger.release(entries[1]), true)
        expect(ledger.onRevocation(entries[1]) { calls.withLock { $0 += 10 } }, false)
        for body in ledger.close(nil) { body() }
        #expect(calls.withLock { $0 } == 10 && ledger.begun(in: nil) == 1)
        // Too late to rest: what has begun is handed back, or ends.
        expect(ledger.release(entries[0]), false)
        expect(ledger.release(entries[1]), false)
        ledger.returnToQueue(entries[0])
        #expect(ledger.begun(in: nil) == 0)
        ledger.revokeAll()
        expect(ledger.release(entries[2]), false)
    }

    @Test func takesNothingOfPartitionsItHasNot() {
        var ledger = OffsetTracker(window: 8, metadataLimit: 4096)
        expect(ledger.taken(0, of: partition), nil)
        let assignment = ledger.assign(partition)
        ledger.revoke(partition)
        expect(ledger.open(assignment, committed: nil, map: nil), 0)
    }

    @Test func aClosingPartitionRecallsWhatHasNotBegunWhereverItStands() {
        var (ledger, entries) = ledger(taking: 0..<5)
        let calls = Lock<[Int64]>([])
        for entry in entries.dropLast() {
            expect(ledger.onRevocation(entry) { calls.withLock { $0.append(entry.offset) } }, false)
        }
        expect(ledger.begin(entries[2]), true)
        expect(ledger.begin(entries[2]), true)
        for body in ledger.close([partition]) { body() }
        #expect(calls.withLock { $0.sorted() } == [0, 1, 3])
        expect(ledger.close(nil).count, 0)
        // The last one says only now what to call.
        expect(ledger.onRevocation(entries[4]) {}, true)
        expect(entries.map { ledger.begin($0) }, [false, false, true, false, false])
        expect(ledger.taken(5, of: partition), nil)

        #expect(ledger.begun(in: [partition]) == 1)
        for entry in entries where entry.offset != 2 { ledger.returnToQueue(entry) }
        // A partition that is about to go is granted nothing.
        expect(ledger.end(entries[2]), 0)
        #expect(ledger.begun(in: nil) == 0)
        #expect(ledger.uncommitted() == [partition: commit(0, 2..<3)])
    }

    @Test func aJobThatBeganOrEndedIsNotRecalled() {
        var (ledger, entries) = ledger(taking: 0..<3)
        for entry in entries { _ = ledger.onRevocation(entry) {} }
        _ = ledger.begin(entries[0])
        _ = ledger.end(entries[1])
        ledger.returnToQueue(entries[2])
        expect(ledger.close(nil).count, 0)
        expect(entries.map { ledger.onRevocation($0) {} }, [false, false, false])
    }

    @Test func saysWhatTheMapHasNoRoomFor() {
        // Fifteen characters are room for one run of the three.
        var (ledger, entries) = ledger(metadataLimit: 15, taking: 0..<8)
        for offset in [1, 3, 4, 6] { _ = ledger.end(entries[offset]) }
        #expect(ledger.uncommitted() == [partition: commit(0, 1..<2)])
        #expect(ledger.untracked(in: nil) == 3)
        ledger.limitMetadata(to: 0)
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[0])
        #expect(ledger.uncommitted() == [partition: GroupOffset(2)])
        #expect(ledger.untracked(in: [partition]) == 3)
    }

    @Test func aSnapshotEndsItsJobsAloneAndChangesNothing() {
        var (ledger, entries) = ledger(taking: 0..<6)
        _ = ledger.end(entries[1])
        let snapshot = ledger.snapshot(ending: [entries[0], entries[3]])
        #expect(snapshot.offsets == [partition: commit(2, 3..<4)])
        #expect(snapshot.gone.isEmpty && snapshot.untracked.isEmpty)
        #expect(ledger.uncommitted() == [partition: commit(0, 1..<2)])
    }

    @Test func aSnapshotLeavesOutWhatHasGone() {
        var (ledger, entries) = ledger(taking: 0..<3)
        ledger.revoke(partition)
        _ = ledger.reassign(partition, nil)
        let again = ledger.taken(0, of: partition)!
        let snapshot = ledger.snapshot(ending: [entries[0], entries[2], again])
        #expect(snapshot.gone == [entries[0], entries[2]])
        #expect(snapshot.offsets == [partition: commit(1)])
    }

    @Test func aSnapshotEndsNothingThatItCannotTellOf() {
        // Fifteen characters are room for one run of the two.
        let (ledger, entries) = ledger(metadataLimit: 15, taking: 0..<8)
        let snapshot = ledger.snapshot(ending: [entries[1], entries[3], entries[5]])
        #expect(snapshot.untracked == [entries[3], entries[5]])
        #expect(snapshot.offsets == [partition: commit(0, 1..<2)])
        // The lowest always goes, and takes along what it uncovers.
        let next = ledger.snapshot(ending: [entries[0], entries[1], entries[3], entries[5]])
        #expect(next.untracked == [entries[5]])
        #expect(next.offsets == [partition: commit(2, 3..<4)])
    }

    @Test func aPartitionWithoutRoomForItsTextGetsNoCreditUntilThereIs() {
        var (ledger, entries) = ledger(window: 20, metadataLimit: 30, taking: 0..<20)
        var credit: [Credit] = []
        // Two characters each beside the frame of twelve: with the sixth it is four fifths of the limit.
        for offset in stride(from: 1, to: 20, by: 2) { credit.append(ledger.end(entries[offset])) }
        #expect(credit.reduce(0, +) == 5)
        // Whatever ends from below uncovers runs, until there is room again.
        credit = stride(from: 0, to: 20, by: 2).map { ledger.end(entries[$0]) }
        #expect(credit.first == 0 && credit.reduce(0, +) == 15)
        #expect(ledger.untracked(in: nil) == 0)
    }

    @Test func theEndOfAPartitionIsCommittedThoughNoRecordStandsThere() {
        var (ledger, entries) = ledger(taking: 0..<2)
        ledger.reachEnd(3, of: partition)
        #expect(ledger.uncommitted() == [partition: commit(0, 2..<3)])
        for entry in entries { _ = ledger.end(entry) }
        #expect(ledger.uncommitted() == [partition: commit(3)])
        ledger.committed([partition: commit(3)])
        ledger.reachEnd(3, of: partition)
        ledger.reachEnd(2, of: partition)
        #expect(ledger.uncommitted().isEmpty)
        ledger.reachEnd(7, of: partition)
        #expect(ledger.uncommitted() == [partition: commit(7)])
    }

    @Test func theEndIsPassedWhereNoRecordHasCome() {
        // Nothing but markers behind what was committed.
        var (ledger, _) = ledger(committed: commit(4), taking: 0..<0)
        ledger.reachEnd(6, of: partition)
        #expect(ledger.uncommitted() == [partition: commit(6)])
        // Whoever committed nothing has nothing to pass; and an end below the commit is that of a topic made anew.
        (ledger, _) = self.ledger(taking: 0..<0)
        ledger.reachEnd(6, of: partition)
        #expect(ledger.uncommitted().isEmpty)
        (ledger, _) = self.ledger(committed: commit(9), taking: 0..<0)
        ledger.reachEnd(6, of: partition)
        #expect(ledger.uncommitted().isEmpty)
    }
}

extension OffsetTracker {
    /// What a rebalance does, and the look-up after it.
    mutating func reassign(_ partition: TopicPartition, _ committed: GroupOffset?) -> Credit {
        let assignment = assign(partition)
        return open(
            assignment, committed: committed,
            map: committed.flatMap { CompletedRanges(commitMetadata: $0.metadata, at: $0.offset) })
    }

    /// The entry of an offset that is to be done.
    mutating func taken(_ offset: Int64, of partition: TopicPartition) -> Entry? {
        if case .taken(let entry) = receive(offset, bytes: 1, of: partition) { entry } else { nil }
    }
}

/// As many bytes as records: here each record weighs one.
extension Credit: ExpressibleByIntegerLiteral {
    /// So many records.
    public init(integerLiteral count: Int) { self.init(records: count, bytes: count) }
}
