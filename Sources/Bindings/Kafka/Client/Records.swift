import CRdKafka
import Glibc

/// A partition of a topic.
public struct TopicPartition: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The topic's name.
    public var topic: String
    /// The partition's number, from 0.
    public var partition: Int32

    /// Creates a partition from topic and number.
    public init(_ topic: String, _ partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    /// Orders by topic, then by number.
    public static func < (one: TopicPartition, other: TopicPartition) -> Bool {
        (one.topic, one.partition) < (other.topic, other.partition)
    }

    /// The partition in the form `topic[partition]`.
    public var description: String { "\(topic)[\(partition)]" }
}

/// A header of a record. Names may repeat.
public struct RecordHeader: Hashable, Sendable {
    /// The name.
    public var name: String
    /// The value, which may be nil.
    public var value: [UInt8]?

    /// Creates a header with bytes.
    public init(_ name: String, _ value: [UInt8]?) {
        self.name = name
        self.value = value
    }

    /// Creates a header with text in UTF-8.
    public init(_ name: String, _ value: String) {
        self.init(name, Array(value.utf8))
    }
}

/// A record to send.
public struct ProducerRecord: Hashable, Sendable {
    /// The topic.
    public var topic: String
    /// The partition; nil lets librdkafka's partitioner choose by the key (property `partitioner`).
    public var partition: Int32?
    /// The key; nil for none.
    public var key: [UInt8]?
    /// The value; nil is a tombstone.
    public var value: [UInt8]?
    /// The headers, in order.
    public var headers: [RecordHeader]
    /// The timestamp in milliseconds since 1970; nil for now.
    public var timestamp: Int64?

    /// Creates a record. Only topic and value are required.
    public init(
        topic: String, partition: Int32? = nil, key: [UInt8]? = nil, value: [UInt8]?, headers: [RecordHeader] = [],
        timestamp: Int64? = nil
    ) {
        self.topic = topic
        self.partition = partition
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
    }
}

/// The position of a delivered record.
public struct Delivery: Hashable, Sendable {
    /// The partition.
    public let partition: Int32
    /// The offset; -1 if `acks` is 0, because no broker reports it.
    public let offset: Int64
}

/// A record received by a consumer.
public struct ConsumedRecord: Hashable, Sendable {
    /// The topic.
    public var topic: String
    /// The partition.
    public var partition: Int32
    /// The offset.
    public var offset: Int64
    /// The timestamp in milliseconds since 1970, set by the producer or the broker depending on the topic's
    /// configuration; -1 if there is none.
    public var timestamp: Int64
    /// The key; nil for none.
    public var key: [UInt8]?
    /// The value; nil is a tombstone.
    public var value: [UInt8]?
    /// The headers, in order.
    public var headers: [RecordHeader]

    /// Creates a record as if received from a broker, for tests and test doubles.
    public init(
        topic: String, partition: Int32, offset: Int64, timestamp: Int64 = -1, key: [UInt8]? = nil, value: [UInt8]?,
        headers: [RecordHeader] = []
    ) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
    }

    /// The size of key, value and headers.
    public var bytes: Int {
        headers.reduce((key?.count ?? 0) + (value?.count ?? 0)) { $0 + $1.name.utf8.count + ($1.value?.count ?? 0) }
    }

    /// The topic and partition.
    public var topicPartition: TopicPartition { TopicPartition(topic, partition) }
}

/// A committed offset of a group, with its metadata.
public struct GroupOffset: Hashable, Sendable {
    /// The next offset to read.
    public var offset: Int64
    /// Metadata stored with the offset, ASCII only: librdkafka 2.0.2 garbles what follows a zero byte (its issue 4649).
    /// The broker's limit is `offset.metadata.max.bytes`, 4096 by default.
    public var metadata: String

    /// Creates an offset with optional metadata.
    public init(_ offset: Int64, metadata: String = "") {
        self.offset = offset
        self.metadata = metadata
    }

    var hasPlainMetadata: Bool { metadata.utf8.allSatisfy { 1..<128 ~= $0 } }

    static let metadataIsNotPlain = KafkaError(
        code: .invalidArgument, message: "the metadata of a committed offset must be ASCII")
}

/// An owned `rd_kafka_topic_partition_list_t`.
struct PartitionList: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(_ partitions: some Collection<TopicPartition>) {
        pointer = rd_kafka_topic_partition_list_new(Int32(partitions.count))
        for partition in partitions {
            rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition)
        }
    }

    init(_ offsets: [TopicPartition: GroupOffset]) {
        pointer = rd_kafka_topic_partition_list_new(Int32(offsets.count))
        for (partition, offset) in offsets {
            let element = rd_kafka_topic_partition_list_add(pointer, partition.topic, partition.partition)!
            element.pointee.offset = offset.offset
            if !offset.metadata.isEmpty {
                element.pointee.metadata = UnsafeMutableRawPointer(strdup(offset.metadata))  // freed with the list
                element.pointee.metadata_size = offset.metadata.utf8.count
            }
        }
    }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }
}

/// A read-only view of a list that librdkafka owns.
struct PartitionListView: Sequence {
    let pointer: UnsafePointer<rd_kafka_topic_partition_list_t>

    init?(_ pointer: UnsafePointer<rd_kafka_topic_partition_list_t>?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }

    func makeIterator() -> UnsafeBufferPointer<rd_kafka_topic_partition_t>.Iterator {
        UnsafeBufferPointer(start: pointer.pointee.elems, count: Int(pointer.pointee.cnt)).makeIterator()
    }

    var partitions: [TopicPartition] { map(\.topicPartition) }

    /// The first error of a partition.
    var firstError: KafkaError? {
        first { $0.err != RD_KAFKA_RESP_ERR_NO_ERROR }.map { element in
            KafkaError(element.err, "\(element.topicPartition): \(String(cString: rd_kafka_err2str(element.err)))")
        }
    }

    /// The offsets and metadata of the partitions that have any (others carry RD_KAFKA_OFFSET_INVALID).
    var groupOffsets: [TopicPartition: GroupOffset] {
        var offsets: [TopicPartition: GroupOffset] = [:]
        for element in self where element.offset >= 0 {
            let bytes = UnsafeRawBufferPointer(start: element.metadata, count: element.metadata_size)
            offsets[element.topicPartition] = GroupOffset(
                element.offset, metadata: String(decoding: bytes, as: UTF8.self))
        }
        return offsets
    }
}

extension rd_kafka_topic_partition_t {
    fileprivate var topicPartition: TopicPartition { TopicPartition(String(cString: topic), partition) }
}
