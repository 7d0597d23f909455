import CRdKafka

/// The brokers and topics of a cluster.
public struct ClusterMetadata: Hashable, Sendable {
    /// A broker.
    public struct Broker: Hashable, Sendable {
        /// The broker's `node.id`.
        public let id: Int32
        /// The advertised host.
        public let host: String
        /// The advertised port.
        public let port: Int32
    }

    /// A partition of a topic.
    public struct Partition: Hashable, Sendable {
        /// The partition's number.
        public let id: Int32
        /// The id of the leader; nil if there is none at the moment.
        public let leader: Int32?
        /// The ids of the brokers that host a replica.
        public let replicas: [Int32]
        /// The in-sync replicas.
        public let inSync: [Int32]
    }

    /// The brokers, ordered by id.
    public let brokers: [Broker]
    /// The partitions of each topic by name, ordered by number.
    public let topics: [String: [Partition]]

    init(_ metadata: rd_kafka_metadata) {
        brokers = UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt)).map {
            Broker(id: $0.id, host: String(cString: $0.host), port: $0.port)
        }.sorted { $0.id < $1.id }
        topics = Dictionary(
            UnsafeBufferPointer(start: metadata.topics, count: Int(metadata.topic_cnt)).map { topic in
                (
                    String(cString: topic.topic),
                    UnsafeBufferPointer(start: topic.partitions, count: Int(topic.partition_cnt)).map(Partition.init)
                        .sorted { $0.id < $1.id }
                )
            }
        ) { first, _ in first }
    }
}

extension ClusterMetadata.Partition {
    fileprivate init(_ partition: rd_kafka_metadata_partition) {
        id = partition.id
        leader = partition.leader < 0 ? nil : partition.leader
        replicas = Array(UnsafeBufferPointer(start: partition.replicas, count: Int(partition.replica_cnt)))
        inSync = Array(UnsafeBufferPointer(start: partition.isrs, count: Int(partition.isr_cnt)))
    }
}
