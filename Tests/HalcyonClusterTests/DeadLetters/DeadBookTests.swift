import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct DeadBookTests {
    private let topics = Topics()

    private static func id(_ text: String) -> LetterID { LetterID(text)! }

    private func letter(_ partition: Int32, _ offset: Int64) -> ConsumedRecord {
        ConsumedRecord(topic: topics.dead, partition: partition, offset: offset, value: [1])
    }

    private func mark(_ id: String, at offset: Int64) throws -> ConsumedRecord {
        let mark = Replay.mark(try #require(LetterID(id)), topics)
        return ConsumedRecord(
            topic: topics.dead, partition: try #require(mark.partition), offset: offset, value: nil,
            headers: mark.headers)
    }

    @Test func whatIsMarkedIsReplayed() throws {
        var book = DeadBook()
        for offset in 0..<3 { book.note(letter(0, Int64(offset))) }
        book.note(letter(1, 0))
        book.note(try mark("0-1", at: 3))
        // One that names nothing, and one that says it again.
        book.note(try mark("1-7", at: 1))
        book.note(try mark("0-1", at: 4))
        #expect(book.count == 3 && book.next == [0: 5, 1: 2])
        #expect(book.isReplayed(Self.id("0-1")))
        #expect(!book.isReplayed(Self.id("0-2")) && !book.isReplayed(Self.id("1-0")))
        // Of what was not read nobody knows.
        #expect(!book.isReplayed(Self.id("0-5")) && !book.isReplayed(Self.id("2-0")))
    }

    @Test func whatTheTopicForgetsIsForgotten() {
        var book = DeadBook()
        for offset in 0..<10 { book.note(letter(0, Int64(offset))) }
        book.forget(before: [0: 4, 1: 3])
        #expect(book.count == 6 && book.firstOpen(of: 0, from: 0) == 4)
        book.forget(before: [0: 4])
        #expect(book.count == 6)
    }

    @Test func onlyIsReadWhereLettersMayBe() throws {
        var book = DeadBook()
        for offset in 0..<5 { book.note(letter(0, Int64(offset))) }
        for offset in 0..<5 { book.note(try mark("0-\(offset)", at: 5 + Int64(offset))) }
        for offset in 0..<5 { book.note(letter(1, Int64(offset))) }
        book.note(try mark("1-0", at: 5))
        #expect(LetterQuery().ranges(in: book, from: [:]) == [1: 1..<6])
        #expect(LetterQuery().ranges(in: book, from: [1: 3]) == [1: 3..<6])
        #expect(LetterQuery().ranges(in: book, from: [1: 5]).isEmpty)
        #expect(LetterQuery(withReplayed: true).ranges(in: book, from: [0: 7, 1: 6]) == [0: 7..<10])
        let named = LetterQuery(letters: Set(["0-2", "0-4", "1-9", "5-0"].compactMap { LetterID($0) }))
        #expect(named.ranges(in: book, from: [:]) == [0: 2..<5])
    }
}
