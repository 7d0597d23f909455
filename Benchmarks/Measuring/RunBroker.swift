import Kafka
import TestSupport

/// The broker of a run: Apache Kafka where it is there, else librdkafka's mock cluster.
public enum RunBroker: Sendable {
    /// Apache Kafka, of this run alone.
    case apache(ApacheKafka)
    /// The mock cluster.
    case mock(MockCluster)

    /// Starts it, with these topics of 8 partitions each.
    public static func start(_ topics: [String]) async throws -> RunBroker {
        guard ApacheKafka.isAvailable else {
            let mock = try MockCluster()
            try await mock.createTopics(topics, partitions: 8)
            return .mock(mock)
        }
        let kafka = try await ApacheKafka()
        try await kafka.start()
        try await kafka.create(topics, partitions: 8)
        return .apache(kafka)
    }

    /// For the lines of a report.
    public var name: String {
        switch self {
        case .apache: "Apache Kafka"
        case .mock: "librdkafka's mock cluster"
        }
    }

    /// For Kafka clients.
    public var bootstrapServers: String {
        switch self {
        case .apache(let kafka): kafka.bootstrapServers
        case .mock(let mock): mock.bootstrapServers
        }
    }

    /// Ends it, and removes what it kept.
    public func remove() async {
        switch self {
        case .apache(let kafka): await kafka.remove()
        case .mock(let mock): await mock.stop()
        }
    }
}
