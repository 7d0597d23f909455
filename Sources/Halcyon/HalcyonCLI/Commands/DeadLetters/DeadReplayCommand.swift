import HalcyonCluster
import JSON
import ProgramSettings

/// `halcyon dead replay`: returns dead letters to their topics.
enum DeadReplayCommand: Subcommand {
    private static let dryRun = Parameter.flag("dry-run", help: "Print what would be replayed, without changes.")
    private static let yes = Parameter.flag("yes", help: "Replay all dead letters without confirmation.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each dead letter.")

    static let command = Command(
        "replay", summary: "Return dead letters to their topics, optionally filtered.",
        discussion: """
            A replayed job is a new message with the original key, value and headers, so its events have new ids and \
            a deadline in seconds starts again. The header halcyon-replays counts the replays. A replayed webhook \
            event keeps its id.

            A marker in the topic records each replay, and a replayed dead letter is not listed or replayed again. \
            Interrupting the command, or running it twice at the same time, can replay a dead letter twice but never \
            loses one.

            Without a filter the command asks for confirmation. In scripts, use --yes. Exits with code 3 if there is \
            nothing to replay.

            \(DeadLetterCommands.filterHelp)
            """, parameters: [DeadLetterCommands.filters, DeadLetterCommands.limit, dryRun, yes, json],
        examples: [
            .init("halcyon dead replay --filter code=timeout --dry-run", "Preview the replay of all timeouts."),
            .init(
                "halcyon dead replay --filter 'source=https://img.example.org/*' --filter since=1d",
                "Retry the failures of the last day after an origin has recovered."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let mustAsk = arguments[DeadLetterCommands.filters].isEmpty && !arguments[dryRun] && !arguments[yes]
        guard !mustAsk || Console.canAsk else {
            throw InputError(
                "without --filter all dead letters are replayed; add --filter to select some, or --yes", of: arguments)
        }
        let access = try await DeadLetterAccess(Configuration(arguments))
        try await access.kafka.requireNow(access.kafka.topics.lanes)
        let index = try await access.index()
        let limit = arguments[DeadLetterCommands.limit] ?? .max
        if mustAsk, case let count = min(index.count, limit), count > 0,
            !(await Console.confirm("Replay \(counted(count, "dead letter"))?"))
        {
            Console.complain("nothing was replayed")
            return .failed
        }
        return try await access.kafka.withProducer(limit: KafkaAccess.timeout) { producer in
            let replaying = DeadLetterReplayer(access.topic, by: producer, isDry: arguments[dryRun])
            var (isWell, count) = (true, 0)
            _ = try await replaying.run(
                DeadLetterQuery(arguments[DeadLetterCommands.filters]), in: index, withTimeout: limit
            ) { letter in
                isWell = isWell && letter.reason == nil
                count += 1
                report(letter, access.kafka.topics, asJSON: arguments[json])
            }
            if count == 0 { Console.complain("nothing to replay") }
            return count == 0 ? .notFound : isWell ? .done : .failed
        }
    }

    private static func report(_ replayed: ReplayResult, _ topics: Topics, asJSON: Bool) {
        if asJSON { return _ = Console.print(json: replayed.json) }
        let letter = replayed.letter
        let target = letter.lane.map { "to \(topics.jobs($0))" } ?? letter.webhook.map { "to webhook \($0)" }
        let facts = [
            letter.letter.id.description, replayed.reason.map(Console.red) ?? replayed.outcome.word, target, letter.job,
            letter.source,
        ]
        _ = Console.print(facts.compactMap(\.self).joined(separator: "  "))
    }
}
