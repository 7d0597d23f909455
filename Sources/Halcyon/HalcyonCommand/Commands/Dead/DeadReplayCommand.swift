import HalcyonCluster
import JSON
import ProgramSettings

/// `halcyon dead replay`.
enum DeadReplayCommand: Subcommand {
    private static let dryRun = Parameter.flag("dry-run", help: "Only say which letters would be sent back.")
    private static let yes = Parameter.flag("yes", help: "Do not ask before all letters are sent back.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each letter.")

    static let command = Command(
        "replay", summary: "Send dead letters back to where they came from, all or those of a filter.",
        discussion: """
            Of webhooks the event is sent anew, under its own id. Of jobs, key, message and headers are those that the producer wrote; a header halcyon-replays says how often it was done. It is a \
            new message: its events have other ids, and a deadline in seconds counts anew. A mark in the topic says that the letter \
            was replayed, and it is listed and replayed no more. Whoever stops this command, or runs two of them at once, may have a letter sent \
            twice, and never loses one. Without a filter it asks first; where nobody can be asked, --yes is needed. Exit code 3 says that there was nothing to replay.

            \(DeadCommands.filterHelp)
            """, parameters: [DeadCommands.filters, DeadCommands.limit, dryRun, yes, json],
        examples: [
            .init("halcyon dead replay --filter code=timeout --dry-run", "What would be sent back?"),
            .init(
                "halcyon dead replay --filter 'source=https://img.example.org/*' --filter since=1d",
                "An origin is well again: try what failed since yesterday."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let mustAsk = arguments[DeadCommands.filters].isEmpty && !arguments[dryRun] && !arguments[yes]
        guard !mustAsk || Console.canAsk else {
            throw InputError(
                "without --filter all dead letters are sent back: choose some by --filter, or say --yes", of: arguments)
        }
        let access = try await DeadAccess(Configuration(arguments))
        try await access.kafka.requireNow(access.kafka.topics.lanes)
        let book = try await access.book()
        let limit = arguments[DeadCommands.limit] ?? .max
        if mustAsk, case let count = min(book.count, limit), count > 0,
            !(await Console.confirm("Send \(counted(count, "dead letter")) back to where they came from?"))
        {
            Console.complain("nothing was replayed")
            return .failed
        }
        return try await access.kafka.withProducer(limit: KafkaAccess.patience) { producer in
            let replaying = Replaying(access.topic, by: producer, isDry: arguments[dryRun])
            var (isWell, count) = (true, 0)
            _ = try await replaying.run(
                LetterQuery(arguments[DeadCommands.filters]), in: book, atMost: limit
            ) { letter in
                isWell = isWell && letter.reason == nil
                count += 1
                report(letter, access.kafka.topics, asJSON: arguments[json])
            }
            if count == 0 { Console.complain("there is nothing to replay") }
            return count == 0 ? .notFound : isWell ? .done : .failed
        }
    }

    private static func report(_ replayed: ReplayedLetter, _ topics: Topics, asJSON: Bool) {
        if asJSON { return _ = Console.print(json: replayed.json) }
        let letter = replayed.letter
        let place = letter.lane.map { "to \(topics.jobs($0))" } ?? letter.webhook.map { "to webhook \($0)" }
        let facts = [
            letter.letter.id.description, replayed.reason.map(Console.red) ?? replayed.outcome.word, place, letter.job,
            letter.source,
        ]
        _ = Console.print(facts.compactMap(\.self).joined(separator: "  "))
    }
}
