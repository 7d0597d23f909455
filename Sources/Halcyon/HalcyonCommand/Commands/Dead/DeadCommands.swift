import Arguments
import HalcyonCluster
import Kafka
import Values

/// `halcyon dead`.
enum DeadCommands {
    static let group = CommandGroup(
        name: "dead", summary: "Work the dead letters: list them, look at them, send them back.",
        members: [DeadListCommand.self, DeadShowCommand.self, DeadReplayCommand.self])

    // What the commands have in common.
    static let filters = Parameter<[LetterFilter]>.repeated(
        "filter", .letterFilter, as: "NAME=VALUE",
        help:
            "Letters alone that have it; may be given again. Of one name any value will do, and each name must hold. Names: \(LetterFilter.names)."
    )
    static let limit = Parameter<Int?>.option(
        "limit", .integer(in: 1 ... .max), as: "N", help: "So many letters at most, the oldest first.")
    static let replayed = Parameter.flag("replayed", help: "Those too that were replayed already.")

    /// For the discussions of the commands.
    static let filterHelp = """
        Filters: code=http_error, reason=attempts (or budget), lane=high (or normal, low), tenant=shop-7, job=article-17 and \
        source=https://example.org/*, in which * stands for anything; webhook=shop, or webhook=* for all events that no webhook took; since=2h, until=30m (so long ago, or a date and time such as \
        2026-12-24T18:00:00Z) by when the message was put aside.
        """
}

extension ValueKind<LetterFilter> {
    static var letterFilter: Self {
        ValueKind("NAME=VALUE, NAME one of \(LetterFilter.names), as the help describes them") { LetterFilter($0) }
    }
}

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

    /// The dead letters that are open now.
    func book() async throws -> DeadBook {
        defer { bar.clear() }
        var book = DeadBook()
        _ = try await topic.update(&book)
        return book
    }
}
