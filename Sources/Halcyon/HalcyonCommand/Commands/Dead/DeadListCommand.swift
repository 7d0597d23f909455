import Arguments
import HalcyonCluster

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
        var left = arguments[DeadCommands.limit] ?? .max
        let query = LetterQuery(arguments[DeadCommands.filters], withReplayed: arguments[DeadCommands.replayed])
        try await letters.forEach(query) { letter in
            left -= 1
            let isRead =
                arguments[json] ? Console.print(json: letter.json(isWhole: false)) : Console.print(letter.line)
            return isRead && left > 0
        }
        return .done
    }
}
