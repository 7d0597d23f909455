import Formats
import HalcyonModel
import Kafka

/// What is put aside in the topic `dead`, untouched, with what is wrong in headers.
public struct DeadLetter: Hashable, Sendable {
    /// Why: the code of its last failure.
    public var code: String
    /// What had happened.
    public var message: String
    /// Where the message was first written; nil for a letter that Halcyon did not write.
    public var provenance: Provenance?
    /// The attempts at it; nil where there was none.
    public var history: AttemptHistory?
    /// Why it was not tried again; nil for a message that could not be tried.
    public var reason: GivingUp?
    /// The letter itself.
    public var record: ConsumedRecord

    /// The message of `record`: key, value and headers as they came, and in further headers why and where from.
    /// - Parameters:
    ///   - provenance: where it was first written.
    ///   - history: the attempts at it; nil for what is no job.
    public static func record(
        of record: ConsumedRecord, from provenance: Provenance, for failure: Failure, after history: AttemptHistory?,
        _ reason: GivingUp?, _ topics: Topics
    ) -> ProducerRecord {
        ProducerRecord(
            topic: topics.dead, key: record.key, value: record.value,
            headers: record.headers.unmoved
                + [MovedHeader.code.with(failure.code.rawValue), MovedHeader.message.with(failure.message)]
                + provenance.headers + (history?.headers ?? [])
                + (reason.map { [MovedHeader.reason.with($0.rawValue)] } ?? []))
    }
}

extension DeadLetter {
    /// A letter that Kafka does not take, cut: the first 64 KiB of its message, without headers of the producer that are long. A header says how
    /// many bytes the message had.
    public static func shortened(_ letter: ProducerRecord) -> ProducerRecord {
        let most = 64 << 10
        var short = letter
        short.value = letter.value.map { Array($0.prefix(most)) }
        short.headers.removeAll { ($0.value?.count ?? 0) > 1 << 10 }
        if let count = letter.value?.count, count > most { short.headers.append(MovedHeader.cut.with(count)) }
        return short
    }
}

// MARK: Reading

extension DeadLetter {
    /// What a message of the topic says; nil for a mark that one was replayed.
    public init?(_ record: ConsumedRecord) {
        guard Replay.mark(in: record) == nil else { return nil }
        let headers = record.headers
        code = headers.text(MovedHeader.code.name) ?? "unknown"
        message = headers.text(MovedHeader.message.name) ?? "a letter that Halcyon did not write"
        provenance = Provenance(headers)
        history = AttemptHistory(headers)
        reason = headers.text(MovedHeader.reason.name).flatMap(GivingUp.init(rawValue:))
        self.record = record
    }

    /// Which letter of the topic it is.
    public var id: LetterID { LetterID(partition: record.partition, offset: record.offset) }

    /// Who was to be told of the event that the letter is; nil when it is no event of this cluster's.
    public func webhook(_ topics: Topics) -> String? {
        provenance?.topic == topics.events ? record.headers.text(EventPublisher.webhookHeader) : nil
    }

    /// How often the message had been replayed before it was put aside here.
    public var replays: Int { Replay.count(in: record.headers) }

    /// The headers that its producer gave it.
    public var headers: [RecordHeader] { record.headers.unmoved }
}

/// A place in the topic `dead`, written `PARTITION-OFFSET`.
public struct LetterID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The partition.
    public let partition: Int32
    /// The offset there.
    public let offset: Int64

    init(partition: Int32, offset: Int64) {
        self.partition = partition
        self.offset = offset
    }

    /// From its text; nil for any other.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0,
            offset >= 0
        else { return nil }
        self.init(partition: partition, offset: offset)
    }

    /// By partition, then by offset.
    public static func < (one: LetterID, other: LetterID) -> Bool {
        (one.partition, one.offset) < (other.partition, other.offset)
    }

    /// `PARTITION-OFFSET`
    public var description: String { "\(partition)-\(offset)" }
}

/// Sends what was put aside back to where it came from.
///
/// A topic forgets nothing before its time, so a letter that was replayed stays where it is. Behind it comes a mark, a message of the
/// same topic and partition without a value, whose header `halcyon-replayed` names the letter: who reads the topic to its end knows which are still to be dealt with.
public enum Replay {
    private static let counter = "halcyon-replays"
    private static let marker = "halcyon-replayed"

    /// The message as its producer wrote it, for its own lane; of a webhook the event, to be sent at once. One header is added,
    /// `halcyon-replays`: how often that was done.
    /// - Throws: ``Failure`` for a letter that came neither from a lane of this cluster nor from its events.
    public static func record(of letter: DeadLetter, _ topics: Topics) throws(Failure) -> ProducerRecord {
        var record = try unmarked(letter, topics)
        record.headers.removeAll { $0.name == counter }
        record.headers.append(RecordHeader(counter, "\(letter.replays + 1)"))
        return record
    }

    private static func unmarked(_ letter: DeadLetter, _ topics: Topics) throws(Failure) -> ProducerRecord {
        if let provenance = letter.provenance, letter.webhook(topics) != nil, let topic = topics.webhookRetries.first {
            let message = RetryMessage(
                provenance: provenance, history: AttemptHistory(began: Timestamp.now.milliseconds), after: 0,
                hasStarted: false)
            return message.record(of: letter.record, to: topic)
        }
        guard let lane = letter.provenance?.topic, topics.lanes.contains(lane) else {
            throw Failure(.invalidJob, "it does not say from which lane it came")
        }
        return ProducerRecord(
            topic: lane, key: letter.record.key, value: letter.record.value, headers: letter.headers)
    }

    /// What says that a letter was replayed.
    public static func mark(_ id: LetterID, _ topics: Topics) -> ProducerRecord {
        ProducerRecord(
            topic: topics.dead, partition: id.partition, value: nil, headers: [RecordHeader(marker, id.description)])
    }

    /// Which letter a message says was replayed; nil for a letter.
    public static func mark(in record: ConsumedRecord) -> LetterID? {
        guard record.value == nil, record.headers.text(MovedHeader.code.name) == nil else { return nil }
        return record.headers.text(marker).flatMap(LetterID.init)
    }

    static func count(in headers: [RecordHeader]) -> Int {
        headers.text(counter).flatMap { Int($0) }.map { max(0, $0) } ?? 0
    }
}
