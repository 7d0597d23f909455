import Formats
import HalcyonModel
import HalcyonWire
import Kafka
import Telemetry

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

/// Where a message was first written: what makes ids of jobs and events the same however often it is delivered, and wherever it is moved.
public struct Provenance: Hashable, Sendable {
    /// The topic it was written to.
    public let topic: String
    /// The partition there.
    public let partition: Int32
    /// The offset there.
    public let offset: Int64
    /// When, in milliseconds since 1970.
    public let submitted: Int64
    /// Topic, partition and offset, as ids of jobs and events are made of them.
    public let coordinates: String

    init(topic: String, partition: Int32, offset: Int64, submitted: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.submitted = submitted
        coordinates = "\(topic)-\(partition)-\(offset)"
    }

    /// Of a message where its producer put it.
    public init(_ record: ConsumedRecord) {
        self.init(
            topic: record.topic, partition: record.partition, offset: record.offset,
            submitted: record.timestamp < 0 ? Timestamp.now.milliseconds : record.timestamp)
    }

    /// Of a message that was moved, by its headers; nil where they do not say.
    init?(_ headers: [RecordHeader]) {
        guard let topic = headers.text(MovedHeader.topic.name), !topic.isEmpty,
            let partition = headers.number(.partition, in: 0...Int64(Int32.max)),
            let offset = headers.number(.offset, in: 0 ... .max), let submitted = headers.number(.submitted)
        else { return nil }
        self.init(topic: topic, partition: Int32(partition), offset: offset, submitted: submitted)
    }

    var headers: [RecordHeader] {
        [
            MovedHeader.topic.with(topic), MovedHeader.partition.with(partition), MovedHeader.offset.with(offset),
            MovedHeader.submitted.with(submitted),
        ]
    }
}

/// The headers in which it is noted what became of a message that Halcyon moves to another topic. Their names are Halcyon's own: what a
/// producer puts there is lost on the way.
enum MovedHeader: String, CaseIterable {
    // Where the message stood first.
    case topic, partition, offset, submitted
    // How it went since.
    case attempts, began, history
    // Of one that is to be tried again.
    case due, started
    // Of one that was put aside.
    case code, message, reason, cut

    /// As it stands in the message.
    var name: String { "halcyon-\(rawValue)" }

    /// One with a text.
    func with(_ text: some CustomStringConvertible) -> RecordHeader { RecordHeader(name, text.description) }
}

extension [RecordHeader] {
    /// All that were there before the message was moved.
    var unmoved: [RecordHeader] {
        filter { header in
            !header.name.hasPrefix("halcyon-") || !MovedHeader.allCases.contains { $0.name == header.name }
        }
    }

    /// The bytes of the last of a name.
    func bytes(_ name: String) -> [UInt8]? { last { $0.name == name }?.value }

    /// The text of the last of a name.
    func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

    /// A whole number within `range`.
    func number(_ header: MovedHeader, in range: ClosedRange<Int64> = 0...(1 << 53)) -> Int64? {
        text(header.name).flatMap { Int64($0) }.flatMap { range.contains($0) ? $0 : nil }
    }
}

extension AttemptHistory {
    /// Of a message that was moved; nil where its headers do not say.
    init?(_ headers: [RecordHeader]) {
        // Headers that are not Halcyon's own say nothing.
        guard let count = headers.number(.attempts, in: 0...1_000_000), let began = headers.number(.began),
            let json = headers.bytes(MovedHeader.history.name), let attempts = try? [Attempt](json: json)
        else { return nil }
        self.init(began: began, count: Int(count), attempts: attempts)
    }

    var headers: [RecordHeader] {
        [
            MovedHeader.attempts.with(count), MovedHeader.began.with(began),
            RecordHeader(MovedHeader.history.name, attempts.json),
        ]
    }
}

extension LogFields {
    /// The fields `code` and `reason` of a failure, and where an error led to it `cause_type` and `cause`; none without
    /// a failure.
    public init(_ failure: Failure?) {
        self.init()
        guard let failure else { return }
        let cause = failure.cause.map { DescribedError($0) }
        self = [
            "code": failure.code.rawValue, "reason": failure.message, "cause_type": cause?.kind, "cause": cause?.text,
        ]
    }
}
