import ProgramSettings

/// A program that uses every kind of parameter.
enum Example {
    enum Format: String, CaseIterable, Sendable {
        case jpeg, png
    }

    static let verbose = Parameter.flag("verbose", short: "v", help: "Say more.")
    static let config = Parameter.option("config", short: "c", .file, as: "FILE", help: "Read settings from this file.")
    static let json = Parameter.flag("json", short: "j", help: "Print JSON.")
    static let width = Parameter.option("width", short: "w", .number, as: "POINTS", help: "The display width.")
    static let scale = Parameter.option("scale", .integer(in: 1...4), as: "N", default: 1, help: "The screen's scale.")
    static let format = Parameter.option(
        "format", short: "f", .oneOf, as: "FORMAT", default: Format.jpeg, help: "The format.")
    static let tags = Parameter.repeated("tag", short: "t", .text, as: "TAG", help: "A tag; may be given often.")
    static let folder = Parameter.option("output", short: "o", .folder, as: "DIR", help: "Where results go.")
    static let sources = Parameter.arguments("SOURCE", .file, help: "What to load.")
    static let id = Parameter.argument("ID", .integer(in: 1 ... .max), help: "The record's number.")
    static let note = Parameter.optionalArgument("NOTE", .text, help: "Why.")
    static let names = Parameter.arguments("NAME", .text, atLeast: 0, help: "Which.")

    static let submit = Command(
        "submit", summary: "Submits jobs and can wait for them.",
        discussion: """
            Each source becomes one job. Jobs are independent of each other.

            With '-' a job is read from standard input.
            """,
        parameters: [json, width, scale, format, tags, folder, sources],
        examples: [.init("prog submit --width 400 cat.jpg", "Makes a picture of 400 points width.")])
    static let dead = Command(
        "dead", summary: "Works the dead letters.",
        commands: [
            Command("list", summary: "Lists them.", parameters: [names]),
            Command("show", summary: "Shows one.", parameters: [id, note]),
        ])
    static let program = Command(
        "prog", summary: "Does things.", version: "prog 1.2.3", parameters: [verbose, config], commands: [submit, dead])

    static func run(_ words: String...) throws -> ParsedCommand {
        guard case .run(let parsed) = try program.parse(words) else { throw NotACommand() }
        return parsed
    }

    static func errorMessage(_ words: [String]) -> String {
        do {
            _ = try program.parse(words)
            return ""
        } catch { return "\(error)" }
    }

    struct NotACommand: Error {}
}
