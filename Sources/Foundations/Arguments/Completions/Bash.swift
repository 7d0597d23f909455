import Values

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
