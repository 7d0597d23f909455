import Kafka
import TestSupport
import Testing

/// The broker of a test.
enum TestBroker: Sendable {
    /// The kind of broker.
    enum Kind: Sendable {
        /// A mock broker in this process. It takes half a minute or more to reassign partitions of a crashed member.
        case mock
        /// The broker of the suite. Tests that use it run one after another.
        case apache
    }

    case mock(MockCluster)
    case apache(ApacheKafka)

    static func make(_ kind: Kind) throws -> TestBroker {
        switch kind {
        case .mock: .mock(try MockCluster())
        case .apache: .apache(try #require(SharedApacheKafka.current))
        }
    }

    var bootstrapServers: String {
        switch self {
        case .mock(let mock): mock.bootstrapServers
        case .apache(let kafka): kafka.bootstrapServers
        }
    }

    /// Properties of consumers, with the address.
    var consumerProperties: [String: String] { ["bootstrap.servers": bootstrapServers] + MockCluster.fetchProperties }

    func create(_ topics: [String], partitions: Int) async throws {
        switch self {
        case .mock(let mock): try await mock.createTopics(topics, partitions: partitions)
        case .apache(let kafka): try await kafka.create(topics, partitions: partitions)
        }
    }

    /// Stops the broker, unless it belongs to the suite.
    func stop() async {
        if case .mock(let mock) = self { await mock.stop() }
    }
}
