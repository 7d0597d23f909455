import Kafka
import Telemetry

/// librdkafka's properties for each of Halcyon's roles: sound defaults, over which the operator's own win.
public struct KafkaProperties: Sendable {
    private let own: [String: String]

    /// - Parameters:
    ///   - brokers: `host:port`, several with commas between them.
    ///   - properties: librdkafka's, as the operator set them.
    public init(brokers: String, properties: [String: String] = [:]) {
        own = ["bootstrap.servers": brokers].merging(properties) { $1 }
    }

    /// For a client that only asks: metadata, offsets, topics to create.
    public var admin: [String: String] { merged(["client.id": "halcyon-admin"]) }

    /// For producing: no event is lost by a broker's failure, and none is doubled by a retry.
    public var producer: [String: String] {
        merged(["client.id": "halcyon", "acks": "all", "enable.idempotence": "true", "linger.ms": "2"])
    }

    /// For reading a topic without a group, by somebody who waits for what comes.
    public var reader: [String: String] {
        // Kafka answers as soon as there is something; librdkafka's mock when this time is over.
        merged(["client.id": "halcyon-reader", "fetch.wait.max.ms": "50"])
    }

    /// For taking jobs as a member of `group`.
    public func worker(group: String) -> [String: String] {
        merged([
            "client.id": "halcyon-worker", "group.id": group, "auto.offset.reset": "earliest",
            // Sound in every version; cooperative-sticky hangs now and then in librdkafka before 2.10.
            "partition.assignment.strategy": "range",
        ])
    }

    private func merged(_ role: [String: String]) -> [String: String] {
        let common = [
            // A topic that is created, or a broker that comes back, is noticed within seconds.
            "topic.metadata.refresh.interval.ms": "10000", "reconnect.backoff.max.ms": "2000",
        ]
        return common.merging(role) { $1 }.merging(own) { $1 }
    }
}

extension ClientEvents {
    /// Says once when Kafka is away and once when it is back; librdkafka's own lines are for finding faults.
    public static func telling(_ log: Log) -> ClientEvents {
        ClientEvents(
            log: { level, facility, message in
                log.debug(message, ["facility": facility, "level": "\(level)"])
            },
            connection: { connection in
                switch connection {
                case .lost: log.warning("Kafka is away; waiting for it")
                case .restored: log.notice("Kafka is back")
                }
            })
    }
}
