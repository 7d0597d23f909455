import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry

/// A job that waits in a retry topic: the original message, with headers that contain everything another worker needs.
public struct RetryMessage: Hashable, Sendable {
    /// The position at which the job was first written.
    public var provenance: OriginalRecord
    /// The previous attempts.
    public var history: AttemptHistory
    /// The time of the next attempt, in milliseconds since 1970.
    public var due: Int64
    /// True if the job's started event was published.
    public var hasStarted: Bool
    /// The completed uploads of the job: ``uploadMark(_:)`` of the bytes, by the index of the variant.
    public var uploads: [Int: String]

    /// Creates a message from all values.
    public init(
        provenance: OriginalRecord, history: AttemptHistory, due: Int64, hasStarted: Bool, uploads: [Int: String] = [:]
    ) {
        self.provenance = provenance
        self.history = history
        self.due = due
        self.hasStarted = hasStarted
        self.uploads = uploads
    }

    /// Returns the beginning of a SHA-256 in hexadecimal, which identifies uploaded bytes.
    public static func uploadMark(_ sha256: String) -> String { String(sha256.prefix(16)) }

    /// Creates a message that is due after a number of seconds.
    public init(
        provenance: OriginalRecord, history: AttemptHistory, after seconds: Double, hasStarted: Bool,
        uploads: [Int: String] = [:]
    ) {
        self.init(
            provenance: provenance, history: history,
            due: Timestamp.now.milliseconds + Int64((seconds * 1000).rounded(.up)), hasStarted: hasStarted,
            uploads: uploads)
    }

    /// The seconds until the message is due. Limited to the delay of its topic, because the clocks of two machines may
    /// differ.
    public func left(upTo longest: Double) -> Double {
        min(longest, max(0, Double(due - Timestamp.now.milliseconds) / 1000))
    }

    /// Decodes a message of a retry topic.
    /// - Throws: ``JobError`` `invalid_job` for a message that Halcyon did not write.
    public init(_ record: ConsumedRecord) throws(JobError) {
        let headers = record.headers
        guard let provenance = OriginalRecord(headers), let history = AttemptHistory(headers),
            let due = headers.number(.due)
        else {
            throw JobError(
                .invalidJob,
                "not a retry message of Halcyon: its headers do not contain the original record, the attempts and "
                    + "the due time; submit jobs to the topic of a lane")
        }
        self.init(
            provenance: provenance, history: history, due: due,
            hasStarted: headers.text(HalcyonHeader.started.name) == "true",
            uploads: Self.uploads(headers.text(HalcyonHeader.uploaded.name) ?? ""))
    }

    /// Parses the uploads, such as `0=9f86d081884c7d65,2=60303ae22b998861`. Malformed ones are ignored, and the bytes are
    /// uploaded again.
    private static func uploads(_ text: String) -> [Int: String] {
        var uploads: [Int: String] = [:]
        for pair in text.split(separator: ",") {
            let parts = pair.split(separator: "=")
            guard parts.count == 2, let index = Int(parts[0]) else { continue }
            uploads[index] = String(parts[1])
        }
        return uploads
    }

    /// The header of the uploads; none without uploads.
    private var uploadHeaders: [RecordHeader] {
        guard !uploads.isEmpty else { return [] }
        let list = uploads.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return [HalcyonHeader.uploaded.with(list.joined(separator: ","))]
    }

    /// Creates the record for a retry topic from `record`.
    public func record(of record: ConsumedRecord, to topic: String) -> ProducerRecord {
        ProducerRecord(
            topic: topic, key: record.key, value: record.value,
            headers: record.headers.unmoved + provenance.headers + history.headers
                + [HalcyonHeader.due.with(due), HalcyonHeader.started.with(hasStarted)] + uploadHeaders)
    }
}

/// The position at which a message was first written. Ids of jobs and events are derived from it, so that they stay the
/// same after a redelivery or a move to another topic.
public struct OriginalRecord: Hashable, Sendable {
    /// The topic of the original record.
    public let topic: String
    /// The partition of the original record.
    public let partition: Int32
    /// The offset of the original record.
    public let offset: Int64
    /// The time at which it was written, in milliseconds since 1970.
    public let submitted: Int64
    /// The topic, partition and offset, as used in ids of jobs and events.
    public let coordinates: String

    init(topic: String, partition: Int32, offset: Int64, submitted: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.submitted = submitted
        coordinates = "\(topic)-\(partition)-\(offset)"
    }

    /// Creates the position of a message that its producer wrote there.
    public init(_ record: ConsumedRecord) {
        self.init(
            topic: record.topic, partition: record.partition, offset: record.offset,
            submitted: record.timestamp < 0 ? Timestamp.now.milliseconds : record.timestamp)
    }

    /// Reads the position of a moved message from its headers; nil if they are incomplete.
    init?(_ headers: [RecordHeader]) {
        guard let topic = headers.text(HalcyonHeader.topic.name), !topic.isEmpty,
            let partition = headers.number(.partition, in: 0...Int64(Int32.max)),
            let offset = headers.number(.offset, in: 0 ... .max), let submitted = headers.number(.submitted)
        else { return nil }
        self.init(topic: topic, partition: Int32(partition), offset: offset, submitted: submitted)
    }

    var headers: [RecordHeader] {
        [
            HalcyonHeader.topic.with(topic), HalcyonHeader.partition.with(partition), HalcyonHeader.offset.with(offset),
            HalcyonHeader.submitted.with(submitted),
        ]
    }
}

/// The headers that Halcyon adds to messages that it moves to another topic. The names are reserved. Headers of
/// producers with these names are removed.
enum HalcyonHeader: String, CaseIterable {
    // The original record.
    case topic, partition, offset, submitted
    // The attempts since.
    case attempts, began, history
    // Retries.
    case due, started, uploaded
    // Dead letters.
    case code, message, reason, cut

    /// The name in the message.
    var name: String { "halcyon-\(rawValue)" }

    /// Creates the header with a value.
    func with(_ text: some CustomStringConvertible) -> RecordHeader { RecordHeader(name, text.description) }
}

extension [RecordHeader] {
    /// The headers without those that Halcyon added.
    var unmoved: [RecordHeader] {
        filter { header in
            !header.name.hasPrefix("halcyon-") || !HalcyonHeader.allCases.contains { $0.name == header.name }
        }
    }

    /// The bytes of the last header with a name.
    func bytes(_ name: String) -> [UInt8]? { last { $0.name == name }?.value }

    /// The text of the last header with a name.
    func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

    /// The integer value of a header, if it is within `range`.
    func number(_ header: HalcyonHeader, in range: ClosedRange<Int64> = 0...(1 << 53)) -> Int64? {
        text(header.name).flatMap { Int64($0) }.flatMap { range.contains($0) ? $0 : nil }
    }
}

extension AttemptHistory {
    /// Reads the attempts of a moved message from its headers; nil if they are incomplete.
    init?(_ headers: [RecordHeader]) {
        // Invalid headers are ignored.
        guard let count = headers.number(.attempts, in: 0...1_000_000), let began = headers.number(.began),
            let json = headers.bytes(HalcyonHeader.history.name), let attempts = try? [Attempt](json: json)
        else { return nil }
        self.init(began: began, count: Int(count), attempts: attempts)
    }

    var headers: [RecordHeader] {
        [
            HalcyonHeader.attempts.with(count), HalcyonHeader.began.with(began),
            RecordHeader(HalcyonHeader.history.name, attempts.json),
        ]
    }
}

extension LogMetadata {
    /// Creates the fields `code` and `reason` of an error, and `cause_type` and `cause` if it has an underlying error.
    /// No fields without an error.
    public init(_ failure: JobError?) {
        self.init()
        guard let failure else { return }
        let cause = failure.cause.map { DescribedError($0) }
        self = [
            "code": failure.code.rawValue, "reason": failure.message, "cause_type": cause?.kind, "cause": cause?.text,
        ]
    }
}
