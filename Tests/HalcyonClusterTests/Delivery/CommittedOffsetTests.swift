import TestSupport
import Testing

@testable import HalcyonCluster

@Suite struct CommittedOffsetTests {
    @Test func neverPassesAnIncompleteJob() {
        var committedOffset = CommittedOffset(startingAt: 10)
        for offset in Int64(10)..<14 { expect(committedOffset.receive(offset), .taken) }
        expect(committedOffset.end(12), false)
        #expect(committedOffset.base == 10)
        #expect(committedOffset.ended.runs == [12..<13])
        expect(committedOffset.end(10), true)
        #expect(committedOffset.base == 11)
        expect(committedOffset.end(11), true)
        #expect(committedOffset.base == 13)
        #expect(committedOffset.ended == CompletedRanges(from: 13))
        expect(committedOffset.end(13), true)
        #expect(committedOffset.base == 14)
        #expect(committedOffset.incomplete.isEmpty)
    }

    @Test func countsGapsAsCompleted() {
        var committedOffset = CommittedOffset(startingAt: 0)
        for offset in [5, 6, 9] as [Int64] { expect(committedOffset.receive(offset), .taken) }
        #expect(committedOffset.base == 5)
        #expect(committedOffset.ended.runs == [7..<9])
        expect(committedOffset.end(5), true)
        expect(committedOffset.end(6), true)
        #expect(committedOffset.base == 9)
        expect(committedOffset.end(9), true)
        #expect(committedOffset.base == 10)
    }

    @Test func acceptsEachOffsetOnce() {
        var committedOffset = CommittedOffset(startingAt: 3)
        expect(committedOffset.receive(3), .taken)
        expect(committedOffset.receive(3), .cameBefore)
        expect(committedOffset.receive(2), .precedesStart)
        expect(committedOffset.end(3), true)
        expect(committedOffset.end(3), false)
        expect(committedOffset.end(99), false)
        #expect(committedOffset.base == 4)
    }

    @Test func skipsOffsetsCompletedByAnEarlierOwner() {
        var map = CompletedRanges(from: 10)
        map.append(11..<13)
        map.append(20..<30)
        var committedOffset = CommittedOffset(startingAt: 10, map: map)
        expect(committedOffset.receive(10), .taken)
        expect(committedOffset.receive(11), .hasEnded)
        expect(committedOffset.receive(12), .hasEnded)
        expect(committedOffset.receive(13), .taken)
        #expect(committedOffset.ended.runs == [11..<13, 20..<30])
        expect(committedOffset.end(10), true)
        #expect(committedOffset.base == 13)
        // The records 14 to 24 have been deleted.
        expect(committedOffset.receive(25), .hasEnded)
        expect(committedOffset.end(13), true)
        #expect(committedOffset.base == 26)
        #expect(committedOffset.ended.runs == [26..<30])
        expect(committedOffset.receive(26), .hasEnded)
        #expect(committedOffset.base == 27)
        expect(committedOffset.receive(40), .taken)
        #expect(committedOffset.base == 40)
        #expect(committedOffset.ended == CompletedRanges(from: 40))
    }

    @Test func partitionEndSkipsMissingRecords() {
        var map = CompletedRanges(from: 10)
        map.append(12..<14)
        map.append(20..<22)
        var committedOffset = CommittedOffset(startingAt: 10, map: map)
        expect(committedOffset.receive(10), .taken)
        committedOffset.reachEnd(16)
        #expect(committedOffset.base == 10 && committedOffset.next == 16)
        _ = committedOffset.end(10)
        #expect(committedOffset.base == 16 && committedOffset.ended.runs == [20..<22])
        committedOffset.reachEnd(15)
        #expect(committedOffset.base == 16)
        committedOffset.reachEnd(21)
        #expect(committedOffset.base == 21)
        expect(committedOffset.receive(21), .hasEnded)
        #expect(committedOffset.base == 22)
    }

    @Test(arguments: 0..<200) func matchesASetModelInRandomOrder(seed: Int) {
        var generator = SeededNumbers(seed: UInt64(seed))
        var map = CompletedRanges(from: 0)
        var done: Set<Int64> = []
        for offset in Int64(0)..<100 where Bool.random(using: &generator) {
            map.append(offset..<offset + 1)
            done.insert(offset)
        }
        var committedOffset = CommittedOffset(startingAt: 0, map: map)
        var open: Set<Int64> = []
        var next: Int64 = 0
        for _ in 0..<200 {
            if Bool.random(using: &generator) || open.isEmpty {
                let offset = next + Int64.random(in: 0...2, using: &generator)
                // Missing offsets count as completed.
                done.formUnion(next..<offset)
                next = offset + 1
                expect(committedOffset.receive(offset), done.contains(offset) ? .hasEnded : .taken)
                if !done.contains(offset) { open.insert(offset) }
            } else {
                let offset = open.randomElement(using: &generator)!
                open.remove(offset)
                done.insert(offset)
                _ = committedOffset.end(offset)
            }
            #expect(committedOffset.incomplete == open)
            // The base is the first incomplete offset.
            #expect(committedOffset.base == open.min() ?? next)
            let ended = committedOffset.ended
            #expect((committedOffset.base..<next + 100).allSatisfy { ended.contains($0) == done.contains($0) })
        }
    }
}
