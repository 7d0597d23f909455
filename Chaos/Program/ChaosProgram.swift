import ChaosHarness
import Formats
import Glibc
import ProgramSettings
import TestSupport

/// `Chaos run`, `Chaos rolling`, `Chaos head`, `Chaos overload`: docs/chaos.md.
@main struct ChaosProgram {
    private static let seed = Parameter.option(
        "seed", .integer(in: 0 ... .max), as: "N", default: 1, help: "Chooses jobs and faults.")
    private static let mode = Parameter.option(
        "mode", .oneOf, as: "MODE", default: Audit.Mode.atLeastOnce, help: "What workers promise of each job's end.")
    private static let workers = Parameter.option(
        "workers", .integer(in: 1...16), as: "N", default: 3, help: "How many workers.")
    private static let rate = Parameter.option(
        "rate", .integer(in: 1...10_000), as: "N", default: 150, help: "Jobs a second.")
    private static let length = Parameter.option(
        "seconds", .integer(in: 1...1_000_000), as: "N", default: 300, help: "For how long jobs are sent at most.")
    private static let jobs = Parameter.option(
        "jobs", .integer(in: 1 ... .max), as: "N", default: .max,
        help: "End when so many jobs are sent and --faults made.")
    private static let faults = Parameter.option(
        "faults", .integer(in: 0 ... .max), as: "N", default: .max, help: "At most so many faults.")
    private static let only = Parameter.repeated(
        "only", kinds, as: "KIND", help: "Only faults of this kind; may be given again.")
    private static let lines = Parameter.option(
        "lines", .integer(in: 1...8), as: "N", default: 2, help: "How many faults may be under way at once.")
    private static let rounds = Parameter.option(
        "rounds", .integer(in: 1...1000), as: "N", default: 3, help: "How often every worker is replaced.")
    private static let turns = Parameter.option(
        "turns", .integer(in: 1...100), as: "N", default: 3, help: "How often with and without are measured.")

    private static let books = Parameter.option(
        "books", .file, as: "FILE", help: "Where the ledger is written to in the end, a line a record, event and fault."
    )
    private static let journal = Parameter.option(
        "journal", .file, as: "FILE", help: "Where every line that workers and the broker log goes.")

    private static let kinds: ValueKind<FaultKind> = .oneOf

    private static let command = Command(
        "Chaos", summary: "Does workers harm and looks whether they keep their promises.",
        discussion: """
            Starts Apache Kafka (KAFKA_HOME), a redis-server, an nginx and workers (HALCYON_EXECUTABLE), sends jobs whose ends are known, \
            and compares what was sent, what was told and what the origin was asked for. Ends with 1 when a promise was broken.
            """,
        parameters: [seed, mode, workers, rate, books, journal],
        commands: [
            Command("run", summary: "Faults of all kinds.", parameters: [length, jobs, faults, only, lines]),
            Command("rolling", summary: "Workers are replaced in order, under load.", parameters: [rounds]),
            Command(
                "head", summary: "The first job of a partition takes for ever; one worker.",
                parameters: [length, turns]),
            Command(
                "overload", summary: "Jobs come many times faster than one worker does them (--rate 600).",
                parameters: [length]),
        ])

    static func main() async {
        do {
            switch try command.parse(Array(CommandLine.arguments.dropFirst())) {
            case .help(let text), .version(let text): print(text)
            case .run(let parsed):
                guard ApacheKafka.isAvailable else { exit(2) }
                exit(try await run(parsed) ? 0 : 1)
            }
        } catch let error as UsageError {
            complain(error)
            exit(2)
        } catch {
            complain(error)
            exit(3)
        }
    }

    private static func run(_ parsed: ParsedCommand) async throws -> Bool {
        var options = ChaosRun.Options()
        (options.seed, options.mode) = (UInt64(parsed[seed]), parsed[mode])
        (options.workers, options.rate) = (parsed[workers], parsed[rate])
        (options.books, options.journal) = (parsed[books], parsed[journal])
        switch parsed.path.last {
        case "rolling": return try await RollingRun.run(options, rounds: parsed[rounds])
        case "head":
            return try await HeadRun.run(options, seconds: parsed[length], turns: parsed[turns])
        case "overload":
            options.duration = .seconds(parsed[length])
            return try await OverloadRun.run(options)
        default:
            options.duration = .seconds(parsed[length])
            (options.jobs, options.faults, options.lines) = (parsed[jobs], parsed[faults], parsed[lines])
            if !parsed[only].isEmpty { options.kinds = parsed[only] }
            return try await ChaosRun.run(options)
        }
    }

    private static func complain(_ error: any Error) {
        let text = Array("Chaos: \(error)\n".utf8)
        _ = write(STDERR_FILENO, text, text.count)
    }
}
