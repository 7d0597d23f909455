import Formats
import HalcyonCluster
import Kafka
import ProgramSettings

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

/// `halcyon dead list`.
enum DeadListCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object for each letter.")

    static let command = Command(
        "list", summary: "List the dead letters, the oldest first.",
        discussion: """
            Dead letters are messages that are no jobs, jobs that were tried as often as retry.attempts and retry.budget say, and events that no \
            webhook took (webhooks.attempts, webhooks.budget). Each line begins with the letter's name, PARTITION-OFFSET. Those that were replayed are left out.

            \(DeadCommands.filterHelp)
            """, parameters: [DeadCommands.filters, DeadCommands.limit, DeadCommands.replayed, json],
        examples: [
            .init("halcyon dead list --filter since=1d", "What was put aside since yesterday."),
            .init(
                "halcyon dead list --json | jq -r .code | sort | uniq -c", "How many there are of each kind of failure."
            ),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let letters = try await DeadAccess(Configuration(arguments))
        let limit = arguments[DeadCommands.limit] ?? .max
        let query = LetterQuery(arguments[DeadCommands.filters], withReplayed: arguments[DeadCommands.replayed])
        var oldest = Oldest(limit: limit)
        try await letters.forEach(query) { letter in
            let record = letter.letter.record
            let text = arguments[json] ? letter.json(isWhole: false) : Array(letter.line.utf8)
            oldest.add(Oldest.Entry(time: record.timestamp, id: letter.letter.id, text: text))
            return true
        }
        for text in oldest.texts() {
            guard Console.print(json: text) else { break }
        }
        return .done
    }
}

/// What is printed of letters, by age: each partition is in order, and several of them are not.
private struct Oldest {
    struct Entry {
        let time: Int64
        let id: LetterID
        let text: [UInt8]

        var place: (Int64, LetterID) { (time, id) }
    }

    /// Entries that are wanted.
    let limit: Int
    private var entries: [Entry] = []

    init(limit: Int) { self.limit = limit }

    mutating func add(_ entry: Entry) {
        entries.append(entry)
        // Cut now and then, so that of many letters few are held.
        if entries.count / 2 > max(limit, 1000) { cut() }
    }

    private mutating func cut() {
        entries.sort { $0.place < $1.place }
        entries.removeLast(max(0, entries.count - limit))
    }

    /// In order.
    mutating func texts() -> [[UInt8]] {
        cut()
        return entries.map(\.text)
    }
}

/// `halcyon dead show`.
enum DeadShowCommand: Subcommand {
    private static let letters = Parameter<[LetterID]>.arguments(
        "LETTER", .letter, atLeast: 0, help: "Letters as `halcyon dead list` names them, PARTITION-OFFSET.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each letter.")

    static let command = Command(
        "show", summary: "Show dead letters whole: the message as it came, and what happened to it.",
        discussion: """
            Exit code 3 says that there is no such letter.

            \(DeadCommands.filterHelp)
            """, parameters: [letters, DeadCommands.filters, DeadCommands.limit, DeadCommands.replayed, json],
        examples: [
            .init("halcyon dead show 0-1042", "One letter."),
            .init("halcyon dead show --filter job=article-17-hero --json | jq .history", "How the attempts went."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let access = try await DeadAccess(Configuration(arguments))
        let wanted = Set(arguments[letters])
        var missing = wanted
        var count = 0
        let limit = arguments[DeadCommands.limit] ?? .max
        // Who names a letter wants to see it, replayed or not.
        let query = LetterQuery(
            arguments[DeadCommands.filters], withReplayed: arguments[DeadCommands.replayed],
            letters: wanted.isEmpty ? nil : wanted)
        try await access.forEach(query) { letter in
            missing.remove(letter.letter.id)
            count += 1
            let isRead =
                arguments[json] ? Console.print(json: letter.json(isWhole: true)) : Console.print(letter.text)
            return isRead && count < limit && (wanted.isEmpty || !missing.isEmpty)
        }
        for letter in missing.sorted() where count < limit { Console.complain("there is no such letter: \(letter)") }
        return count > 0 && (missing.isEmpty || count >= limit) ? .done : .notFound
    }
}

extension ValueKind<LetterID> {
    static var letter: Self { ValueKind("PARTITION-OFFSET, such as 0-1042") { LetterID($0) } }
}

extension LetterView {
    /// One line for people.
    var line: String {
        let attempts = letter.history.map { counted($0.count, "attempt") }
        let facts = [
            "\(letter.id)", time, Console.red(letter.code), attempts, webhook.map { "webhook \($0)" }, job, source,
            isReplayed ? "replayed" : nil,
        ]
        return facts.compactMap(\.self).joined(separator: "  ")
    }

    /// All there is, for people.
    var text: String {
        var lines = ["\(letter.id)  \(time)  \(Console.red(letter.code)): \(letter.message)"]
        func add(_ name: String, _ value: String?) {
            if let value { lines.append("  \(name.padded(to: 10))\(value)") }
        }
        add("webhook", webhook)
        add("job", job)
        add("source", source)
        add("tenant", tenant)
        add("from", letter.provenance.map { "\($0.coordinates), \(Timestamp(milliseconds: $0.submitted).rfc3339)" })
        add("reason", letter.reason?.rawValue)
        add("replays", letter.replays > 0 ? "\(letter.replays)" : nil)
        add("replayed", isReplayed ? "yes" : nil)
        for header in letter.headers { add("header", "\(header.name): \(Self.text(header.value ?? []))") }
        if let history = letter.history {
            add("attempts", "\(history.count)")
            for attempt in history.attempts {
                lines.append(
                    "    \(Timestamp(milliseconds: attempt.moment).rfc3339)  \(attempt.code.rawValue): \(attempt.message)"
                )
            }
        }
        if let key = letter.record.key { add("key", Self.text(key)) }
        add("message", Self.text(letter.record.value ?? []))
        return lines.joined(separator: "\n")
    }
}
