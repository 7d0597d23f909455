import Arguments
import HalcyonCluster

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
