import Arguments
import Glibc
import Processes

/// The program: reads its arguments, runs one command, and ends with that command's code.
@main
struct Halcyon {
    static func main() {
        // Before any thread is there: all of them are to leave these signals to one that waits for them.
        Signals.block([SIGINT, SIGTERM])
        Task.detached { exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue) }
        while true { pause() }
    }

    private static func run(_ arguments: [String]) async -> ExitCode {
        do {
            switch try Program.command.parse(arguments, columns: terminalColumns(of: STDOUT_FILENO) ?? 80) {
            case .help(let text), .version(let text):
                Console.print(text)
                return .done
            case .run(let arguments):
                return try await Program.subcommand(at: arguments.path).run(arguments)
            }
        } catch let error as UsageError {
            Console.complain("\(error)")
            return .usage
        } catch {
            Console.complain("\(error)")
            return .failed
        }
    }
}

/// How the process ends.
enum ExitCode: Int32 {
    /// All is well.
    case done = 0
    /// It could not be done, or only in part.
    case failed = 1
    /// The command line, the configuration or the input makes no sense.
    case usage = 2
    /// What was asked for is not there.
    case notFound = 3
}
