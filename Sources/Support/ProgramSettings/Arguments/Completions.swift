import Formats

/// A shell for which a completion script can be generated.
public enum Shell: String, CaseIterable, Sendable {
    /// GNU bash.
    case bash
    /// The Z shell.
    case zsh
    /// The friendly interactive shell.
    case fish
}

extension Command {
    /// Returns a script that completes this program's commands, options and values.
    ///
    /// The script is sourced, or installed where the shell looks for completions:
    /// `/usr/share/bash-completion/completions/NAME`, `_NAME` in zsh's `fpath`, `NAME.fish` in
    /// `~/.config/fish/completions`.
    public func completionScript(for shell: Shell) -> String {
        let positions = CommandPosition.all(of: self)
        return switch shell {
        case .bash: bashScript(name, positions)
        case .zsh: zshScript(name, positions)
        case .fish: fishScript(name, positions)
        }
    }
}

/// A command with everything that may be typed after it.
struct CommandPosition {
    /// The names from the program to the command, separated by spaces.
    let path: String
    let command: Command
    /// The command's options and those of its ancestors.
    let options: [ParameterDeclaration]

    /// The completions of the last argument. Earlier arguments are rarely files or fixed words.
    var argument: Completion { command.arguments.last?.completion ?? .none }

    static func all(of program: Command) -> [CommandPosition] { all(of: program, path: "", inherited: []) }

    private static func all(of command: Command, path: String, inherited: [ParameterDeclaration]) -> [CommandPosition] {
        let path = path.isEmpty ? command.name : "\(path) \(command.name)"
        let options =
            command.options
            + inherited.filter { option in
                option.name != "version" && !command.options.contains { $0.name == option.name }
            }
        let here = CommandPosition(path: path, command: command, options: options)
        return [here] + command.commands.flatMap { all(of: $0, path: path, inherited: options) }
    }
}

extension ParameterDeclaration {
    /// The spellings, such as `--width` and `-w`.
    var spellings: [String] { [label] + (short.map { ["-\($0)"] } ?? []) }
}

/// Quotes a text as one word for sh, bash and zsh.
func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
}

func bashScript(_ program: String, _ positions: [CommandPosition]) -> String {
    let function = "_" + program.map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
    let paths = positions.dropFirst().map { quoted($0.path) }.joined(separator: " | ")
    let options = positions.flatMap { position in
        position.options.filter { $0.shape != .flag }.map { option in
            let patterns = option.spellings.map { quoted("\(position.path) \($0)") }.joined(separator: " | ")
            return "        \(patterns)) \(bashOffer(option.completion)); return ;;"
        }
    }
    let candidates = positions.map { position in
        let words = position.command.commands.map(\.name) + position.options.map(\.label)
        let argument = bashOffer(position.argument, appending: true)
        let rest = position.argument == .none ? "" : "\n            [[ $current == -* ]] || { \(argument); }"
        return """
                    \(quoted(position.path)))
                        \(bashOffer(.words(words)))\(rest) ;;
            """
    }
    return """
        # bash completion for \(program)
        \(function)() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} at=\(quoted(program)) index
            # bash splits --name=value at the equals sign.
            [[ $current == = ]] && current=
            [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD-2]}
            for ((index = 1; index < COMP_CWORD; index++)); do
                case "$at ${COMP_WORDS[index]}" in
                    \(paths.isEmpty ? "''" : paths)) at="$at ${COMP_WORDS[index]}" ;;
                esac
            done
            COMPREPLY=()
            case "$at $previous" in
        \(options.joined(separator: "\n"))
            esac
            case "$at" in
        \(candidates.joined(separator: "\n"))
            esac
        }
        complete -F \(function) \(program)

        """
}

/// Returns a command that fills COMPREPLY, or appends to it.
private func bashOffer(_ completion: Completion, appending: Bool = false) -> String {
    func fill(_ generate: String) -> String {
        "mapfile -t\(appending ? " -O ${#COMPREPLY[@]}" : "") COMPREPLY < <(compgen \(generate) -- \"$current\")"
    }
    // Makes bash append a slash to folders and escape spaces.
    let areFiles = "; compopt -o filenames 2> /dev/null"
    return switch completion {
    case .none: ":"
    case .words(let words): fill("-W \(quoted(words.joined(separator: " ")))")
    case .files: fill("-f") + areFiles
    case .folders: fill("-d") + areFiles
    }
}

func fishScript(_ program: String, _ positions: [CommandPosition]) -> String {
    let function = "__\(program)_at"
    let paths = positions.dropFirst().map { fishQuoted($0.path) }.joined(separator: " ")
    var lines: [String] = []
    for position in positions {
        let start = "complete -c \(program) -n \(fishQuoted("test (\(function)) = '\(position.path)'"))"
        for command in position.command.commands {
            lines.append("\(start) -a \(fishQuoted(command.name)) -d \(fishQuoted(command.summary))")
        }
        for option in position.options {
            let letter = option.short.map { " -s \(fishQuoted(String($0)))" } ?? ""
            // -x: the option requires a value and offers no files by default.
            let value = option.shape == .flag ? "" : " -x" + fishOffer(option.completion)
            lines.append("\(start) -l \(fishQuoted(option.name))\(letter)\(value) -d \(fishQuoted(option.help))")
        }
        if position.argument != .none { lines.append(start + fishOffer(position.argument)) }
    }
    return """
        # fish completion for \(program)
        function \(function)
            set -l at \(fishQuoted(program))
            for word in (commandline -opc)[2..-1]
                switch "$at $word"
                    case \(paths.isEmpty ? "''" : paths)
                        set at "$at $word"
                end
            end
            echo $at
        end
        complete -c \(program) -f
        \(lines.joined(separator: "\n"))

        """
}

private func fishOffer(_ completion: Completion) -> String {
    switch completion {
    case .none: ""
    case .words(let words): " -a " + fishQuoted(words.joined(separator: " "))
    case .files: " -F"
    case .folders: " -a '(__fish_complete_directories)'"
    }
}

/// Quotes a text as one word for fish, whose single quotes have two escapes.
private func fishQuoted(_ text: String) -> String {
    let escaped = text.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined()
    return "'\(escaped)'"
}

func zshScript(_ program: String, _ positions: [CommandPosition]) -> String {
    let function = "_\(program)"
    let paths = positions.dropFirst().map { quoted($0.path) }.joined(separator: "|")
    let options = positions.flatMap { position in
        position.options.filter { $0.shape != .flag }.map { option in
            let patterns = option.spellings.map { quoted("\(position.path) \($0)") }.joined(separator: "|")
            return "        (\(patterns)) \(zshOffer(option.completion)); return ;;"
        }
    }
    let candidates = positions.map { position in
        let commands = position.command.commands.map { described($0.name, $0.summary) }
        let options = position.options.map { described($0.label, $0.help) }
        return """
                    (\(quoted(position.path)))
                        commands=(\(commands.joined(separator: " ")))
                        options=(\(options.joined(separator: " ")))
                        _describe -t commands command commands
                        _describe -o option options
                        \(zshOffer(position.argument)) ;;
            """
    }
    return """
        #compdef \(program)
        \(function)() {
            local at=\(quoted(program)) word previous=${words[CURRENT-1]}
            local -a commands options
            for word in ${words[2,CURRENT-1]}; do
                case "$at $word" in
                    (\(paths.isEmpty ? "''" : paths)) at="$at $word" ;;
                esac
            done
            if [[ ${words[CURRENT]} == --*=* ]]; then
                previous=${words[CURRENT]%%=*}
                compset -P '*='
            fi
            case "$at $previous" in
        \(options.joined(separator: "\n"))
            esac
            case "$at" in
        \(candidates.joined(separator: "\n"))
            esac
        }
        # When sourced, register the function; in fpath, this file is its body.
        if [[ ${funcstack[1]} == \(function) ]]; then
            \(function) "$@"
        else
            compdef \(function) \(program)
        fi

        """
}

private func zshOffer(_ completion: Completion) -> String {
    switch completion {
    case .none: ":"
    case .words(let words): "compadd -- " + words.map(quoted).joined(separator: " ")
    case .files: "_files"
    case .folders: "_files -/"
    }
}

/// Returns `'name:help'` with the colons of the name escaped.
private func described(_ name: String, _ help: String) -> String {
    quoted(name.split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:") + ":" + help)
}
