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
