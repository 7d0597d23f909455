import Glibc
import HalcyonImaging
import HalcyonSources
import Kafka
import Processes
import ProgramSettings
import Threads

/// The program `halcyon`: reads its arguments, runs one command, and ends with that command's code.
public enum HalcyonCommand {
    /// Runs the program and never returns. To be called first of all in a process, on its first thread: this process may
    /// be a child that another started to render in.
    ///
    /// Every worker of a cluster should have the same extensions and providers.
    /// - Parameters:
    ///   - extensions: processors and sizers that jobs may name beside Halcyon's own, on this machine.
    ///   - providers: providers of sources, likewise.
    public static func main(
        extensions: Extensions = Extensions(), providers: CustomProviders = CustomProviders()
    ) -> Never {
        // No command for people, and so in no help: what other commands start to render in.
        if CommandLine.arguments.dropFirst().elementsEqual(RenderChildOptions().arguments) {
            exit(RenderChildProgram.run(extensions))
        }
        Self.extensions.withLock { $0 = extensions }
        Self.providers.withLock { $0 = providers }
        // Before any thread is there: all of them are to leave these signals to one that waits for them.
        Signals.block(StopRequest.signals)
        Task.detached { exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue) }
        while true { pause() }
    }

    /// What the host program registered.
    static let extensions = Lock(Extensions())
    static let providers = Lock(CustomProviders())

    private static func run(_ arguments: [String]) async -> ExitCode {
        do {
            switch try Program.command.parse(arguments, columns: terminalColumns(of: STDOUT_FILENO) ?? 80) {
            case .help(let text), .version(let text):
                Console.print(text)
                return .done
            case .run(let arguments):
                return try await run(Program.subcommand(at: arguments.path), arguments)
            }
        } catch is CancellationError {
            return .interrupted
        } catch {
            Console.complain("\(error)")
            return ExitCode(of: error)
        }
    }

    /// Runs a command, which a signal cancels unless it listens to signals itself.
    private static func run(_ command: any Subcommand.Type, _ arguments: ParsedCommand) async throws -> ExitCode {
        if command.handlesSignals { return try await command.run(arguments) }
        let work = Task { try await command.run(arguments) }
        StopRequest.listen {
            work.cancel()
            Task {
                // Some calls of the C libraries cannot be cut short.
                try await Task.sleep(for: .seconds(3))
                _exit(ExitCode.interrupted.rawValue)
            }
        }
        return try await work.value
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
    /// A worker did not get on, and ended itself; sysexits.h calls it an internal software error.
    case stuck = 70
    /// A signal ended it before it was done; what shells say of SIGINT.
    case interrupted = 130

    /// Whose fault an error is.
    init(of error: any Error) {
        switch error {
        case is UsageError, is InputError, is SettingsError, is ConfigurationError: self = .usage
        // A property that librdkafka refuses comes from the configuration.
        case let error as KafkaError where error.code == .invalidArgument: self = .usage
        default: self = .failed
        }
    }
}

/// `halcyon completions`: what a shell needs to complete command lines.
enum CompletionsCommand: Subcommand {
    private static let shell = Parameter<Shell>.argument("SHELL", .oneOf, help: "Whose script.")

    static let command = Command(
        "completions", summary: "Print a script that teaches a shell the commands and options.",
        parameters: [shell],
        examples: [
            .init("source <(halcyon completions bash)", "For this bash; put the line into ~/.bashrc for all."),
            .init("halcyon completions zsh > ~/.zfunc/_halcyon", "With ~/.zfunc in fpath."),
            .init("halcyon completions fish > ~/.config/fish/completions/halcyon.fish", "For fish."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        Console.print(Program.command.completionScript(for: arguments[shell]))
        return .done
    }
}
