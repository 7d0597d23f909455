import HalcyonCluster
import Kafka
import ProgramSettings

/// The way to Kafka for a command that somebody waits for.
struct KafkaAccess: Sendable {
    let properties: KafkaProperties
    let topics: Topics
    /// The addresses, for messages.
    let brokers: String

    /// Waits until a broker answers, and says so when none does at once.
    /// - Parameter deadline: nil to wait for ever.
    /// - Throws: ``Trouble`` when the time is over, ``KafkaError`` for a property that is refused, `CancellationError`.
    func metadata(until deadline: ContinuousClock.Instant?) async throws -> ClusterMetadata {
        try await withAdmin { try await metadata(by: $0, until: deadline) }
    }

    /// Runs `body` with a client that asks and makes topics, and ends it.
    /// - Throws: ``KafkaError`` for a property that is refused, and what `body` throws.
    func withAdmin<Value: Sendable>(_ body: (Admin) async throws -> Value) async throws -> Value {
        let admin = try Admin(properties: properties.admin)
        return try await closing({ await admin.close() }) { try await body(admin) }
    }

    private func metadata(by admin: Admin, until deadline: ContinuousClock.Instant?) async throws -> ClusterMetadata {
        var hasSaidSo = false
        while true {
            let left = deadline.map { $0 - .now } ?? .seconds(2)
            do throws(KafkaError) {
                return try await admin.metadata(within: max(.milliseconds(1), min(left, .seconds(2))))
            } catch {
                try Task.checkCancellation()
                guard error.isRetriable else { throw error }
                if let deadline, .now >= deadline { throw Trouble.kafkaIsAway(brokers) }
                if !hasSaidSo { Console.complain("Kafka does not answer at \(brokers); waiting for it") }
                hasSaidSo = true
            }
        }
    }

    /// - Throws: ``Trouble`` that names a topic which is not there.
    func require(_ names: some Sequence<String>, in metadata: ClusterMetadata) throws(Trouble) {
        for name in names where metadata.topics[name] == nil {
            throw Trouble("there is no topic \(name) on \(brokers); `halcyon topics create` makes the topics")
        }
    }

    /// How long a command that says one thing waits for Kafka.
    static let patience = Duration.seconds(30)

    /// Waits for a broker, and sees that topics are there.
    /// - Throws: as ``metadata(until:)`` and ``require(_:in:)``.
    func requireNow(_ names: [String]) async throws {
        try require(names, in: try await metadata(until: .now + .seconds(10)))
    }

    /// Runs `body` with a producer, and ends it.
    /// - Parameter limit: after which a record that no broker has taken is given up.
    /// - Throws: ``KafkaError`` for a property that is refused, and what `body` throws.
    func withProducer<Value: Sendable>(
        limit: Duration, _ body: (Producer) async throws -> Value
    ) async throws -> Value {
        // librdkafka's own bounds: above linger.ms, and 31 bits.
        let milliseconds = Int(min(max(10, limit.milliseconds), 2_147_483_647))
        let producer = try Producer(
            properties: properties.producer.merging(["message.timeout.ms": "\(milliseconds)"]) { $1 }, events: notices)
        return try await closing({ await producer.close(flushingFor: .zero) }) { try await body(producer) }
    }

    /// Says on standard error when Kafka goes away under a command, and when it is back.
    var notices: ClientEvents {
        ClientEvents(connection: { connection in
            switch connection {
            case .lost: Console.complain("Kafka is away; waiting for it")
            case .restored: Console.complain("Kafka is back")
            }
        })
    }
}

/// Something that a command needs is not there, and what may mend it.
struct Trouble: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    static func kafkaIsAway(_ brokers: String) -> Trouble {
        Trouble(
            "Kafka does not answer at \(brokers); is it running, and the address right (--brokers)? "
                + "`halcyon doctor` looks closer")
    }
}

extension KafkaAccess {
    init(_ configuration: Configuration) {
        self.init(
            properties: configuration.kafka, topics: configuration.topics,
            brokers: configuration.options.brokers.map(\.description).joined(separator: ", "))
    }
}

/// Runs `body` and then `close`, also when `body` throws: what `defer` does where nothing is awaited.
/// - Throws: what `body` throws.
func closing<Value: Sendable>(
    _ close: () async -> Void, after body: () async throws -> Value
) async throws -> Value {
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    await close()
    return try result.get()
}

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
