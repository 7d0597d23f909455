import CivilTime
import HalcyonModel
import Kafka

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
