import CRdKafka
import Threads

/// Looks at a cluster and makes topics.
///
/// Each call runs on a thread of its own, never on the cooperative pool, and gives up after its time. ``close()`` must
/// be called before the last reference goes.
public final class Admin: Sendable {
    private let client: Client
    private let properties: [String: String]
    private let events: ClientEvents

    /// - Parameters:
    ///   - properties: librdkafka's.
    ///   - events: told of logs.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    public init(properties: [String: String], events: ClientEvents = ClientEvents()) throws(KafkaError) {
        client = try Client(RD_KAFKA_PRODUCER, properties: properties, events: events)
        self.properties = properties
        self.events = events
    }

    /// Ends it; calls under way are finished, later ones throw ``KafkaError/Code/closed``. A second call does nothing.
    public func close() async {
        await blocking { [client] in client.destroy() }
    }

    /// Makes topics, and waits until a broker knows them.
    /// - Returns: what became of each, by name. The mock cluster does not know this request: every topic fails there.
    /// - Throws: ``KafkaError`` when the request as a whole failed or a topic's description was refused.
    public func create(
        _ topics: [NewTopic], within limit: Duration = .seconds(20)
    ) async throws(KafkaError) -> [String: TopicCreation] {
        try await call { (client) throws(KafkaError) in try client.create(topics, Deadline(limit)) }
    }

    /// The brokers and all topics.
    /// - Throws: ``KafkaError``, also when no broker answers in time.
    public func metadata(within limit: Duration = .seconds(10)) async throws(KafkaError) -> ClusterMetadata {
        try await call { (client) throws(KafkaError) in
            var metadata: UnsafePointer<rd_kafka_metadata>?
            let code = rd_kafka_metadata(client.pointer, 1, nil, &metadata, limit.milliseconds)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata else { throw KafkaError(code) }
            defer { rd_kafka_metadata_destroy(metadata) }
            return ClusterMetadata(metadata.pointee)
        }
    }

    /// The oldest offset and one past the newest of each partition.
    /// - Throws: ``KafkaError`` for the first partition that cannot be looked up within the time for all.
    public func watermarks(
        of partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: Range<Int64>] {
        try await call { (client) throws(KafkaError) in
            let deadline = Deadline(limit)
            var watermarks: [TopicPartition: Range<Int64>] = [:]
            for partition in partitions { watermarks[partition] = try client.watermarks(of: partition, deadline) }
            return watermarks
        }
    }

    /// What a group has committed; partitions without a commit are left out. The group need not have members.
    /// - Throws: ``KafkaError``.
    public func committed(
        by group: String, in partitions: [TopicPartition], within limit: Duration = .seconds(10)
    ) async throws(KafkaError) -> [TopicPartition: GroupOffset] {
        if partitions.isEmpty { return [:] }
        return try await call { [properties, events] (_) throws(KafkaError) in
            // Asked by a consumer, which joins nothing. librdkafka's admin request for this is a crash when the group's
            // coordinator is not there yet, up to 2.10 at least (its issue 5040).
            let consumer = try Client(
                RD_KAFKA_CONSUMER, properties: properties,
                enforced: ["group.id": group, "enable.auto.commit": "false"], events: events)
            defer { consumer.destroy() }
            return try consumer.committed(in: partitions, Deadline(limit))
        }
    }

    private func call<Success: Sendable>(
        _ body: @escaping @Sendable (Client) throws(KafkaError) -> Success
    ) async throws(KafkaError) -> Success {
        try await blocking { [client] () throws(KafkaError) in try client.use(body) }
    }
}
