import Concurrency
import Kafka
import TestSupport
import Testing

/// The parent suite of all tests of the binding, which share one Apache Kafka if it is available.
@Suite(.limitedParallelism, .sharedApacheKafka) struct KafkaTests {}

/// A kind of cluster.
enum ClusterKind: CaseIterable, CustomTestStringConvertible {
    case mock, apache

    /// Both kinds; only the mock cluster without KAFKA_HOME.
    static let available: [ClusterKind] = ApacheKafka.isAvailable ? [.mock, .apache] : [.mock]

    var testDescription: String { self == .mock ? "mock cluster" : "Apache Kafka" }
}

/// A cluster for one test.
struct ClusterFixture {
    let bootstrapServers: String
    let kind: ClusterKind
    /// The mock cluster; nil for Apache Kafka.
    let mock: MockCluster?

    private static let counter = Lock(0)

    /// Runs `body` with a cluster of the kind: a mock cluster of its own, or the Apache Kafka that all tests share.
    static func with(_ kind: ClusterKind, _ body: (ClusterFixture) async throws -> Void) async throws {
        switch kind {
        case .mock:
            let mock = try MockCluster()
            do {
                try await body(ClusterFixture(bootstrapServers: mock.bootstrapServers, kind: kind, mock: mock))
            } catch {
                await mock.stop()
                throw error
            }
            await mock.stop()
        case .apache:
            let apache = try #require(SharedApacheKafka.current)
            try await body(ClusterFixture(bootstrapServers: apache.bootstrapServers, kind: kind, mock: nil))
        }
    }

    /// Returns a name that no other test uses.
    func unique(_ word: String) -> String {
        let number = Self.counter.withLock { number in
            number += 1
            return number
        }
        return "\(word)-\(number)"
    }

    /// Creates a topic that no other test uses.
    func newTopic(partitions: Int) async throws -> String {
        let name = unique("topic")
        if let mock {
            try await mock.createTopics([name], partitions: partitions)
        } else {
            let admin = try Admin(properties: properties)
            let topic = NewTopic(name, partitions: partitions, replication: 1)
            let results = try await admin.create([topic], within: .patience)
            await admin.close()
            #expect(results == [name: .created])
        }
        return name
    }

    /// The properties of all clients.
    var properties: [String: String] {
        ["bootstrap.servers": bootstrapServers] + (kind == .mock ? MockCluster.fetchProperties : [:])
    }

    /// Returns the properties of a consumer. Its session survives pauses of a busy machine. On the mock cluster, a
    /// rebalance takes nearly as long as the session timeout.
    func properties(group: String, _ more: [String: String] = [:]) -> [String: String] {
        let session = kind == .mock ? "12000" : "60000"
        return properties.merging(
            ["group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": session]
        ) { $1 }.merging(more) { $1 }
    }

    func producer(_ more: [String: String] = [:]) throws -> Producer {
        try Producer(properties: ["bootstrap.servers": bootstrapServers, "linger.ms": "1"].merging(more) { $1 })
    }

    /// Sends records with the values "0", "1", … concurrently in any order, and returns when all are stored.
    func fill(_ topic: String, partition: Int32? = nil, _ numbers: Range<Int>) async throws {
        let producer = try producer()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in numbers {
                group.addTask {
                    let value = Array("\(number)".utf8)
                    try await producer.send(
                        ProducerRecord(topic: topic, partition: partition, key: value, value: value))
                }
            }
            try await group.waitForAll()
        }
        await producer.close()
    }
}

extension Consumer {
    /// Returns the committed offset of a partition, or an empty dictionary.
    func committed(_ partition: TopicPartition) async throws(KafkaError) -> [TopicPartition: GroupOffset] {
        try await committed([partition], within: .patience)
    }
}
