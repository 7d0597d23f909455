import Kafka

/// What waits in topics for a consumer group.
public struct GroupLag: Sendable {
    /// Messages by partition that the group has not passed.
    public let waiting: [TopicPartition: Int64]
    /// Whether it has ever committed in one of them.
    public let hasCommitted: Bool

    /// All that waits in a topic.
    public func count(in topic: String) -> Int64 {
        waiting.reduce(0) { $1.key.topic == topic ? $0 + $1.value : $0 }
    }

    /// Looks it up. Of a partition where the group has committed nothing, all that is there waits.
    /// - Parameters:
    ///   - topics: those that the metadata does not have are left out.
    ///   - limit: for each of two questions.
    /// - Throws: `KafkaError`, also when the group's coordinator does not answer in time.
    public static func of(
        _ group: String, in topics: [String], by admin: Admin, _ metadata: ClusterMetadata, within limit: Duration
    ) async throws(KafkaError) -> GroupLag {
        var partitions: [TopicPartition] = []
        for topic in topics { partitions += (metadata.topics[topic] ?? []).map { TopicPartition(topic, $0.id) } }
        let written = try await admin.watermarks(of: partitions, within: limit)
        let committed = try await admin.committed(by: group, in: partitions, within: limit)
        let waiting = written.mapValues { $0.upperBound - $0.lowerBound }.merging(
            committed.map { ($0.key, max(0, (written[$0.key]?.upperBound ?? 0) - $0.value.offset)) }
        ) { $1 }
        return GroupLag(waiting: waiting, hasCommitted: !committed.isEmpty)
    }
}
