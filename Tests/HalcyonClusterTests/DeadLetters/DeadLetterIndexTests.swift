import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct DeadLetterIndexTests {
    private let topics = Topics()

    private static func id(_ text: String) -> DeadLetterID { DeadLetterID(text)! }

    private func letter(_ partition: Int32, _ offset: Int64) -> ConsumedRecord {
        ConsumedRecord(topic: topics.dead, partition: partition, offset: offset, value: [1])
    }

    private func marker(_ id: String, at offset: Int64) throws -> ConsumedRecord {
        let marker = Replay.mark(try #require(DeadLetterID(id)), topics)
        return ConsumedRecord(
            topic: topics.dead, partition: try #require(marker.partition), offset: offset, value: nil,
            headers: marker.headers)
    }

    @Test func replayMarkersMarkTheirLetters() throws {
        var index = DeadLetterIndex()
        for offset in 0..<3 { index.note(letter(0, Int64(offset))) }
        index.note(letter(1, 0))
        index.note(try marker("0-1", at: 3))
        // A marker without a letter, and a repeated marker.
        index.note(try marker("1-7", at: 1))
        index.note(try marker("0-1", at: 4))
        #expect(index.count == 3 && index.next == [0: 5, 1: 2])
        #expect(index.isReplayed(Self.id("0-1")))
        #expect(!index.isReplayed(Self.id("0-2")) && !index.isReplayed(Self.id("1-0")))
        // Letters that were not read count as not replayed.
        #expect(!index.isReplayed(Self.id("0-5")) && !index.isReplayed(Self.id("2-0")))
    }

    @Test func forgetsDeletedRecords() {
        var index = DeadLetterIndex()
        for offset in 0..<10 { index.note(letter(0, Int64(offset))) }
        index.forget(before: [0: 4, 1: 3])
        #expect(index.count == 6 && index.firstOpen(of: 0, from: 0) == 4)
        index.forget(before: [0: 4])
        #expect(index.count == 6)
    }

    @Test func queryRangesCoverPossibleMatchesOnly() throws {
        var index = DeadLetterIndex()
        for offset in 0..<5 { index.note(letter(0, Int64(offset))) }
        for offset in 0..<5 { index.note(try marker("0-\(offset)", at: 5 + Int64(offset))) }
        for offset in 0..<5 { index.note(letter(1, Int64(offset))) }
        index.note(try marker("1-0", at: 5))
        #expect(DeadLetterQuery().ranges(in: index, from: [:]) == [1: 1..<6])
        #expect(DeadLetterQuery().ranges(in: index, from: [1: 3]) == [1: 3..<6])
        #expect(DeadLetterQuery().ranges(in: index, from: [1: 5]).isEmpty)
        #expect(DeadLetterQuery(withReplayed: true).ranges(in: index, from: [0: 7, 1: 6]) == [0: 7..<10])
        let named = DeadLetterQuery(letters: Set(["0-2", "0-4", "1-9", "5-0"].compactMap { DeadLetterID($0) }))
        #expect(named.ranges(in: index, from: [:]) == [0: 2..<5])
    }
}
