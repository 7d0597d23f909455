import HalcyonCoding
import HalcyonModel
import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct DeadLetterTests {
    private let record = RetryMessageTests.record
    private let topics = RetryMessageTests.topics

    private func letter(_ history: AttemptHistory?, of record: ConsumedRecord? = nil) throws -> DeadLetter {
        let record = record ?? self.record
        let produced = DeadLetter.record(
            of: record, from: OriginalRecord(self.record), for: JobError(.httpError, "the origin answered 503"),
            after: history,
            history == nil ? nil : .attempts, topics)
        #expect(produced.topic == "halcyon.dead" && produced.key == record.key && produced.value == record.value)
        return try #require(DeadLetter(RetryMessageTests.consumed(produced)))
    }

    @Test func keepsFailureHistoryAndOriginalRecord() throws {
        let letter = try letter(RetryMessageTests.history)
        #expect(
            letter.code == "http_error" && letter.message == "the origin answered 503" && letter.reason == .attempts)
        #expect(letter.provenance == OriginalRecord(record) && letter.history == RetryMessageTests.history)
        #expect(letter.headers == record.headers && letter.replays == 0 && letter.id == DeadLetterID("0-5"))
        let refused = try self.letter(nil)
        #expect(refused.history == nil && refused.reason == nil)
    }

    @Test func dropsRetryHeaders() throws {
        let retried = RetryMessageTests.consumed(RetryMessageTests.message.record(of: record, to: topics.retries[0]))
        let letter = try letter(RetryMessageTests.history, of: retried)
        #expect(letter.headers == record.headers && letter.record.headers.text("halcyon-due") == nil)
        #expect(letter.provenance?.coordinates == "halcyon.jobs.high-3-1042")
    }

    @Test func replayRestoresTheOriginalRecord() throws {
        let letter = try letter(RetryMessageTests.history)
        let replayed = try Replay.record(of: letter, topics)
        #expect(replayed.topic == "halcyon.jobs.high" && replayed.key == record.key && replayed.value == record.value)
        #expect(replayed.headers == record.headers + [RecordHeader("halcyon-replays", "1")])
        // The second replay continues the count.
        var again = record
        again.headers = replayed.headers
        let second = try self.letter(nil, of: again)
        #expect(second.replays == 1)
        #expect(try Replay.record(of: second, topics).headers.last == RecordHeader("halcyon-replays", "2"))
        #expect(try Replay.record(of: second, topics).headers.count == record.headers.count + 1)
    }

    @Test func cutMessageIsNotReplayed() throws {
        var large = record
        large.value = [UInt8](repeating: 0x20, count: 100_000)
        let letter = try #require(shortened(large))
        #expect(letter.originalBytes == 100_000 && letter.record.value?.count == 64 << 10)
        do throws(JobError) {
            _ = try Replay.record(of: letter, topics)
            Issue.record("a part of a message was replayed")
        } catch {
            #expect(error.message.contains("topic halcyon.jobs.high, partition 3, offset 1042"))
        }
        let summary = DeadLetterSummary(letter, isReplayed: false, topics, JobDecoder())
        let json = String(decoding: summary.json(isWhole: false), as: UTF8.self)
        #expect(json.contains(#""cut":100000"#), "\(json)")
    }

    /// Returns the dead letter of a record after it was rejected as too large.
    private func shortened(_ record: ConsumedRecord) -> DeadLetter? {
        let whole = DeadLetter.record(
            of: record, from: OriginalRecord(self.record), for: JobError(.httpError, "503"),
            after: RetryMessageTests.history, .attempts, topics)
        return DeadLetter(RetryMessageTests.consumed(DeadLetter.shortened(whole)))
    }

    @Test func onlyLostPartsOfTheMessageCount() throws {
        let complete = try #require(shortened(record))
        #expect(complete.originalBytes == nil)
        var long = record
        long.headers.append(RecordHeader("baggage", [UInt8](repeating: 0x20, count: 2000)))
        let letter = try #require(shortened(long))
        #expect(letter.originalBytes == record.value?.count && letter.headers == record.headers)
    }

    @Test func jobHasTheTenantOfItsPreset() throws {
        let preset = try Preset("card", json: Array(#"{"job":{"width":8,"tenant":"shop-7"}}"#.utf8))
        var reader = JobDecoder()
        reader.findPreset = { $0 == "card" ? preset : nil }
        func tenant(of message: String, _ reader: JobDecoder) throws -> String? {
            var record = record
            record.value = Array(message.utf8)
            let summary = DeadLetterSummary(try letter(nil, of: record), isReplayed: false, topics, reader)
            let filter = try #require(DeadLetterFilter(.tenant, "shop-7"))
            let matches: Bool = DeadLetterFilter.all([filter], match: summary)
            #expect(matches == (summary.tenant == "shop-7"))
            return summary.tenant
        }
        let message = #"{"id":"a","source":"initials:A","preset":"card"}"#
        #expect(try tenant(of: message, reader) == "shop-7")
        #expect(try tenant(of: message, JobDecoder()) == nil)
        #expect(try tenant(of: #"{"id":"a","tenant":"shop-7"}"#, reader) == "shop-7")
        #expect(try tenant(of: #"{"id":"a","tenant":"a b"}"#, reader) == "a b")
        #expect(try tenant(of: "no JSON", reader) == nil)
    }

    @Test func replayMarkerIsNotADeadLetter() throws {
        let marker = Replay.mark(DeadLetterID("3-17")!, topics)
        #expect(marker.partition == 3 && marker.value == nil)
        let consumed = RetryMessageTests.consumed(marker)
        #expect(Replay.mark(in: consumed) == DeadLetterID("3-17") && DeadLetter(consumed) == nil)
        // A dead letter without a value is not a marker, even if its producer set the headers of one.
        var empty = record
        (empty.value, empty.headers) = (nil, marker.headers)
        #expect(try letter(nil, of: empty).record.value == nil)
    }

    @Test func foreignRecordCannotBeReplayed() throws {
        let foreign = ConsumedRecord(topic: topics.dead, partition: 0, offset: 1, value: [1])
        let letter = try #require(DeadLetter(foreign))
        #expect(letter.code == "unknown" && letter.provenance == nil)
        #expect(throws: JobError.self) { try Replay.record(of: letter, topics) }
        // A record from a topic that is no lane of this cluster cannot be replayed either.
        let other = try self.letter(nil)
        #expect(throws: JobError.self) { try Replay.record(of: other, Topics(prefix: "other.")) }
    }

    @Test(arguments: ["", "1", "-1-2", "1--2", "a-b", "1-2-3", "99999999999-1"])
    func rejectsMalformedIDs(text: String) { #expect(DeadLetterID(text) == nil) }
}
