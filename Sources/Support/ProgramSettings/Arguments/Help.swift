import Glibc

/// Returns the help of the last of `commands`, which is the path from the program.
/// - Parameter isComplete: False to leave out the options that the command's short help does not show.
func helpText(for commands: [Command], columns: Int, isComplete: Bool) -> String {
    let command = commands[commands.count - 1]
    let inherited = commands.dropLast().flatMap(\.options).filter { option in
        !["help", "help-all", "version"].contains(option.name) && !command.options.contains { $0.name == option.name }
    }
    let columns = max(columns, 40)
    var sections = [
        wrapped(command.summary, columns: columns),
        "Usage: " + usage(of: command, path: commands.map(\.name)),
    ]
    if !command.discussion.isEmpty { sections.append(wrapped(command.discussion, columns: columns)) }
    let options = command.titledOptions(isComplete: isComplete) + [("Options of all commands", inherited)]
    let tables: [(title: String, rows: [(String, String)])] =
        [
            ("Commands", command.commands.map { ($0.name, $0.summary) }),
            ("Arguments", command.arguments.map { (shown($0), explanation(of: $0)) }),
        ]
        + options.map { title, options in (title, options.map { (spelling(of: $0), explanation(of: $0)) }) }
    for (title, rows) in tables where !rows.isEmpty {
        sections.append("\(title):\n" + table(rows, columns: columns))
    }
    if !command.examples.isEmpty {
        let examples = command.examples.map { example in
            "  \(example.line)\n" + wrapped(example.explanation, columns: columns, indent: 6)
        }
        sections.append("Examples:\n" + examples.joined(separator: "\n"))
    }
    return sections.joined(separator: "\n\n") + "\n"
}

private func usage(of command: Command, path: [String]) -> String {
    let tail = command.commands.isEmpty ? command.arguments.map(shown) : ["COMMAND"]
    return (path + ["[options]"] + tail).joined(separator: " ")
}

/// Returns `SOURCE`, `[SOURCE]`, `SOURCE...` or `[SOURCE...]`.
private func shown(_ argument: ParameterDeclaration) -> String {
    guard case .argument(let least, let most) = argument.shape else { return argument.name }
    let name = most > 1 ? argument.name + "..." : argument.name
    return least == 0 ? "[\(name)]" : name
}

/// Returns `-w, --width POINTS`, with blanks in place of a missing short option.
private func spelling(of option: ParameterDeclaration) -> String {
    let letter = option.short.map { "-\($0), " } ?? "    "
    return letter + option.label + (option.shape == .flag ? "" : " \(option.valueName)")
}

/// Returns the help, with the allowed words if they are fixed.
func explanation(of parameter: ParameterDeclaration) -> String {
    guard case .words(let words) = parameter.completion else { return parameter.help }
    return "\(parameter.help) One of \(words.joined(separator: ", "))."
}

private func table(_ rows: [(left: String, right: String)], columns: Int) -> String {
    // A very long left column gets a separate line so that it does not push the others to the right.
    let widest = rows.map(\.left.count).filter { $0 <= 28 }.max() ?? 0
    let indent = widest + 4
    return rows.map { left, right in
        let text = wrapped(right, columns: columns, indent: indent)
        if left.count > widest { return "  \(left)\n\(text)" }
        return "  " + left + text.dropFirst(2 + left.count)
    }.joined(separator: "\n")
}

/// Wraps a text at word boundaries and preserves empty lines. A word longer than a line exceeds the width.
func wrapped(_ text: String, columns: Int, indent: Int = 0) -> String {
    let margin = String(repeating: " ", count: indent)
    let paragraphs = text.split(separator: "\n", omittingEmptySubsequences: false).map { paragraph in
        var lines: [String] = []
        var line = ""
        for word in paragraph.split(separator: " ") {
            if !line.isEmpty && indent + line.count + 1 + word.count > columns {
                lines.append(margin + line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        if !line.isEmpty { lines.append(margin + line) }
        return lines.joined(separator: "\n")
    }
    return paragraphs.joined(separator: "\n")
}

/// The number of columns of the terminal behind a descriptor; nil if there is no terminal or its size is unknown.
public func terminalColumns(of descriptor: Int32) -> Int? { terminalSize(of: descriptor)?.columns }

/// The size of the terminal behind a descriptor; nil if there is no terminal or its size is unknown. The number of rows
/// is nil if only that is unknown.
public func terminalSize(of descriptor: Int32) -> (columns: Int, rows: Int?)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : nil)
}
