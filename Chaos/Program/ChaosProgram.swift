import ChaosHarness
import Formats
import Glibc
import ProgramSettings
import TestSupport

/// The commands `Chaos run`, `Chaos rolling`, `Chaos head` and `Chaos overload`: docs/chaos.md.
@main struct ChaosProgram {
    private static let seed = Parameter.option(
        "seed", .integer(in: 0 ... .max), as: "N", default: 1, help: "Seed for jobs and faults.")
    private static let mode = Parameter.option(
        "mode", .oneOf, as: "MODE", default: Audit.Mode.atLeastOnce, help: "Delivery guarantee of the workers.")
    private static let workers = Parameter.option(
        "workers", .integer(in: 1...16), as: "N", default: 3, help: "Number of workers.")
    private static let rate = Parameter.option(
        "rate", .integer(in: 1...10_000), as: "N", default: 150, help: "Jobs per second.")
    private static let length = Parameter.option(
        "seconds", .integer(in: 1...1_000_000), as: "N", default: 300, help: "Maximum time for which jobs are sent.")
    private static let jobs = Parameter.option(
        "jobs", .integer(in: 1 ... .max), as: "N", default: .max,
        help: "End after N jobs and all --faults.")
    private static let faults = Parameter.option(
        "faults", .integer(in: 0 ... .max), as: "N", default: .max, help: "Maximum number of faults.")
    private static let only = Parameter.repeated(
        "only", kinds, as: "KIND", help: "Inject only faults of this kind; may be repeated.")
    private static let store = Parameter.option(
        "store", .oneOf, as: "STORE", default: StoreKind.s3,
        help: """
            Result store of the workers. A folder requires root. Faults that the store does not support are left out.
            """)
    private static let lines = Parameter.option(
        "lines", .integer(in: 1...8), as: "N", default: 2, help: "Maximum number of simultaneous faults.")
    private static let healing = Parameter.option(
        "heal-seconds", .integer(in: 1...3600), as: "N", default: 60,
        help: "Time for which ending a fault is retried, such as a restart of Redis.")
    private static let rounds = Parameter.option(
        "rounds", .integer(in: 1...1000), as: "N", default: 3, help: "Number of rolling restarts.")
    private static let from = Parameter.option(
        "from", .file, as: "FILE",
        help: """
            The halcyon executable of another version. The workers start with it, and each round replaces one version \
            by the other.
            """)
    private static let turns = Parameter.option(
        "turns", .integer(in: 1...100), as: "N", default: 3,
        help: "Number of measurements with and without an endless job.")

    private static let books = Parameter.option(
        "books", .file, as: "FILE", help: "Write the ledger to FILE, one line per record, event or fault.")
    private static let journal = Parameter.option(
        "journal", .file, as: "FILE", help: "Write all log lines of workers and broker to FILE.")

    private static let kinds: ValueKind<FaultKind> = .oneOf

    private static let command = Command(
        "Chaos", summary: "Inject faults and verify the delivery guarantees of workers.",
        discussion: """
            Starts Apache Kafka (KAFKA_HOME), redis-server, nginx, a result store and workers (HALCYON_EXECUTABLE), \
            sends jobs with known outcomes, and compares jobs, events, images and origin requests. Exits with 1 if a guarantee was violated, \
            and with 2 if the guarantees could not be checked.
            """,
        parameters: [seed, mode, workers, rate, books, journal],
        commands: [
            Command(
                "run", summary: "Inject faults of all kinds.",
                parameters: [length, jobs, faults, only, store, lines, healing]),
            Command("rolling", summary: "Replace workers gracefully under load.", parameters: [rounds, from]),
            Command(
                "head", summary: "Measure one worker with an endless job at the head of a partition.",
                parameters: [length, turns]),
            Command(
                "overload", summary: "Send jobs many times faster than one worker processes them (--rate 600).",
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
        } catch {
            complain(error)
            exit(2)
        }
    }

    private static func run(_ parsed: ParsedCommand) async throws -> Bool {
        var options = ChaosRun.Options()
        (options.seed, options.mode) = (UInt64(parsed[seed]), parsed[mode])
        (options.workers, options.rate) = (parsed[workers], parsed[rate])
        (options.books, options.journal) = (parsed[books], parsed[journal])
        switch parsed.path.last {
        case "rolling": return try await RollingRun.run(options, rounds: parsed[rounds], other: parsed[from])
        case "head":
            return try await HeadOfLineBlockingScenario.run(options, seconds: parsed[length], turns: parsed[turns])
        case "overload":
            options.duration = .seconds(parsed[length])
            return try await OverloadRun.run(options)
        default:
            options.duration = .seconds(parsed[length])
            (options.jobs, options.faults, options.lines) = (parsed[jobs], parsed[faults], parsed[lines])
            options.store = parsed[store]
            options.healingTime = .seconds(parsed[healing])
            if !parsed[only].isEmpty { options.kinds = parsed[only] }
            return try await ChaosRun.run(options)
        }
    }

    private static func complain(_ error: any Error) {
        let text = Array("Chaos: \(error)\n".utf8)
        _ = write(STDERR_FILENO, text, text.count)
    }
}
