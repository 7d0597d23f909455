import Kafka
import TestSupport
import Testing

/// The broker of a stage.
enum StageBroker: Sendable {
    /// Which one a test asks for.
    enum Kind: Sendable {
        /// In this process; it takes half a minute and more to give the partitions of a member that died to others.
        case mock
        /// The one that the suite has; tests on it take one after the other.
        case apache
    }

    case mock(MockCluster)
    case apache(ApacheKafka)

    static func make(_ kind: Kind) throws -> StageBroker {
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

    func create(_ topics: [String], partitions: Int) async throws {
        switch self {
        case .mock(let mock): for topic in topics { try mock.createTopic(topic, partitions: partitions) }
        case .apache(let kafka): try await kafka.create(topics, partitions: partitions)
        }
    }

    /// Ends it, if it is the stage's own.
    func stop() async {
        if case .mock(let mock) = self { await mock.stop() }
    }
}
