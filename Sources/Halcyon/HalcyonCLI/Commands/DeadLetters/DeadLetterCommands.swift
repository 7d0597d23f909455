import Formats
import HalcyonCluster
import JSON
import Kafka
import ProgramSettings

/// `halcyon dead`: the commands for dead letters.
enum DeadLetterCommands {
    static let group = CommandGroup(
        name: "dead", summary: "List, inspect, replay and discard dead letters.",
        members: [DeadListCommand.self, DeadShowCommand.self, DeadReplayCommand.self, DeadDiscardCommand.self])

    // Parameters that the commands share.
    static let filters = Parameter<[DeadLetterFilter]>.repeated(
        "filter", .letterFilter, as: "NAME=VALUE",
        help:
            "Select dead letters by NAME=VALUE. Repeatable: values of one name are alternatives, and all names must "
            + "match. Names: \(DeadLetterFilter.names)."
    )
    static let limit = Parameter<Int?>.option(
        "limit", .integer(in: 1 ... .max), as: "N", help: "Maximum number of dead letters, the oldest first.")
    static let replayed = Parameter.flag(
        "replayed", help: "Include dead letters that were already replayed or discarded.")

    /// The description of the filters for the commands' help.
    static let filterHelp = """
        Filters: code=http_error, reason=attempts (or budget), lane=high (or normal, low), tenant=shop-7, \
        job=article-17 and source=https://example.org/*, where * matches any text. tenant also selects jobs whose \
        preset sets their tenant, and reads the registered presets from Redis. webhook=shop selects the events that \
        could not be delivered to that webhook, and webhook=* those of all webhooks. since=2h and until=30m compare \
        the time at which the message was dead-lettered, as an age or as a date and time such as 2026-12-24T18:00:00Z.
        """
}

extension ValueKind<DeadLetterFilter> {
    static var letterFilter: Self {
        ValueKind("NAME=VALUE with a NAME of \(DeadLetterFilter.names); see the help") {
            DeadLetterFilter($0)
        }
    }
}

/// Access to the dead letters for a command, with a progress bar while they are read.
struct DeadLetterAccess: Sendable {
    let kafka: KafkaAccess
    let topic: DeadLetterReader
    private let bar = ProgressBar()

    /// - Parameter filters: The conditions. One on the tenant needs the presets, which may set it.
    /// - Throws: ``CommandError`` if Kafka is unavailable or the topic is missing, and the errors of
    ///   ``Configuration/readerWithRegisteredPresets()`` if a condition is on the tenant.
    init(_ configuration: Configuration, _ filters: [DeadLetterFilter]) async throws {
        kafka = KafkaAccess(configuration)
        var reader = configuration.jobReader
        if filters.contains(where: { $0.name == .tenant }) {
            reader = try await configuration.readerWithRegisteredPresets()
        }
        let start = ContinuousClock.now
        topic = DeadLetterReader(
            kafka.topics, properties: kafka.properties.reader, reader: reader, events: kafka.notices,
            progress: { [bar] in bar.show(ended: $0, of: $1, failures: 0, elapsed: start.duration(to: .now)) })
        try await kafka.requireNow([kafka.topics.dead])
    }

    /// Calls `body` with each matching dead letter until it returns false.
    func forEach(_ query: DeadLetterQuery, _ body: (DeadLetterSummary) async throws -> Bool) async throws {
        let index = try await index()
        defer { bar.clear() }
        _ = try await topic.forEach(query, in: index) { letter in
            bar.clear()
            return try await body(letter)
        }
    }

    /// Reads the index of the dead letters that have not been replayed.
    func index() async throws -> DeadLetterIndex {
        defer { bar.clear() }
        var index = DeadLetterIndex()
        _ = try await topic.update(&index)
        return index
    }
}

/// `halcyon dead list`: lists dead letters.
enum DeadListCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object for each dead letter.")

    static let command = Command(
        "list", summary: "List dead letters, the oldest first.",
        discussion: """
            Dead letters are messages that are not valid jobs, jobs that have used up their retries (retry.attempts, \
            retry.budget), and events that could not be delivered to a webhook (webhooks.attempts, webhooks.budget). \
            Each line begins with the id of the dead letter, PARTITION-OFFSET. Replayed dead letters are omitted.

            \(DeadLetterCommands.filterHelp)
            """, parameters: [DeadLetterCommands.filters, DeadLetterCommands.limit, DeadLetterCommands.replayed, json],
        examples: [
            .init("halcyon dead list --filter since=1d", "List what was dead-lettered in the last day."),
            .init("halcyon dead list --json | jq -r .code | sort | uniq -c", "Count dead letters by failure code."),
        ])

    static let connection = Connection.cluster

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let filters = arguments[DeadLetterCommands.filters]
        let letters = try await DeadLetterAccess(Configuration(arguments), filters)
        let limit = arguments[DeadLetterCommands.limit] ?? .max
        let query = DeadLetterQuery(filters, withReplayed: arguments[DeadLetterCommands.replayed])
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

/// The oldest dead letters, sorted by age. Records are in order within a partition, but not across partitions.
private struct Oldest {
    struct Entry {
        let time: Int64
        let id: DeadLetterID
        let text: [UInt8]

        var sortKey: (Int64, DeadLetterID) { (time, id) }
    }

    /// The maximum number of entries.
    let limit: Int
    private var entries: [Entry] = []

    init(limit: Int) { self.limit = limit }

    mutating func add(_ entry: Entry) {
        entries.append(entry)
        // Truncate occasionally to bound memory.
        if entries.count / 2 > max(limit, 1000) { cut() }
    }

    private mutating func cut() {
        entries.sort { $0.sortKey < $1.sortKey }
        entries.removeLast(max(0, entries.count - limit))
    }

    /// The texts in order of age.
    mutating func texts() -> [[UInt8]] {
        cut()
        return entries.map(\.text)
    }
}

/// `halcyon dead show`: prints dead letters in full.
enum DeadShowCommand: Subcommand {
    private static let letters = Parameter<[DeadLetterID]>.arguments(
        "ID", .letter, atLeast: 0, help: "Dead letter ids from `halcyon dead list`, PARTITION-OFFSET.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each dead letter.")

    static let command = Command(
        "show", summary: "Show dead letters in full: the original message and its attempts.",
        discussion: """
            Exits with code 3 if a dead letter is not found.

            \(DeadLetterCommands.filterHelp)
            """,
        parameters: [letters, DeadLetterCommands.filters, DeadLetterCommands.limit, DeadLetterCommands.replayed, json],
        examples: [
            .init("halcyon dead show 0-1042", "Show one dead letter."),
            .init(
                "halcyon dead show --filter job=article-17-hero --json | jq .history",
                "Show the failed attempts of a job."),
        ])

    static let connection = Connection.cluster

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let filters = arguments[DeadLetterCommands.filters]
        let access = try await DeadLetterAccess(Configuration(arguments), filters)
        let wanted = Set(arguments[letters])
        var missing = wanted
        var count = 0
        let limit = arguments[DeadLetterCommands.limit] ?? .max
        // A dead letter that is selected by id is shown even if it was replayed.
        let query = DeadLetterQuery(
            filters, withReplayed: arguments[DeadLetterCommands.replayed],
            letters: wanted.isEmpty ? nil : wanted)
        try await access.forEach(query) { letter in
            missing.remove(letter.letter.id)
            count += 1
            let isRead =
                arguments[json] ? Console.print(json: letter.json(isWhole: true)) : Console.print(letter.text)
            return isRead && count < limit && (wanted.isEmpty || !missing.isEmpty)
        }
        for letter in missing.sorted() where count < limit { Console.complain("dead letter not found: \(letter)") }
        return count > 0 && (missing.isEmpty || count >= limit) ? .done : .notFound
    }
}

extension ValueKind<DeadLetterID> {
    static var letter: Self { ValueKind("PARTITION-OFFSET, such as 0-1042") { DeadLetterID($0) } }
}

extension DeadLetterSummary {
    /// A summary on one line.
    var line: String {
        let attempts = letter.history.map { counted($0.count, "attempt") }
        let facts = [
            "\(letter.id)", time, Console.red(letter.code), attempts, webhook.map { "webhook \($0)" }, job, source,
            isReplayed ? "replayed" : nil,
        ]
        return facts.compactMap(\.self).joined(separator: "  ")
    }

    /// The full text.
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
        add("cut", letter.originalBytes.map { "yes, the original message has \($0) bytes" })
        add("reason", letter.reason?.rawValue)
        add("replays", letter.replays > 0 ? "\(letter.replays)" : nil)
        add("replayed", isReplayed ? "yes" : nil)
        for header in letter.headers { add("header", "\(header.name): \(Self.text(header.value ?? []))") }
        if let history = letter.history {
            add("attempts", "\(history.count)")
            for attempt in history.attempts {
                lines.append(
                    "    \(Timestamp(milliseconds: attempt.moment).rfc3339)  "
                        + "\(attempt.code.rawValue): \(attempt.message)")
            }
        }
        if let key = letter.record.key { add("key", Self.text(key)) }
        add("message", Self.text(letter.record.value ?? []))
        return lines.joined(separator: "\n")
    }
}

/// `halcyon dead replay`: returns dead letters to their topics.
enum DeadReplayCommand: Subcommand {
    private static let settlement = DeadLetterSettlement(.replay, verb: "replay", title: "Replay", past: "replayed")

    static let command = Command(
        "replay", summary: "Return dead letters to their topics, optionally filtered.",
        discussion: """
            A replayed job is a new message with the original key, value and headers, so its events have new ids and \
            a deadline in seconds starts again. The header halcyon-replays counts the replays. A replayed webhook \
            event keeps its id. A dead letter that was too large for Kafka has only a part of its message and is not \
            replayed: the command reports where the original is.

            A marker in the topic records each replay, and a replayed dead letter is not listed or replayed again. \
            Interrupting the command, or running it twice at the same time, can replay a dead letter twice but never \
            loses one.

            Without a filter the command asks for confirmation. In scripts, use --yes. Exits with code 3 if there is \
            nothing to replay.

            \(DeadLetterCommands.filterHelp)
            """, parameters: settlement.parameters,
        examples: [
            .init("halcyon dead replay --filter code=timeout --dry-run", "Preview the replay of all timeouts."),
            .init(
                "halcyon dead replay --filter 'source=https://img.example.org/*' --filter since=1d",
                "Retry the failures of the last day after an origin has recovered."),
        ])

    static let connection = Connection.cluster

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode { try await settlement.run(arguments) }
}

/// `halcyon dead discard`: removes dead letters from the list.
enum DeadDiscardCommand: Subcommand {
    private static let settlement = DeadLetterSettlement(.discard, verb: "discard", title: "Discard", past: "discarded")

    static let command = Command(
        "discard", summary: "Remove dead letters from the list without running their jobs again.",
        discussion: """
            A marker in the topic records that a dead letter is discarded. It is no longer listed, counted or \
            replayed. Its message stays in the topic until Kafka deletes it, and `halcyon dead show ID` still prints \
            it.

            Without a filter the command asks for confirmation. In scripts, use --yes. Exits with code 3 if there is \
            nothing to discard.

            \(DeadLetterCommands.filterHelp)
            """, parameters: settlement.parameters,
        examples: [
            .init("halcyon dead discard --filter code=not_found --dry-run", "Preview what would be discarded."),
            .init(
                "halcyon dead discard --filter tenant=shop-7 --filter until=7d",
                "Discard what a tenant has not needed for a week."),
        ])

    static let connection = Connection.cluster

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode { try await settlement.run(arguments) }
}

/// The common part of `halcyon dead replay` and `halcyon dead discard`.
private struct DeadLetterSettlement: Sendable {
    private let action: DeadLetterReplayer.Action
    /// The name of the action, in the present and the past, and at the beginning of a sentence.
    private let (verb, past, title): (String, String, String)
    private let (dryRun, yes, json): (Parameter<Bool>, Parameter<Bool>, Parameter<Bool>)

    init(_ action: DeadLetterReplayer.Action, verb: String, title: String, past: String) {
        (self.action, self.verb, self.past, self.title) = (action, verb, past, title)
        dryRun = .flag("dry-run", help: "Print what would be \(past), without changes.")
        yes = .flag("yes", help: "\(title) all dead letters without confirmation.")
        json = .flag("json", help: "Print one JSON object for each dead letter.")
    }

    var parameters: [any AnyParameter] {
        [DeadLetterCommands.filters, DeadLetterCommands.limit, dryRun, yes, json]
    }

    func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let filters = arguments[DeadLetterCommands.filters]
        let mustAsk = filters.isEmpty && !arguments[dryRun] && !arguments[yes]
        guard !mustAsk || Console.canAsk else {
            throw InputError(
                "without --filter all dead letters are \(past); add --filter to select some, or --yes", of: arguments)
        }
        let access = try await DeadLetterAccess(Configuration(arguments), filters)
        if case .replay = action { try await access.kafka.requireNow(access.kafka.topics.lanes) }
        let index = try await access.index()
        let limit = arguments[DeadLetterCommands.limit] ?? .max
        if mustAsk, case let count = min(index.count, limit), count > 0,
            !(await Console.confirm("\(title) \(counted(count, "dead letter"))?"))
        {
            Console.complain("nothing was \(past)")
            return .failed
        }
        return try await access.kafka.withProducer(limit: KafkaAccess.timeout) { producer in
            let replaying = DeadLetterReplayer(access.topic, by: producer, action: action, isDry: arguments[dryRun])
            var (isWell, count) = (true, 0)
            _ = try await replaying.run(
                DeadLetterQuery(filters), in: index, limit: limit
            ) { letter in
                isWell = isWell && letter.reason == nil
                count += 1
                report(letter, access.kafka.topics, asJSON: arguments[json])
            }
            if count == 0 { Console.complain("nothing to \(verb)") }
            return count == 0 ? .notFound : isWell ? .done : .failed
        }
    }

    private func report(_ replayed: ReplayResult, _ topics: Topics, asJSON: Bool) {
        if asJSON { return _ = Console.print(json: replayed.json) }
        let letter = replayed.letter
        var target: String?
        if case .replay = action {
            target = letter.lane.map { "to \(topics.jobs($0))" } ?? letter.webhook.map { "to webhook \($0)" }
        }
        let facts = [
            letter.letter.id.description, replayed.reason.map(Console.red) ?? replayed.outcome.word, target, letter.job,
            letter.source,
        ]
        _ = Console.print(facts.compactMap(\.self).joined(separator: "  "))
    }
}
