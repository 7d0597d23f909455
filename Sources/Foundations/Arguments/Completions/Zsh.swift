import Values

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
