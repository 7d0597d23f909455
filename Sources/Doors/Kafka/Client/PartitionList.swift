import CRdKafka
import Glibc

/// Owns an `rd_kafka_topic_partition_list_t`.
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

/// A list that librdkafka owns, read as values.
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

    /// Offsets and notes of those partitions that have any (others carry RD_KAFKA_OFFSET_INVALID).
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
