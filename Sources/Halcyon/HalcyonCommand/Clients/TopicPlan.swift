import HalcyonCluster
import Kafka

/// Which topics a cluster needs, and with which settings.
struct TopicPlan {
    /// Twelve divide evenly among many numbers of workers; a worker does many jobs of one partition at once.
    static let standardPartitions = 12

    /// The lanes, the topics of retries, the events, those that webhooks are to be told of again, the dead letters, and what workers are told.
    let topics: [NewTopic]

    /// - Parameters:
    ///   - partitions: of each lane, each topic of retries, of the events and of each topic of webhooks.
    ///   - replication: brokers that hold each partition.
    ///   - folderRetention: for how many seconds a worker's folder may keep a source: so long it must be able to hear of a purge.
    init(topics: Topics, partitions: Int, replication: Int, folderRetention: Double) {
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
            topics.taken.map { topic($0, partitions: partitions, days: 7) }
            + [
                topic(topics.events, partitions: partitions, days: 1)
            ]
            + topics.webhookRetries.map { topic($0, partitions: partitions, days: 7) }
            + [
                topic(topics.dead, partitions: 1, days: 30),
                topic(topics.control, partitions: 1, days: Self.controlDays(folderRetention)),
            ]
    }

    /// A day more than folders keep sources, and at least a week.
    private static func controlDays(_ folderRetention: Double) -> Int {
        max(7, Int((min(folderRetention, 3_155_760_000) / 86_400).rounded(.up)) + 1)
    }
}
