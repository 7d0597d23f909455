import Concurrency
import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct OffsetTrackerTests {
    let partition = TopicPartition("jobs", 0)

    /// Returns a tracker of one partition with this committed offset, and the entries of the received offsets.
    func tracker(
        window: Credit = 8, metadataLimit: Int = 4096, committed: GroupOffset? = nil, taking offsets: Range<Int64>
    ) -> (OffsetTracker, [OffsetTracker.Entry]) {
        var tracker = OffsetTracker(window: window, metadataLimit: metadataLimit)
        expect(tracker.reassign(partition, committed), window)
        let entries = offsets.compactMap { tracker.taken($0, of: partition) }
        return (tracker, entries)
    }

    /// Returns a commit with a map of these runs.
    func commit(_ base: Int64, _ runs: Range<Int64>...) -> GroupOffset {
        var map = CompletedRanges(from: base)
        for run in runs { map.append(run) }
        return GroupOffset(base, metadata: map.commitMetadata(limit: 4096).text)
    }

    @Test func commitsContiguousOffsetAndRangesBeyondIt() {
        var (tracker, entries) = tracker(taking: 0..<4)
        #expect(tracker.uncommitted().isEmpty)
        _ = tracker.end(entries[1])
        #expect(tracker.uncommitted() == [partition: commit(0, 1..<2)])
        tracker.committed([partition: commit(0, 1..<2)])
        #expect(tracker.uncommitted().isEmpty)
        _ = tracker.end(entries[0])
        #expect(tracker.uncommitted() == [partition: commit(2)])
        tracker.committed([partition: commit(2)])
        _ = tracker.end(entries[3])
        _ = tracker.end(entries[2])
        #expect(tracker.uncommitted() == [partition: commit(4)])
        // The confirmation of an earlier commit may arrive late.
        tracker.committed([partition: commit(4)])
        tracker.committed([partition: commit(2)])
        #expect(tracker.uncommitted().isEmpty)
    }

    @Test func skipsJobsCompletedBefore() {
        var (tracker, entries) = tracker(committed: commit(10, 11..<13, 14..<15), taking: 10..<16)
        #expect(entries.map(\.offset) == [10, 13, 15])
        #expect(tracker.uncommitted().isEmpty)
        _ = tracker.end(entries[0])
        #expect(tracker.uncommitted() == [partition: commit(13, 14..<15)])
        _ = tracker.end(entries[2])
        _ = tracker.end(entries[1])
        #expect(tracker.uncommitted() == [partition: commit(16)])
    }

    @Test func ignoresMetadataOfARecreatedTopic() {
        // The topic was recreated, and its offsets start at 0 again.
        let (tracker, entries) = tracker(committed: commit(10, 11..<13), taking: 0..<12)
        #expect(entries.map(\.offset) == Array(0..<12))
        #expect(tracker.uncommitted().isEmpty)
    }

    @Test func skipsRecordsBelowTheCommitUnlessTheLogEndsThere() {
        var tracker = OffsetTracker(window: 8, metadataLimit: 4096)
        expect(tracker.reassign(partition, commit(10, 11..<13)), 8)
        for offset in Int64(0)..<10 {
            guard case .precedesCommit(10, _) = tracker.receive(offset, bytes: 1, of: partition, logEnd: 10) else {
                Issue.record("\(offset) was not skipped")
                return
            }
        }
        #expect((Int64(10)..<15).compactMap { tracker.taken($0, of: partition) }.map(\.offset) == [10, 13, 14])
        #expect(tracker.uncommitted().isEmpty)
        expect(tracker.reassign(partition, commit(10)), 8)
        guard case .taken = tracker.receive(0, bytes: 1, of: partition, logEnd: 9) else {
            Issue.record("a record of a recreated topic was skipped")
            return
        }
    }

    @Test func returnsCreditOfRecordsBelowTheCommit() {
        var tracker = OffsetTracker(window: 8, metadataLimit: 4096)
        expect(tracker.reassign(partition, commit(100)), 8)
        var credit = 8
        for offset in Int64(0)..<100 {
            guard case .precedesCommit(_, let granted) = tracker.receive(offset, bytes: 1, of: partition, logEnd: 100)
            else { break }
            credit += granted.records - 1
            #expect(credit > 0)
        }
        #expect(credit == 8)
    }

    @Test func skipsDeletedRecords() {
        let (tracker, entries) = tracker(committed: commit(10, 11..<13, 21..<22), taking: 20..<23)
        #expect(entries.map(\.offset) == [20, 22])
        #expect(tracker.uncommitted() == [partition: commit(20, 21..<22)])
    }

    @Test func returnsCreditInBatchesAndAllAtTheEnd() {
        var (tracker, entries) = tracker(window: 8, taking: 0..<5)
        let credit = entries.map { tracker.end($0) }
        // Two are a quarter of the window. The last is granted because no job is in flight.
        #expect(credit == [0, 2, 0, 2, 1])
    }

    /// A draining worker still receives records until it has left the group.
    @Test(arguments: [0, 3] as [Int64]) func closingPartitionDoesNotSkipNewRecords(_ count: Int64) {
        var (tracker, entries) = tracker(committed: GroupOffset(0), taking: 0..<count)
        for entry in entries { expect(tracker.begin(entry), true) }
        #expect(tracker.close(nil).isEmpty)
        expect(tracker.taken(count, of: partition), nil)
        tracker.reachEnd(count + 1, of: partition)
        for entry in entries { _ = tracker.end(entry) }
        tracker.reachEnd(count + 1, of: partition)
        #expect(tracker.uncommitted()[partition]?.offset ?? 0 == count)
    }

    @Test func returnsBytesInBatches() {
        var tracker = OffsetTracker(window: Credit(records: 100, bytes: 80), metadataLimit: 4096)
        expect(tracker.reassign(partition, nil), Credit(records: 100, bytes: 80))
        let entries = [10, 5, 5, 60, 1].enumerated().compactMap { offset, bytes -> OffsetTracker.Entry? in
            guard case .taken(let entry) = tracker.receive(Int64(offset), bytes: bytes, of: partition) else {
                return nil
            }
            return entry
        }
        // Beginning and releasing a job do not change its bytes.
        expect(tracker.begin(entries[0]), true)
        expect(tracker.release(entries[0]), true)
        let credit = entries.map { tracker.end($0) }
        #expect(credit == [0, 0, Credit(records: 3, bytes: 20), Credit(records: 1, bytes: 60), 1])
    }

    @Test func skippedJobsReturnTheirCredit() {
        var tracker = OffsetTracker(window: 8, metadataLimit: 4096)
        _ = tracker.reassign(partition, commit(0, 1..<6))
        var credit: [Credit] = []
        for offset in Int64(0)..<7 {
            if case .hasEnded(let granted) = tracker.receive(offset, bytes: 1, of: partition) { credit.append(granted) }
        }
        #expect(credit == [0, 2, 0, 2, 0])
    }

    @Test func ignoresJobsReceivedBeforeARebalance() {
        var (tracker, entries) = tracker(taking: 0..<2)
        let begun = tracker.begin(entries[0])
        tracker.revoke(partition)
        _ = tracker.reassign(partition, nil)
        #expect(begun)
        expect(tracker.end(entries[0]), 0)
        expect(tracker.begin(entries[1]), false)
        expect(tracker.onRevocation(entries[1]) {}, true)
        #expect(tracker.uncommitted().isEmpty)
        #expect(tracker.begun(in: nil) == 0)
    }

    @Test func releasedJobIsNotAwaitedAndCanBeRevoked() {
        var (tracker, entries) = tracker(taking: 0..<3)
        let calls = Lock(0)
        expect(tracker.begin(entries[0]), true)
        expect(tracker.onRevocation(entries[0]) { calls.withLock { $0 += 1 } }, false)
        expect(tracker.release(entries[0]), true)
        #expect(tracker.begun(in: nil) == 0 && tracker.uncommitted().isEmpty)
        expect(tracker.onRevocation(entries[0]) { calls.withLock { $0 += 100 } }, false)
        // The job begins again, and another one is released without having begun.
        expect(tracker.begin(entries[0]), true)
        expect(tracker.release(entries[1]), true)
        expect(tracker.onRevocation(entries[1]) { calls.withLock { $0 += 10 } }, false)
        for body in tracker.close(nil) { body() }
        #expect(calls.withLock { $0 } == 10 && tracker.begun(in: nil) == 1)
        // Release fails while closing. A started job ends or is returned to the queue.
        expect(tracker.release(entries[0]), false)
        expect(tracker.release(entries[1]), false)
        tracker.returnToQueue(entries[0])
        #expect(tracker.begun(in: nil) == 0)
        tracker.revokeAll()
        expect(tracker.release(entries[2]), false)
    }

    @Test func waitingJobHoldsBackTheOffsetOnceItIsDue() {
        let (other, start) = (TopicPartition("jobs", 1), ContinuousClock.now)
        let due = start + .seconds(1800)
        var tracker = OffsetTracker(window: 8, metadataLimit: 4096)
        expect(tracker.reassign(partition, nil), 8)
        expect(tracker.reassign(other, nil), 8)
        let first = tracker.taken(0, of: partition, at: start)!
        let second = tracker.taken(1, of: partition, at: start)!
        #expect(tracker.heldBackSince() == start)
        expect(tracker.release(first, until: due), true)
        #expect(tracker.heldBackSince() == due)
        // A job of another partition does not wait.
        let later = start + .seconds(1)
        let third = tracker.taken(0, of: other, at: later)!
        #expect(tracker.heldBackSince() == later)
        _ = tracker.end(third)
        // The attempt counts from then on, also if it is released without another wait.
        expect(tracker.begin(first), true)
        expect(tracker.release(first), true)
        #expect(tracker.heldBackSince() == due)
        let end = due + .seconds(60)
        _ = tracker.end(first, at: end)
        #expect(tracker.heldBackSince() == end)
        _ = tracker.end(second)
        #expect(tracker.heldBackSince() == nil)
    }

    @Test func acceptsNothingFromUnassignedPartitions() {
        var tracker = OffsetTracker(window: 8, metadataLimit: 4096)
        expect(tracker.taken(0, of: partition), nil)
        let assignment = tracker.assign(partition)
        tracker.revoke(partition)
        expect(tracker.open(assignment, committed: nil, map: nil), 0)
    }

    @Test func closingPartitionRevokesUnstartedJobs() {
        var (tracker, entries) = tracker(taking: 0..<5)
        let calls = Lock<[Int64]>([])
        for entry in entries.dropLast() {
            expect(tracker.onRevocation(entry) { calls.withLock { $0.append(entry.offset) } }, false)
        }
        expect(tracker.begin(entries[2]), true)
        expect(tracker.begin(entries[2]), true)
        for body in tracker.close([partition]) { body() }
        #expect(calls.withLock { $0.sorted() } == [0, 1, 3])
        expect(tracker.close(nil).count, 0)
        // The last job registers its callback only now.
        expect(tracker.onRevocation(entries[4]) {}, true)
        expect(entries.map { tracker.begin($0) }, [false, false, true, false, false])
        expect(tracker.taken(5, of: partition), nil)

        #expect(tracker.begun(in: [partition]) == 1)
        for entry in entries where entry.offset != 2 { tracker.returnToQueue(entry) }
        // A closing partition is granted no credit.
        expect(tracker.end(entries[2]), 0)
        #expect(tracker.begun(in: nil) == 0)
        #expect(tracker.uncommitted() == [partition: commit(0, 2..<3)])
    }

    @Test func doesNotRevokeStartedOrCompletedJobs() {
        var (tracker, entries) = tracker(taking: 0..<3)
        for entry in entries { _ = tracker.onRevocation(entry) {} }
        _ = tracker.begin(entries[0])
        _ = tracker.end(entries[1])
        tracker.returnToQueue(entries[2])
        expect(tracker.close(nil).count, 0)
        expect(entries.map { tracker.onRevocation($0) {} }, [false, false, false])
    }

    @Test func countsCompletedJobsBeyondTheMetadataLimit() {
        // Fifteen characters have room for one of the three runs.
        var (tracker, entries) = tracker(metadataLimit: 15, taking: 0..<8)
        for offset in [1, 3, 4, 6] { _ = tracker.end(entries[offset]) }
        #expect(tracker.uncommitted() == [partition: commit(0, 1..<2)])
        #expect(tracker.untracked(in: nil) == 3)
        tracker.limitMetadata(to: 0)
        #expect(tracker.uncommitted().isEmpty)
        _ = tracker.end(entries[0])
        #expect(tracker.uncommitted() == [partition: GroupOffset(2)])
        #expect(tracker.untracked(in: [partition]) == 3)
    }

    @Test func snapshotCompletesItsJobsWithoutSideEffects() {
        var (tracker, entries) = tracker(taking: 0..<6)
        _ = tracker.end(entries[1])
        let snapshot = tracker.snapshot(ending: [entries[0], entries[3]])
        #expect(snapshot.offsets == [partition: commit(2, 3..<4)])
        #expect(snapshot.gone.isEmpty && snapshot.untracked.isEmpty)
        #expect(tracker.uncommitted() == [partition: commit(0, 1..<2)])
    }

    @Test func snapshotOmitsRevokedJobs() {
        var (tracker, entries) = tracker(taking: 0..<3)
        tracker.revoke(partition)
        _ = tracker.reassign(partition, nil)
        let again = tracker.taken(0, of: partition)!
        let snapshot = tracker.snapshot(ending: [entries[0], entries[2], again])
        #expect(snapshot.gone == [entries[0], entries[2]])
        #expect(snapshot.offsets == [partition: commit(1)])
    }

    @Test func snapshotOmitsJobsBeyondTheMetadataLimit() {
        // Fifteen characters have room for one run.
        let (tracker, entries) = tracker(metadataLimit: 15, taking: 0..<8)
        let snapshot = tracker.snapshot(ending: [entries[1], entries[3], entries[5]])
        #expect(snapshot.untracked == [entries[3], entries[5]])
        #expect(snapshot.offsets == [partition: commit(0, 1..<2)])
        // The lowest offset can always end, together with those that become contiguous.
        let next = tracker.snapshot(ending: [entries[0], entries[1], entries[3], entries[5]])
        #expect(next.untracked == [entries[5]])
        #expect(next.offsets == [partition: commit(2, 3..<4)])
    }

    /// An earlier owner had room for more, and completed offsets that the metadata cannot report any more.
    @Test func snapshotReportsItsJobsAfterTheMetadataLimitWasLowered() {
        // Fifteen characters have room for one run.
        let stored = commit(10, 12..<13, 14..<15)
        let (tracker, entries) = tracker(metadataLimit: 15, committed: stored, taking: 10..<21)
        #expect(entries.map(\.offset) == [10, 11, 13, 15, 16, 17, 18, 19, 20])
        // A commit that reports less than the stored one waits for a job.
        let none: [OffsetTracker.Entry] = []
        #expect(tracker.snapshot(ending: none).offsets.isEmpty)
        let highest = tracker.snapshot(ending: [entries[8]])
        #expect(highest.untracked == [entries[8]] && highest.offsets.isEmpty)
        let lowest = tracker.snapshot(ending: [entries[0], entries[8]])
        #expect(lowest.untracked == [entries[8]])
        #expect(lowest.offsets == [partition: commit(11, 12..<13)])
        // Everything fits again.
        let more = tracker.snapshot(ending: [entries[0], entries[1], entries[2], entries[8]])
        #expect(more.untracked.isEmpty)
        #expect(more.offsets == [partition: commit(15, 20..<21)])
    }

    @Test func withholdsCreditWhileMetadataIsFull() {
        var (tracker, entries) = tracker(window: 20, metadataLimit: 30, taking: 0..<20)
        var credit: Credit = 0
        // Each run takes two characters, and the frame twelve. The sixth run reaches four fifths of the limit.
        for offset in stride(from: 1, to: 20, by: 2) { credit += tracker.end(entries[offset]) }
        #expect(credit == 5)
        // Completing the lowest offsets removes runs, until there is room again.
        #expect(tracker.end(entries[0]) == 0)
        for offset in stride(from: 2, to: 20, by: 2) { credit += tracker.end(entries[offset]) }
        #expect(credit == 20)
        #expect(tracker.untracked(in: nil) == 0)
    }

    @Test func commitsPartitionEndWithoutARecord() {
        var (tracker, entries) = tracker(taking: 0..<2)
        tracker.reachEnd(3, of: partition)
        #expect(tracker.uncommitted() == [partition: commit(0, 2..<3)])
        for entry in entries { _ = tracker.end(entry) }
        #expect(tracker.uncommitted() == [partition: commit(3)])
        tracker.committed([partition: commit(3)])
        tracker.reachEnd(3, of: partition)
        tracker.reachEnd(2, of: partition)
        #expect(tracker.uncommitted().isEmpty)
        tracker.reachEnd(7, of: partition)
        #expect(tracker.uncommitted() == [partition: commit(7)])
    }

    @Test func commitsPartitionEndWhenNoRecordArrived() {
        // Only markers follow the committed offset.
        var (tracker, _) = tracker(committed: commit(4), taking: 0..<0)
        tracker.reachEnd(6, of: partition)
        #expect(tracker.uncommitted() == [partition: commit(6)])
        // Without a commit there is nothing to advance. An end below the commit belongs to a recreated topic.
        (tracker, _) = self.tracker(taking: 0..<0)
        tracker.reachEnd(6, of: partition)
        #expect(tracker.uncommitted().isEmpty)
        (tracker, _) = self.tracker(committed: commit(9), taking: 0..<0)
        tracker.reachEnd(6, of: partition)
        #expect(tracker.uncommitted().isEmpty)
    }
}

extension OffsetTracker {
    /// Assigns and opens a partition, as after a rebalance.
    mutating func reassign(_ partition: TopicPartition, _ committed: GroupOffset?) -> Credit {
        let assignment = assign(partition)
        return open(
            assignment, committed: committed,
            map: committed.flatMap { CompletedRanges(commitMetadata: $0.metadata, at: $0.offset) })
    }

    /// Receives an offset and returns its entry; nil if it is not to be processed.
    mutating func taken(
        _ offset: Int64, of partition: TopicPartition, at now: ContinuousClock.Instant = .now
    ) -> Entry? {
        if case .taken(let entry) = receive(offset, bytes: 1, of: partition, at: now) { entry } else { nil }
    }
}

/// Credit with as many bytes as records, because each record has one byte here.
extension Credit: ExpressibleByIntegerLiteral {
    /// Creates credit for this number of records.
    public init(integerLiteral count: Int) { self.init(records: count, bytes: count) }
}
