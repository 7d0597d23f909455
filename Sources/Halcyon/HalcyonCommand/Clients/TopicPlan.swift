import HalcyonCluster
import Kafka

/// Which topics a cluster needs, and with which settings.
struct TopicPlan {
    /// Twelve divide evenly among many numbers of workers; a worker does many jobs of one partition at once.
    static let standardPartitions = 12

    /// The lanes, the events and the dead letters.
    let topics: [NewTopic]

    /// - Parameters:
    ///   - partitions: of each lane and of the events.
    ///   - replication: brokers that hold each partition.
    init(topics: Topics, partitions: Int, replication: Int) {
        func topic(_ name: String, partitions: Int, days: Int) -> NewTopic {
            NewTopic(
                name, partitions: partitions, replication: replication,
                configuration: [
                    "cleanup.policy": "delete", "retention.ms": "\(days * 86_400_000)",
                    // One of three brokers may be away.
                    "min.insync.replicas": replication >= 3 ? "2" : "1",
                ])
        }
        self.topics =
            topics.lanes.map { topic($0, partitions: partitions, days: 7) }
            + [topic(topics.events, partitions: partitions, days: 1), topic(topics.dead, partitions: 1, days: 30)]
    }
}
