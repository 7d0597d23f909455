import HalcyonCluster
import Kafka

/// The dead letters for a command, with a bar while they are read.
struct DeadAccess: Sendable {
    let kafka: KafkaAccess
    let topic: DeadTopic
    private let bar = ProgressBar()

    /// - Throws: ``Trouble`` when Kafka is away or has no such topic.
    init(_ configuration: Configuration) async throws {
        kafka = KafkaAccess(configuration)
        let start = ContinuousClock.now
        topic = DeadTopic(
            kafka.topics, properties: kafka.properties.reader, reader: configuration.jobReader, events: kafka.notices,
            progress: { [bar] in bar.show(ended: $0, of: $1, failures: 0, elapsed: start.duration(to: .now)) })
        try await kafka.requireNow([kafka.topics.dead])
    }

    /// Calls `body` with each letter that is wanted, until it says that it is enough.
    func forEach(_ query: LetterQuery, _ body: (LetterView) async throws -> Bool) async throws {
        let book = try await book()
        defer { bar.clear() }
        _ = try await topic.forEach(query, in: book) { letter in
            bar.clear()
            return try await body(letter)
        }
    }

    /// Which letters are open now.
    func book() async throws -> DeadBook {
        defer { bar.clear() }
        var book = DeadBook()
        _ = try await topic.update(&book)
        return book
    }
}
