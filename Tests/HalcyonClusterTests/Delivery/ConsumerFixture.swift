import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// The broker of a ``ConsumerFixture``.
enum BrokerKind: CaseIterable {
    case mock, apache
    static let available: [BrokerKind] = ApacheKafka.isAvailable ? [.mock, .apache] : [.mock]
}

/// The topics of one test on a broker.
struct ConsumerFixture: Sendable {
    let topics: Topics
    let kafka: KafkaProperties
    let properties: [String: String]
    let mock: MockCluster?
    let partitions: Int

    static func with(_ broker: BrokerKind, partitions: Int, _ body: (ConsumerFixture) async throws -> Void) async throws
    {
        let mock = broker == .mock ? try MockCluster() : nil
        let servers =
            if let mock {
                mock.bootstrapServers
            } else {
                try #require(SharedApacheKafka.current).bootstrapServers
            }
        let topics = Topics(prefix: "test\(UInt32.random(in: 0 ... .max)).")
        let own = mock == nil ? [:] : MockCluster.fetchProperties
        // The session survives pauses of a busy machine. On the mock broker, a consumer that follows another waits for
        // nearly as long.
        let session = mock == nil ? "60000" : "12000"
        let kafka = KafkaProperties(brokers: servers, properties: ["session.timeout.ms": session] + own)
        let fixture = ConsumerFixture(
            topics: topics, kafka: kafka, properties: kafka.worker(group: topics.prefix, exactlyOnce: true), mock: mock,
            partitions: partitions)
        do {
            try await fixture.createTopics()
            try await body(fixture)
        } catch {
            await mock?.stop()
            throw error
        }
        await mock?.stop()
    }

    private func createTopics() async throws {
        if let mock {
            try await mock.createTopics(topics.all, partitions: partitions)
        } else {
            try await #require(SharedApacheKafka.current).create(topics.all, partitions: partitions)
        }
    }

    /// Submits jobs named by these numbers, in any order, to all partitions. Left to itself, the producer may send all of
    /// them to one.
    func submit(_ numbers: Range<Int>) async throws {
        let servers = properties.filter { $0.key == "bootstrap.servers" }
        let producer = try Producer(properties: servers.merging(["linger.ms": "5"]) { $1 })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in numbers {
                // Tests treat multiples alike, which are not to be in the same partition.
                let record = ProducerRecord(
                    topic: topics.jobs(.normal), partition: Int32(number % 11 % partitions),
                    value: Array("\(number)".utf8))
                group.addTask { try await producer.send(record) }
            }
            try await group.waitForAll()
        }
        await producer.close()
    }

    /// Submits jobs to the first partition, named by their offsets.
    func submitInOrder(_ numbers: Range<Int>) async throws { try await submitInOrder(numbers.map(String.init)) }

    /// Submits jobs with these names to the first partition.
    /// - Parameter topic: The topic; nil for that of the normal lane.
    func submitInOrder(_ names: [String], to topic: String? = nil) async throws {
        let servers = properties.filter { $0.key == "bootstrap.servers" }
        let producer = try Producer(properties: servers.merging(["enable.idempotence": "true"]) { $1 })
        // An idempotent producer keeps the order of a partition.
        let topic = topic ?? topics.jobs(.normal)
        let errors = await producer.send(
            all: names.map { ProducerRecord(topic: topic, partition: 0, value: Array($0.utf8)) })
        for case let error? in errors { throw error }
        await producer.close()
    }

    func start(_ consumer: JobConsumer) async throws {
        try await consumer.start(topics: topics.taken, properties: properties, events: ClientCallbacks())
    }
}
