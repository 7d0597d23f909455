import Formats
import HalcyonModel
import Kafka

/// A message in the topic `dead`, unchanged unless it was too large, with the reason in its headers.
public struct DeadLetter: Hashable, Sendable {
    /// The code of the last error.
    public var code: String
    /// The message of the last error.
    public var message: String
    /// The original record; nil for a message that Halcyon did not write.
    public var provenance: OriginalRecord?
    /// The attempts; nil if there were none.
    public var history: AttemptHistory?
    /// The reason why the job was not retried; nil for a message that could not be processed at all.
    public var reason: RetryExhaustedReason?
    /// The size of the original message in bytes, if only a part of it is stored; nil if the dead letter is complete.
    public var originalBytes: Int?
    /// The record in the topic `dead`.
    public var record: ConsumedRecord

    /// Creates a dead letter from `record`: its key, value and headers, and further headers with the reason and the
    /// origin.
    /// - Parameters:
    ///   - provenance: the original record.
    ///   - history: the attempts; nil for a message that is not a job.
    public static func record(
        of record: ConsumedRecord, from provenance: OriginalRecord, for failure: JobError,
        after history: AttemptHistory?,
        _ reason: RetryExhaustedReason?, _ topics: Topics
    ) -> ProducerRecord {
        ProducerRecord(
            topic: topics.dead, key: record.key, value: record.value,
            headers: record.headers.unmoved
                + [HalcyonHeader.code.with(failure.code.rawValue), HalcyonHeader.message.with(failure.message)]
                + provenance.headers + (history?.headers ?? [])
                + (reason.map { [HalcyonHeader.reason.with($0.rawValue)] } ?? []))
    }
}

extension DeadLetter {
    /// Shortens a dead letter that Kafka rejects as too large to the first 64 KiB of its message, without long headers.
    /// If a part of the original message is lost, a header states its number of bytes.
    public static func shortened(_ letter: ProducerRecord) -> ProducerRecord {
        let (most, bytes) = (64 << 10, letter.value?.count ?? 0)
        func isLong(_ header: RecordHeader) -> Bool { (header.value?.count ?? 0) > 1 << 10 }
        var short = letter
        short.value = letter.value.map { Array($0.prefix(most)) }
        short.headers.removeAll(where: isLong)
        if bytes > most || letter.headers.unmoved.contains(where: isLong) {
            short.headers.append(HalcyonHeader.cut.with(bytes))
        }
        return short
    }
}

// MARK: Reading

extension DeadLetter {
    /// Decodes a message of the topic; nil for a replay marker.
    public init?(_ record: ConsumedRecord) {
        guard Replay.mark(in: record) == nil else { return nil }
        let headers = record.headers
        code = headers.text(HalcyonHeader.code.name) ?? "unknown"
        message = headers.text(HalcyonHeader.message.name) ?? "a message that was not written by Halcyon"
        provenance = OriginalRecord(headers)
        history = AttemptHistory(headers)
        reason = headers.text(HalcyonHeader.reason.name).flatMap(RetryExhaustedReason.init(rawValue:))
        originalBytes = headers.number(.cut).map { Int($0) }
        self.record = record
    }

    /// The position of the dead letter in the topic.
    public var id: DeadLetterID { DeadLetterID(partition: record.partition, offset: record.offset) }

    /// The webhook of the event in the dead letter; nil if it is not an event of this cluster.
    public func webhook(_ topics: Topics) -> String? {
        provenance?.topic == topics.events ? record.headers.text(EventPublisher.webhookHeader) : nil
    }

    /// The number of times that the message had been replayed before.
    public var replays: Int { Replay.count(in: record.headers) }

    /// The headers that the producer of the message set.
    public var headers: [RecordHeader] { record.headers.unmoved }
}

/// A position in the topic `dead`, written `PARTITION-OFFSET`.
public struct DeadLetterID: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The partition number.
    public let partition: Int32
    /// The offset in the partition.
    public let offset: Int64

    init(partition: Int32, offset: Int64) {
        self.partition = partition
        self.offset = offset
    }

    /// Parses the text form; nil if it is invalid.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0,
            offset >= 0
        else { return nil }
        self.init(partition: partition, offset: offset)
    }

    /// Orders ids by partition, then by offset.
    public static func < (one: DeadLetterID, other: DeadLetterID) -> Bool {
        (one.partition, one.offset) < (other.partition, other.offset)
    }

    /// The text form, `PARTITION-OFFSET`.
    public var description: String { "\(partition)-\(offset)" }
}

/// Sends dead letters back to the topics they came from.
///
/// Messages cannot be removed from a topic, so a replayed dead letter stays there. A marker follows it: a message in
/// the same topic and partition without a value, whose header `halcyon-replayed` contains the id of the dead letter. A
/// reader of the whole topic thus knows which dead letters were not replayed.
public enum Replay {
    private static let counter = "halcyon-replays"
    private static let marker = "halcyon-replayed"

    /// Creates the record that replays a dead letter: the original message for its lane, or the event of a webhook, to
    /// be sent immediately. The header `halcyon-replays` counts the replays.
    /// - Throws: ``JobError`` for a dead letter that came neither from a lane of this cluster nor from its events, or
    ///   that has only a part of the original message.
    public static func record(of letter: DeadLetter, _ topics: Topics) throws(JobError) -> ProducerRecord {
        if let bytes = letter.originalBytes {
            let original = letter.provenance.map {
                "; until Kafka deletes it, the original is in topic \($0.topic), partition \($0.partition), "
                    + "offset \($0.offset): submit it again from there"
            }
            throw JobError(
                .invalidJob, "the dead letter has only a part of the message of \(bytes) bytes\(original ?? "")")
        }
        var record = try unmarked(letter, topics)
        record.headers.removeAll { $0.name == counter }
        record.headers.append(RecordHeader(counter, "\(letter.replays + 1)"))
        return record
    }

    private static func unmarked(_ letter: DeadLetter, _ topics: Topics) throws(JobError) -> ProducerRecord {
        if let provenance = letter.provenance, letter.webhook(topics) != nil, let topic = topics.webhookRetries.first {
            let message = RetryMessage(
                provenance: provenance, history: AttemptHistory(began: Timestamp.now.milliseconds), after: 0,
                hasStarted: false)
            return message.record(of: letter.record, to: topic)
        }
        guard let lane = letter.provenance?.topic, topics.lanes.contains(lane) else {
            throw JobError(.invalidJob, "the headers name neither a lane nor a webhook of this cluster")
        }
        return ProducerRecord(
            topic: lane, key: letter.record.key, value: letter.record.value, headers: letter.headers)
    }

    /// Creates the marker of a replayed dead letter.
    public static func mark(_ id: DeadLetterID, _ topics: Topics) -> ProducerRecord {
        ProducerRecord(
            topic: topics.dead, partition: id.partition, value: nil, headers: [RecordHeader(marker, id.description)])
    }

    /// The id in a replay marker; nil for a dead letter.
    public static func mark(in record: ConsumedRecord) -> DeadLetterID? {
        guard record.value == nil, record.headers.text(HalcyonHeader.code.name) == nil else { return nil }
        return record.headers.text(marker).flatMap(DeadLetterID.init)
    }

    static func count(in headers: [RecordHeader]) -> Int {
        headers.text(counter).flatMap { Int($0) }.map { max(0, $0) } ?? 0
    }
}
