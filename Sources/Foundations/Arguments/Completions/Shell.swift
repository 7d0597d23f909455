import Values

/// Shells that completion scripts can be made for.
public enum Shell: String, CaseIterable, Sendable {
    /// GNU bash.
    case bash
    /// The Z shell.
    case zsh
    /// The friendly interactive shell.
    case fish
}

extension Command {
    /// A script that teaches the shell this program's commands, options and values.
    ///
    /// It is sourced, or stands where the shell looks for completions: `/usr/share/bash-completion/completions/NAME`,
    /// `_NAME` in zsh's `fpath`, `NAME.fish` in `~/.config/fish/completions`.
    public func completionScript(for shell: Shell) -> String {
        let places = Place.all(of: self)
        return switch shell {
        case .bash: bashScript(name, places)
        case .zsh: zshScript(name, places)
        case .fish: fishScript(name, places)
        }
    }
}

/// A command with all that may be typed there.
struct Place {
    /// The names from the program to it, with spaces between.
    let path: String
    let command: Command
    /// Its own options and those of the commands above it.
    let options: [ParameterDeclaration]

    /// What the last argument offers; arguments before it are rarely files or words.
    var argument: Completion { command.arguments.last?.completion ?? .none }

    static func all(of program: Command) -> [Place] { all(of: program, path: "", inherited: []) }

    private static func all(of command: Command, path: String, inherited: [ParameterDeclaration]) -> [Place] {
        let path = path.isEmpty ? command.name : "\(path) \(command.name)"
        let options =
            command.options
            + inherited.filter { option in
                option.name != "version" && !command.options.contains { $0.name == option.name }
            }
        let here = Place(path: path, command: command, options: options)
        return [here] + command.commands.flatMap { all(of: $0, path: path, inherited: options) }
    }
}

extension ParameterDeclaration {
    /// `--width` and `-w`.
    var spellings: [String] { [label] + (short.map { ["-\($0)"] } ?? []) }
}

/// A word for sh, bash and zsh that stands for exactly this text.
func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
}
