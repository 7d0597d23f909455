import Formats

/// A parser of one command line, from left to right.
struct Parser {
    private let columns: Int
    /// The path from the program to the current command.
    private var commands: [Command]
    private var words: [String] = []
    private var values: [String: [any Sendable]] = [:]
    private var rest: ArraySlice<String> = []

    private var command: Command { commands[commands.count - 1] }

    init(program: Command, columns: Int) {
        commands = [program]
        self.columns = columns
    }

    mutating func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
        rest = arguments[...]
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                rest = []
            } else if word.hasPrefix("--") {
                try readLong(word.dropFirst(2))
            } else if isShort(word) {
                try readShort(word.dropFirst())
            } else {
                try read(word)
            }
            let isComplete = values[Command.helpAll.label] != nil
            if isComplete || values[Command.help.label] != nil {
                return .help(helpText(for: commands, columns: columns, isComplete: isComplete))
            }
            if values[Command.version.label] != nil, let version = commands.lazy.compactMap(\.version).first {
                return .version(version)
            }
        }
        guard command.commands.isEmpty else { throw error("a command is missing") }
        try assign()
        return .run(ParsedCommand(path: commands.map(\.name), values: values))
    }

    // MARK: Options

    /// Returns an option of this command or of its nearest ancestor that has it.
    private func option(where isMeant: (ParameterDeclaration) -> Bool) -> ParameterDeclaration? {
        for command in commands.reversed() {
            if let option = command.options.first(where: isMeant) { return option }
        }
        return nil
    }

    /// True if a word begins with one dash and a short option. `-` alone means standard input, and `-5` is a number
    /// unless a digit is an option.
    private func isShort(_ word: String) -> Bool {
        guard word.hasPrefix("-"), let letter = word.dropFirst().first else { return false }
        let isNumber = (letter.isWholeNumber || letter == ".") && Double(word) != nil
        return !isNumber || option { $0.short == letter } != nil
    }

    private mutating func readLong(_ text: Substring) throws(UsageError) {
        let equals = text.firstIndex(of: "=")
        let name = text[..<(equals ?? text.endIndex)]
        let value = equals.map { String(text[text.index(after: $0)...]) }
        guard let option = option(where: { $0.name == name }) else {
            if command.commands.contains(where: { $0.accepts(name) }) {
                throw error("--\(name) must follow the command")
            }
            let known = commands.flatMap(\.options).map(\.name)
            throw error(
                "unknown option --\(name)", meaning: suggestion(for: String(name), among: known).map { "--\($0)" })
        }
        if option.shape == .flag {
            if value != nil { throw error("--\(name) takes no value") }
            add(true, to: option)
        } else {
            try set(option, value, spelt: "--\(name)")
        }
    }

    /// Reads short flags, of which the last may be an option with its value: `-abofile`, `-abo file`.
    private mutating func readShort(_ letters: Substring) throws(UsageError) {
        var letters = letters
        while let letter = letters.popFirst() {
            guard let option = option(where: { $0.short == letter }) else { throw error("unknown option -\(letter)") }
            if option.shape == .flag {
                add(true, to: option)
            } else {
                let value = letters.hasPrefix("=") ? letters.dropFirst() : letters
                try set(option, letters.isEmpty ? nil : String(value), spelt: "-\(letter)")
                return
            }
        }
    }

    private mutating func set(
        _ option: ParameterDeclaration, _ attached: String?, spelt: String
    ) throws(UsageError) {
        guard let value = attached ?? nextValue() else {
            throw error("\(spelt) needs a value: \(spelt) \(option.valueName)")
        }
        guard let read = option.read(value) else {
            throw error("\(spelt): expected \(option.expectation), found '\(value)'", meaning: meant(value, option))
        }
        if option.shape == .option(isRepeated: false), values[option.label] != nil {
            throw error("\(option.label) is given twice")
        }
        add(read, to: option)
    }

    /// Returns the next word unless it is an option. A value that begins with a dash is written as `--name=-word`.
    private mutating func nextValue() -> String? {
        guard let next = rest.first, !next.hasPrefix("--"), !isShort(next) else { return nil }
        return rest.popFirst()
    }

    private mutating func add(_ value: any Sendable, to parameter: ParameterDeclaration) {
        values[parameter.label, default: []].append(value)
    }

    // MARK: Commands and arguments

    private mutating func read(_ word: String) throws(UsageError) {
        if command.commands.isEmpty {
            words.append(word)
        } else if let next = command.commands.first(where: { $0.name == word }) {
            commands.append(next)
        } else if word == "help" {
            // `prog help submit` is equivalent to `prog submit --help`.
            let names = rest
            rest = []
            for name in names { try read(name) }
            add(true, to: Command.help)
        } else {
            throw error(
                "unknown command '\(word)'", meaning: suggestion(for: word, among: command.commands.map(\.name)))
        }
    }

    private mutating func assign() throws(UsageError) {
        var words = words[...]
        for argument in command.arguments {
            guard case .argument(let least, let most) = argument.shape else { continue }
            let given = words.prefix(most)
            words = words.dropFirst(given.count)
            if given.count < least {
                let found = given.isEmpty ? "" : "; expected at least \(least)"
                throw error("\(argument.name) is missing\(found)")
            }
            for word in given {
                guard let read = argument.read(word) else {
                    throw error(
                        "\(argument.name): expected \(argument.expectation), found '\(word)'",
                        meaning: meant(word, argument))
                }
                add(read, to: argument)
            }
        }
        if let extra = words.first { throw error("unexpected argument '\(extra)'") }
    }

    // MARK: Errors

    private func meant(_ word: String, _ parameter: ParameterDeclaration) -> String? {
        guard case .words(let words) = parameter.completion else { return nil }
        return suggestion(for: word, among: words)
    }

    private func error(_ message: String, meaning guess: String? = nil) -> UsageError {
        let hint = guess.map { "; did you mean \($0)?" } ?? ""
        return UsageError(message: message + hint, path: commands.map(\.name))
    }
}
