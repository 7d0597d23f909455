import HalcyonCluster
import Kafka
import ProgramSettings

/// Access to Kafka for an interactive command.
struct KafkaAccess: Sendable {
    let properties: KafkaProperties
    let topics: Topics
    /// The broker addresses, for messages.
    let brokers: String

    /// Waits until a broker responds, and reports on standard error if none responds at once.
    /// - Parameter deadline: the end of the wait. If nil, the method waits indefinitely.
    /// - Throws: ``CommandError`` after the deadline, ``KafkaError`` for a rejected property, `CancellationError`.
    func metadata(until deadline: ContinuousClock.Instant?) async throws -> ClusterMetadata {
        try await withAdmin { try await metadata(by: $0, until: deadline) }
    }

    /// Runs `body` with an admin client and closes the client afterwards.
    /// - Throws: ``KafkaError`` for a rejected property, and the errors of `body`.
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
                let reason = admin.connectionFailure
                if let deadline, .now >= deadline { throw CommandError.kafkaIsAway(brokers, reason) }
                if !hasSaidSo {
                    let details = reason.map { " (\($0))" } ?? ""
                    Console.complain("Kafka does not answer at \(brokers)\(details); waiting for it")
                }
                hasSaidSo = true
            }
        }
    }

    /// - Throws: ``CommandError`` that names the first missing topic.
    func require(_ names: some Sequence<String>, in metadata: ClusterMetadata) throws(CommandError) {
        for name in names where metadata.topics[name] == nil {
            throw CommandError("there is no topic \(name) on \(brokers); run `halcyon topics create`")
        }
    }

    /// The time that a command which sends few records waits for Kafka.
    static let timeout = Duration.seconds(30)

    /// Waits up to ten seconds for a broker and checks that the topics exist.
    /// - Throws: the errors of ``metadata(until:)`` and ``require(_:in:)``.
    func requireNow(_ names: [String]) async throws {
        try require(names, in: try await metadata(until: .now + .seconds(10)))
    }

    /// Runs `body` with a producer and closes the producer afterwards.
    /// - Parameter limit: the delivery timeout of a record.
    /// - Throws: ``KafkaError`` for a rejected property, and the errors of `body`.
    func withProducer<Value: Sendable>(
        limit: Duration, _ body: (Producer) async throws -> Value
    ) async throws -> Value {
        // The bounds of librdkafka: more than linger.ms, and 31 bits.
        let milliseconds = Int(min(max(10, limit.milliseconds), 2_147_483_647))
        let producer = try Producer(
            properties: properties.producer.merging(["message.timeout.ms": "\(milliseconds)"]) { $1 }, events: notices)
        return try await closing({ await producer.close(flushingFor: .zero) }) { try await body(producer) }
    }

    /// Callbacks that report on standard error when the connection to Kafka is lost and when it is restored.
    var notices: ClientCallbacks {
        ClientCallbacks(connection: { connection in
            switch connection {
            case .lost: Console.complain("lost the connection to Kafka; reconnecting")
            case .restored: Console.complain("connection to Kafka restored")
            }
        })
    }
}

/// A missing dependency or item of a command, with a hint on how to fix it.
struct CommandError: Error, CustomStringConvertible {
    let description: String
    let exitCode: ExitCode

    init(_ description: String, exitCode: ExitCode = .failed) {
        self.description = description
        self.exitCode = exitCode
    }

    /// - Parameter reason: the reason for which the latest connection failed, if any did.
    static func kafkaIsAway(_ brokers: String, _ reason: String?) -> CommandError {
        let advice =
            reason.map(isAboutSecurity) == true
            ? "check kafka.properties (security.protocol, ssl.…, sasl.…)."
            : "is it running, and is the address right (--brokers)?"
        let details = reason.map { " (\($0))" } ?? ""
        return CommandError(
            "Kafka does not answer at \(brokers)\(details); \(advice) Run `halcyon doctor` for details")
    }

    /// True if the connection failed because of credentials, certificates or the security protocol.
    static func isAboutSecurity(_ reason: String) -> Bool {
        ["SASL", "SSL", "security.protocol"].contains { reason.contains($0) }
    }
}

extension KafkaAccess {
    init(_ configuration: Configuration) {
        self.init(
            properties: configuration.kafka, topics: configuration.topics,
            brokers: configuration.options.brokers.map(\.description).joined(separator: ", "))
    }
}

/// Runs `body` and then `close`, even if `body` throws. It is an asynchronous `defer`.
/// - Throws: the errors of `body`.
func closing<Value: Sendable>(
    _ close: () async -> Void, after body: () async throws -> Value
) async throws -> Value {
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    await close()
    return try result.get()
}

/// The topics that a cluster needs, with their settings.
struct TopicPlan {
    /// The default number of partitions. Twelve can be shared evenly by 1, 2, 3, 4, 6 or 12 workers. Each worker
    /// processes many jobs of one partition concurrently.
    static let standardPartitions = 12

    /// The topics of the lanes, retries, events, webhook retries, dead letters and control messages.
    let topics: [NewTopic]

    /// - Parameters:
    ///   - partitions: the partitions of each lane, each retry topic, the event topic and each webhook retry topic.
    ///   - replication: the replication factor of all topics.
    ///   - folderRetention: the seconds that a worker's disk cache can hold a source. Control messages are retained for
    ///     longer, so that every worker receives purges of the sources on its disk.
    init(topics: Topics, partitions: Int, replication: Int, folderRetention: Double) {
        func topic(_ name: String, partitions: Int, days: Int) -> NewTopic {
            NewTopic(
                name, partitions: partitions, replication: replication,
                configuration: [
                    "cleanup.policy": "delete", "retention.ms": "\(days * 86_400_000)",
                    // With three replicas, one broker may be unavailable.
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
                topic(topics.batches, partitions: 1, days: 14),
            ]
    }

    /// The retention of control messages: one day longer than that of disk caches, and at least a week.
    private static func controlDays(_ folderRetention: Double) -> Int {
        max(7, Int((min(folderRetention, 3_155_760_000) / 86_400).rounded(.up)) + 1)
    }
}
