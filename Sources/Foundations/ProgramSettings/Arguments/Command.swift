/// A command of a program, or the program itself: what it takes, what it says of itself, and the commands under it.
public struct Command: Sendable {
    /// A line of the help's last section.
    public struct Example: Sendable {
        let line: String
        let explanation: String

        /// What to type, and what that does.
        public init(_ line: String, _ explanation: String) {
            self.line = line
            self.explanation = explanation
        }
    }

    /// What is typed.
    public let name: String
    /// One sentence, for lists of commands.
    public let summary: String
    let discussion: String
    let version: String?
    let options: [ParameterDeclaration]
    let arguments: [ParameterDeclaration]
    let examples: [Example]
    let commands: [Command]

    /// Declares a command. A mistake in the declaration traps: a name that stands twice, a required argument behind an
    /// optional one, arguments beside commands.
    /// - Parameters:
    ///   - discussion: paragraphs, with an empty line between them.
    ///   - version: what `--version` prints; for the program itself.
    ///   - parameters: arguments are taken in this order. Options work for the commands under this one too.
    public init(
        _ name: String, summary: String, discussion: String = "", version: String? = nil,
        parameters: [any AnyParameter] = [], examples: [Example] = [], commands: [Command] = []
    ) {
        let declarations = parameters.map(\.declaration)
        self.name = name
        self.summary = summary
        self.discussion = discussion
        self.version = version
        self.examples = examples
        self.commands = commands
        arguments = declarations.filter { !$0.isOption }
        options = declarations.filter(\.isOption) + [Self.help] + (version == nil ? [] : [Self.version])
        precondition(Set(options.map(\.name)).count == options.count, "\(name): an option stands twice")
        let shorts = options.compactMap(\.short)
        precondition(Set(shorts).count == shorts.count, "\(name): a letter stands for two options")
        precondition(Set(commands.map(\.name)).count == commands.count, "\(name): a command stands twice")
        precondition(commands.isEmpty || arguments.isEmpty, "\(name): arguments beside commands")
        for (first, second) in zip(arguments, arguments.dropFirst()) {
            guard case .argument(let least, let most) = first.shape, case .argument(let next, _) = second.shape else {
                break
            }
            precondition(
                most == 1 && least >= min(next, 1), "\(name): \(second.name) can never be told from \(first.name)")
        }
    }

    static let help = Parameter.flag("help", short: "h", help: "Show this help.").declaration
    static let version = Parameter.flag("version", help: "Show the version.").declaration

    /// Reads the words behind the program's name. It prints nothing and ends nothing.
    /// - Parameters:
    ///   - columns: how wide help may be.
    /// - Throws: ``UsageError``; by custom the program then ends with code 2.
    public func parse(_ arguments: [String], columns: Int = 80) throws(UsageError) -> Invocation {
        var parser = Parser(program: self, columns: columns)
        return try parser.parse(arguments)
    }
}

/// What a command line asks for.
public enum Invocation: Sendable {
    /// To run a command.
    case run(ParsedCommand)
    /// To print this help.
    case help(String)
    /// To print this version.
    case version(String)
}

/// A command line that was understood.
public struct ParsedCommand: Sendable {
    /// The names from the program to the command: `["prog", "dead", "list"]`.
    public let path: [String]
    let values: [String: [any Sendable]]

    /// What was given for a parameter, which must be one of this command's or of those above it.
    public subscript<Value>(parameter: Parameter<Value>) -> Value {
        parameter.assemble(values[parameter.declaration.label] ?? [])
    }

    /// Whether it was given at all.
    public func has(_ parameter: some AnyParameter) -> Bool {
        values[parameter.declaration.label]?.isEmpty == false
    }
}

/// A command line that was not understood.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong and, where it can be guessed, what was meant.
    public let message: String
    /// The names from the program to the command that it happened in.
    public let path: [String]

    /// The same words fail again.
    public var isRetriable: Bool { false }

    /// The message, and where to read on.
    public var description: String { "\(message)\nsee '\(path.joined(separator: " ")) --help'" }
}
