import Formats

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

func bashScript(_ program: String, _ places: [Place]) -> String {
    let function = "_" + program.map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
    let paths = places.dropFirst().map { quoted($0.path) }.joined(separator: " | ")
    let options = places.flatMap { place in
        place.options.filter { $0.shape != .flag }.map { option in
            let patterns = option.spellings.map { quoted("\(place.path) \($0)") }.joined(separator: " | ")
            return "        \(patterns)) \(bashOffer(option.completion)); return ;;"
        }
    }
    let candidates = places.map { place in
        let words = place.command.commands.map(\.name) + place.options.map(\.label)
        let argument = bashOffer(place.argument, appending: true)
        let rest = place.argument == .none ? "" : "\n            [[ $current == -* ]] || { \(argument); }"
        return """
                    \(quoted(place.path)))
                        \(bashOffer(.words(words)))\(rest) ;;
            """
    }
    return """
        # bash completion for \(program)
        \(function)() {
            local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} at=\(quoted(program)) index
            # bash takes --name=value apart at the equals sign.
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

/// A command that fills COMPREPLY, or adds to it.
private func bashOffer(_ completion: Completion, appending: Bool = false) -> String {
    func fill(_ generate: String) -> String {
        "mapfile -t\(appending ? " -O ${#COMPREPLY[@]}" : "") COMPREPLY < <(compgen \(generate) -- \"$current\")"
    }
    // Folders get their slash, and spaces their backslash.
    let areFiles = "; compopt -o filenames 2> /dev/null"
    return switch completion {
    case .none: ":"
    case .words(let words): fill("-W \(quoted(words.joined(separator: " ")))")
    case .files: fill("-f") + areFiles
    case .folders: fill("-d") + areFiles
    }
}

func fishScript(_ program: String, _ places: [Place]) -> String {
    let function = "__\(program)_at"
    let paths = places.dropFirst().map { fishQuoted($0.path) }.joined(separator: " ")
    var lines: [String] = []
    for place in places {
        let start = "complete -c \(program) -n \(fishQuoted("test (\(function)) = '\(place.path)'"))"
        for command in place.command.commands {
            lines.append("\(start) -a \(fishQuoted(command.name)) -d \(fishQuoted(command.summary))")
        }
        for option in place.options {
            let letter = option.short.map { " -s \(fishQuoted(String($0)))" } ?? ""
            // -x: a value must follow, and no file unless it is offered.
            let value = option.shape == .flag ? "" : " -x" + fishOffer(option.completion)
            lines.append("\(start) -l \(fishQuoted(option.name))\(letter)\(value) -d \(fishQuoted(option.help))")
        }
        if place.argument != .none { lines.append(start + fishOffer(place.argument)) }
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

/// A word for fish, whose single quotes know two escapes.
private func fishQuoted(_ text: String) -> String {
    let escaped = text.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined()
    return "'\(escaped)'"
}

func zshScript(_ program: String, _ places: [Place]) -> String {
    let function = "_\(program)"
    let paths = places.dropFirst().map { quoted($0.path) }.joined(separator: "|")
    let options = places.flatMap { place in
        place.options.filter { $0.shape != .flag }.map { option in
            let patterns = option.spellings.map { quoted("\(place.path) \($0)") }.joined(separator: "|")
            return "        (\(patterns)) \(zshOffer(option.completion)); return ;;"
        }
    }
    let candidates = places.map { place in
        let commands = place.command.commands.map { described($0.name, $0.summary) }
        let options = place.options.map { described($0.label, $0.help) }
        return """
                    (\(quoted(place.path)))
                        commands=(\(commands.joined(separator: " ")))
                        options=(\(options.joined(separator: " ")))
                        _describe -t commands command commands
                        _describe -o option options
                        \(zshOffer(place.argument)) ;;
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
        # Sourced, it registers itself; in fpath, it is the function's body.
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

/// `'name:help'`, where a colon in the name would end it.
private func described(_ name: String, _ help: String) -> String {
    quoted(name.split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:") + ":" + help)
}
