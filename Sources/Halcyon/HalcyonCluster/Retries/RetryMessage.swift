import CivilTime
import HalcyonModel
import Kafka

/// A job that waits in a topic to be tried again: the message as it came, and in headers all that another worker must know.
public struct RetryMessage: Hashable, Sendable {
    /// Where the job was first written.
    public var provenance: Provenance
    /// How it went so far.
    public var history: AttemptHistory
    /// When it is to be tried, in milliseconds since 1970.
    public var due: Int64
    /// Whether it was told that work for it began.
    public var hasStarted: Bool

    /// Takes the values as they are.
    public init(provenance: Provenance, history: AttemptHistory, due: Int64, hasStarted: Bool) {
        self.provenance = provenance
        self.history = history
        self.due = due
        self.hasStarted = hasStarted
    }

    /// One that is to be tried in so many seconds.
    public init(provenance: Provenance, history: AttemptHistory, after seconds: Double, hasStarted: Bool) {
        self.init(
            provenance: provenance, history: history,
            due: Timestamp.now.milliseconds + Int64((seconds * 1000).rounded(.up)), hasStarted: hasStarted)
    }

    /// Seconds until it is due. Never longer than its topic says: two clocks may disagree.
    public func left(atMost longest: Double) -> Double {
        min(longest, max(0, Double(due - Timestamp.now.milliseconds) / 1000))
    }

    /// What a message in such a topic says.
    /// - Throws: ``Failure`` `invalid_job` for one that Halcyon did not write there.
    public init(_ record: ConsumedRecord) throws(Failure) {
        let headers = record.headers
        guard let provenance = Provenance(headers), let history = AttemptHistory(headers),
            let due = headers.number(.due)
        else {
            throw Failure(
                .invalidJob,
                "the message is no retry of Halcyon's: its headers do not say where it comes from, how often it was tried and when "
                    + "it is due; jobs go to a lane")
        }
        self.init(
            provenance: provenance, history: history, due: due,
            hasStarted: headers.text(MovedHeader.started.name) == "true")
    }

    /// The message of `record`, for the topic of a retry.
    public func record(of record: ConsumedRecord, to topic: String) -> ProducerRecord {
        ProducerRecord(
            topic: topic, key: record.key, value: record.value,
            headers: record.headers.unmoved + provenance.headers + history.headers
                + [MovedHeader.due.with(due), MovedHeader.started.with(hasStarted)])
    }
}
