import TestSupport
import Testing

@testable import HalcyonGateway

/// The cursor in `Last-Event-ID`.
@Suite struct TopicCursorTests {
    @Test(
        arguments: [
            [], [0], [1, 0, 127, 128, 16_383, 16_384], [.max, 0, .max - 1], Array(repeating: 5_000_000, count: 64),
        ] as [[Int64]])
    func roundTripsThroughText(_ offsets: [Int64]) throws {
        let cursor = TopicCursor(offsets)
        if offsets.isEmpty {
            // A cursor without partitions is never sent.
            #expect(TopicCursor(cursor.text) == nil)
        } else {
            #expect(TopicCursor(cursor.text) == cursor)
        }
        #expect(cursor.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
    }

    @Test func rejectsTruncatedOrExtendedText() {
        let text = TopicCursor([12, 70_000, 3]).text
        for count in 0..<text.count { #expect(TopicCursor(String(text.prefix(count))) == nil) }
        for count in 1..<text.count { #expect(TopicCursor(String(text.suffix(count))) == nil) }
        #expect(TopicCursor(text + "A") == nil)
        #expect(TopicCursor(text + "AAAA") == nil)
    }

    @Test func rejectsTamperedText() {
        let text = Array(TopicCursor([12, 70_000, 3]).text)
        for index in text.indices {
            for other in ["A", "B", "z", "-", "_", "=", "+", "/", " ", "é"] where text[index] != Character(other) {
                var changed = text
                changed[index] = Character(other)
                // The last digit of base64 has unused bits.
                if let read = TopicCursor(String(changed)) { #expect(read == TopicCursor([12, 70_000, 3])) }
            }
        }
    }

    @Test func rejectsRandomText() {
        var numbers = SeededNumbers(seed: 9)
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<80, using: &numbers)
            let text = "1." + String((0..<count).map { _ in digits.randomElement(using: &numbers)! })
            #expect(TopicCursor(text) == nil)
        }
    }

    /// A made-up cursor can have a valid checksum and any number of offsets.
    @Test func rejectsMoreThanTenThousandPartitions() {
        #expect(TopicCursor(TopicCursor(Array(repeating: 0, count: 10_000)).text) != nil)
        #expect(TopicCursor(TopicCursor(Array(repeating: 0, count: 10_001)).text) == nil)
    }

    @Test func addedPartitionsStartAtZero() {
        var cursor = TopicCursor([5, 6])
        #expect(cursor.isBefore(4, 0))
        #expect(cursor[4] == 0)
        cursor.pass(4, 9)
        #expect(cursor.next == [5, 6, 0, 0, 10])
        #expect(!cursor.isBefore(4, 9))
        #expect(cursor.isBefore(3, 0))
    }

    @Test func passAndMergeOnlyAdvance() {
        var cursor = TopicCursor([5])
        cursor.pass(0, 3)
        #expect(cursor.next == [5])
        cursor.pass(0, 5)
        #expect(cursor.next == [6])
        cursor.move(0, to: 2)
        #expect(cursor.next == [2])
        cursor.merge(TopicCursor([1, 7]))
        #expect(cursor.next == [2, 7])
    }

    @Test func comparesPartitionByPartition() {
        #expect(TopicCursor([5, 6]).hasReached(TopicCursor([5, 6])))
        #expect(TopicCursor([5, 6]).hasReached(TopicCursor([4])))
        #expect(!TopicCursor([5]).hasReached(TopicCursor([4, 1])))
        #expect(TopicCursor([5]).hasReached(TopicCursor([4, 0])))
        #expect(TopicCursor([0: 7, 2: 1]).next == [7, 0, 1])
        #expect(TopicCursor([7, 0, 1]).offsets == [0: 7, 1: 0, 2: 1])
    }
}
