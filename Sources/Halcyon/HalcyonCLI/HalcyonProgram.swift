import Concurrency
import Glibc
import HalcyonImaging
import HalcyonSources
import Kafka
import ProgramSettings
import Subprocess

/// The `halcyon` program. It parses its arguments, runs one command and exits with that command's code.
public enum HalcyonProgram {
    /// Runs the program and never returns. Call it first in the process, on the main thread, because the process may be
    /// a render process that another process started.
    ///
    /// All workers of a cluster should register the same extensions and providers.
    /// - Parameters:
    ///   - extensions: additional processors and sizers that jobs on this machine can use.
    ///   - providers: additional source providers that jobs on this machine can use.
    public static func main(
        extensions: Extensions = Extensions(), providers: CustomProviders = CustomProviders()
    ) -> Never {
        // The internal entry point of render processes. It is not part of the help.
        if CommandLine.arguments.dropFirst().elementsEqual(RenderProcessOptions().arguments) {
            exit(RenderProcessProgram.run(extensions))
        }
        Self.extensions.withLock { $0 = extensions }
        Self.providers.withLock { $0 = providers }
        // Before any thread starts, so that all threads inherit the mask and one thread can wait for the signals.
        Signals.block(StopRequest.signals)
        Task.detached { exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue) }
        while true { pause() }
    }

    /// Extensions and providers that the host program registered.
    static let extensions = Lock(Extensions())
    static let providers = Lock(CustomProviders())

    /// Runs the program and reports its errors, including the loss of output.
    private static func run(_ arguments: [String]) async -> ExitCode {
        do {
            let code = try await perform(arguments)
            guard let error = Console.outputError else { return code }
            Console.complain("\(error)")
            return code == .done ? .failed : code
        } catch is CancellationError {
            return .interrupted
        } catch {
            Console.complain("\(error)")
            return ExitCode(of: error)
        }
    }

    private static func perform(_ arguments: [String]) async throws -> ExitCode {
        switch try Program.command.parse(arguments, columns: terminalColumns(of: STDOUT_FILENO) ?? 80) {
        case .help(let text), .version(let text):
            Console.print(text)
            return .done
        case .run(let arguments):
            return try await run(Program.subcommand(at: arguments.path), arguments)
        }
    }

    /// Runs a command. A signal cancels its task unless the command handles signals itself.
    private static func run(_ command: any Subcommand.Type, _ arguments: ParsedCommand) async throws -> ExitCode {
        if command.handlesSignals { return try await command.run(arguments) }
        let work = Task { try await command.run(arguments) }
        StopRequest.listen {
            work.cancel()
            Task {
                // Some calls into C libraries cannot be interrupted. A second signal ends the program at once.
                try await Task.sleep(for: .seconds(10))
                _exit(ExitCode.interrupted.rawValue)
            }
        }
        return try await work.value
    }
}

/// The exit code of the process.
enum ExitCode: Int32 {
    /// Success.
    case done = 0
    /// Complete or partial failure.
    case failed = 1
    /// Invalid command line, configuration or input.
    case usage = 2
    /// The requested item was not found.
    case notFound = 3
    /// A stuck worker exited on its own. sysexits.h defines this code as an internal software error.
    case stuck = 70
    /// A signal interrupted the command. Shells report this code for SIGINT.
    case interrupted = 130

    /// The exit codes with their meanings, for the help and the manual.
    static let meanings: [(codes: String, meaning: String)] = [
        ("\(done.rawValue)", "success"), ("\(failed.rawValue)", "failure"),
        ("\(usage.rawValue)", "invalid command line, configuration or input"),
        ("\(notFound.rawValue)", "not found"), ("\(stuck.rawValue)", "stuck worker"),
        ("\(interrupted.rawValue) or 143", "interrupted by SIGINT or SIGTERM"),
    ]

    /// Maps an error to the exit code that names its cause.
    init(of error: any Error) {
        switch error {
        case let error as CommandError: self = error.exitCode
        // The setting is right, and the other program may end.
        case let error as ConfigurationError where error.isAddressInUse: self = .failed
        case is UsageError, is InputError, is SettingsError, is ConfigurationError: self = .usage
        // A property that librdkafka rejects comes from the configuration.
        case let error as KafkaError where error.code == .invalidArgument: self = .usage
        default: self = .failed
        }
    }
}

/// `halcyon completions`: prints a completion script for a shell.
enum CompletionsCommand: Subcommand {
    private static let shell = Parameter<Shell>.argument("SHELL", .oneOf, help: "The shell to print a script for.")

    static let command = Command(
        "completions", summary: "Print a shell script that completes commands and options.",
        parameters: [shell],
        examples: [
            .init(
                "source <(halcyon completions bash)",
                "Enable completion in this bash session. Add the line to ~/.bashrc for all sessions."),
            .init("halcyon completions zsh > ~/.zfunc/_halcyon", "Install for zsh. ~/.zfunc must be in fpath."),
            .init("halcyon completions fish > ~/.config/fish/completions/halcyon.fish", "Install for fish."),
        ])

    static let connection = Connection.none

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        Console.print(Program.command.completionScript(for: arguments[shell]))
        return .done
    }
}
