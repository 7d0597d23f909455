import Values

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
