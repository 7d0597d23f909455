import CivilTime
import Kafka

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
