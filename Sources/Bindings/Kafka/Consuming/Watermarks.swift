import CRdKafka
import Concurrency
import Glibc

/// A deadline shared by several blocking calls.
struct Deadline: Sendable {
    private let end: ContinuousClock.Instant

    init(_ limit: Duration) { end = .now + limit }

    /// Milliseconds left, at least one.
    var left: Int32 { max(1, (end - .now).milliseconds) }

    /// Retries every 50 ms on retriable errors. An unknown topic is reported immediately.
    func retrying<Success>(_ attempt: () throws(KafkaError) -> Success) throws(KafkaError) -> Success {
        while true {
            do throws(KafkaError) {
                return try attempt()
            } catch {
                guard error.isRetriable, error.code != .unknownTopicOrPartition, .now < end else { throw error }
                usleep(50_000)
            }
        }
    }
}

// All of these calls block. Run them in `blocking`.
extension Client {
    /// The partitions of a topic.
    func partitions(of topic: String, _ deadline: Deadline) throws(KafkaError) -> [Int32] {
        guard let handle = rd_kafka_topic_new(pointer, topic, nil) else { throw KafkaError(rd_kafka_last_error()) }
        defer { rd_kafka_topic_destroy(handle) }
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(pointer, 0, handle, &metadata, deadline.left)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata else { throw KafkaError(code) }
        defer { rd_kafka_metadata_destroy(metadata) }
        let found = metadata.pointee.topics[0]
        guard found.err == RD_KAFKA_RESP_ERR_NO_ERROR, found.partition_cnt > 0 else {
            let code = found.err == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : found.err
            throw KafkaError(code, "topic \(topic): \(String(cString: rd_kafka_err2str(code)))")
        }
        return (0..<Int(found.partition_cnt)).map { found.partitions[$0].id }
    }

    /// The low and high watermark of each partition: the oldest offset, and one past the newest.
    func watermarks(of topic: String, _ deadline: Deadline) throws(KafkaError) -> [Int32: Range<Int64>] {
        var watermarks: [Int32: Range<Int64>] = [:]
        for partition in try partitions(of: topic, deadline) {
            watermarks[partition] = try self.watermarks(of: TopicPartition(topic, partition), deadline)
        }
        return watermarks
    }

    /// The low and high watermark: the oldest offset, and one past the newest.
    func watermarks(of partition: TopicPartition, _ deadline: Deadline) throws(KafkaError) -> Range<Int64> {
        var low: Int64 = 0
        var high: Int64 = 0
        while true {
            let code = rd_kafka_query_watermark_offsets(
                pointer, partition.topic, partition.partition, &low, &high, deadline.left)
            switch code {
            case RD_KAFKA_RESP_ERR_NO_ERROR: return low..<max(low, high)
            // Leadership is moving, or the topic is new. librdkafka leaves the retry to the caller.
            case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION where deadline.left > 1,
                RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE where deadline.left > 1:
                usleep(20_000)
            default: throw KafkaError(code, "\(partition): \(String(cString: rd_kafka_err2str(code)))")
            }
        }
    }

    /// The committed offsets of the consumer's group.
    func committed(
        in partitions: [TopicPartition], _ deadline: Deadline
    ) throws(KafkaError) -> [TopicPartition: GroupOffset] {
        let list = PartitionList(partitions)
        let code = rd_kafka_committed(pointer, list.pointer, deadline.left)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code) }
        let view = PartitionListView(list.pointer)!
        if let error = view.firstError { throw error }
        return view.groupOffsets
    }

    /// True if the brokers are a ``MockCluster``, as its cluster id shows. It answers every lookup by time with the
    /// end, and accepts transactions that it does not implement.
    func isMock(_ deadline: Deadline) -> Bool {
        guard let id = rd_kafka_clusterid(pointer, deadline.left) else { return false }
        defer { rd_kafka_mem_free(pointer, id) }
        return String(cString: id).hasPrefix("mockCluster")
    }

    /// The start position as offsets.
    func offsets(
        of topic: String, for start: TopicReader.Start, _ watermarks: [Int32: Range<Int64>], _ deadline: Deadline
    ) throws(KafkaError) -> [Int32: Int64] {
        switch start {
        case .beginning: return watermarks.mapValues(\.lowerBound)
        case .end: return watermarks.mapValues(\.upperBound)
        case .offsets(let offsets):
            guard offsets.values.allSatisfy({ $0 >= 0 }) else {
                throw KafkaError(code: .invalidArgument, message: "start offsets must not be negative: \(offsets)")
            }
            return watermarks.mapValues(\.lowerBound).merging(offsets.filter { watermarks[$0.key] != nil }) { $1 }
        case .timestamp where isMock(deadline): return watermarks.mapValues(\.lowerBound)
        case .timestamp(let time):
            let list = PartitionList(
                Dictionary(uniqueKeysWithValues: watermarks.keys.map { (TopicPartition(topic, $0), GroupOffset(time)) })
            )
            let code = rd_kafka_offsets_for_times(pointer, list.pointer, deadline.left)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code) }
            let view = PartitionListView(list.pointer)!
            if let error = view.firstError { throw error }
            // The result is "end" if no record is recent enough. The end seen before the lookup misses nothing.
            let found = view.groupOffsets.map { ($0.key.partition, $0.value.offset) }
            return watermarks.mapValues(\.upperBound).merging(found) { $1 }
        }
    }
}
