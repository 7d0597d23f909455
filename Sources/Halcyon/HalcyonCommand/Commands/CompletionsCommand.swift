import Arguments

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
