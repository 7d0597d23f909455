import CRdKafka

/// What a cluster consists of.
public struct ClusterMetadata: Hashable, Sendable {
    /// A broker.
    public struct Broker: Hashable, Sendable {
        /// Its `node.id`.
        public let id: Int32
        /// Where it says clients reach it.
        public let host: String
        /// Where it says clients reach it.
        public let port: Int32
    }

    /// A partition of a topic.
    public struct Partition: Hashable, Sendable {
        /// Its number.
        public let id: Int32
        /// The broker that leads it; nil when there is none at the moment.
        public let leader: Int32?
        /// The brokers that hold it.
        public let replicas: [Int32]
        /// Those of them that are up to date.
        public let inSync: [Int32]
    }

    /// In the order of their ids.
    public let brokers: [Broker]
    /// The partitions of every topic, by name, in the order of their numbers.
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
