import Arguments
import HalcyonCluster
import Values

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
