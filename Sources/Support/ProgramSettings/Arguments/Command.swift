/// A command of a program, or the program itself: its parameters, its help, and its subcommands.
public struct Command: Sendable {
    /// An example in the last section of the help.
    public struct Example: Sendable {
        let line: String
        let explanation: String

        /// Creates an example from a command line and its explanation.
        public init(_ line: String, _ explanation: String) {
            self.line = line
            self.explanation = explanation
        }
    }

    /// The name, as typed.
    public let name: String
    /// A one-sentence summary, for lists of commands.
    public let summary: String
    let discussion: String
    let version: String?
    let options: [ParameterDeclaration]
    let arguments: [ParameterDeclaration]
    let examples: [Example]
    let commands: [Command]

    /// Declares a command. An invalid declaration traps: a duplicate name, a required argument after an optional one,
    /// or arguments together with subcommands.
    /// - Parameters:
    ///   - discussion: Paragraphs separated by empty lines.
    ///   - version: The output of `--version`, for the program itself.
    ///   - parameters: The options and arguments, arguments in order. Options also apply to the subcommands.
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
        precondition(Set(options.map(\.name)).count == options.count, "\(name): duplicate option")
        let shorts = options.compactMap(\.short)
        precondition(Set(shorts).count == shorts.count, "\(name): duplicate short option")
        precondition(Set(commands.map(\.name)).count == commands.count, "\(name): duplicate command")
        precondition(commands.isEmpty || arguments.isEmpty, "\(name): a command with subcommands cannot have arguments")
        for (first, second) in zip(arguments, arguments.dropFirst()) {
            guard case .argument(let least, let most) = first.shape, case .argument(let next, _) = second.shape else {
                break
            }
            precondition(
                most == 1 && least >= min(next, 1), "\(name): \(second.name) is ambiguous after \(first.name)")
        }
    }

    static let help = Parameter.flag("help", short: "h", help: "Show this help.").declaration
    static let version = Parameter.flag("version", help: "Show the version.").declaration

    /// Parses the words after the program's name. It neither prints nor exits.
    /// - Parameters:
    ///   - columns: The maximum width of help texts.
    /// - Throws: ``UsageError``. By convention the program then exits with code 2.
    public func parse(_ arguments: [String], columns: Int = 80) throws(UsageError) -> Invocation {
        var parser = Parser(program: self, columns: columns)
        return try parser.parse(arguments)
    }
}

/// The action that a command line requests.
public enum Invocation: Sendable {
    /// Run a command.
    case run(ParsedCommand)
    /// Print this help.
    case help(String)
    /// Print this version.
    case version(String)
}

/// A parsed command line.
public struct ParsedCommand: Sendable {
    /// The names from the program to the command: `["prog", "dead", "list"]`.
    public let path: [String]
    let values: [String: [any Sendable]]

    /// The value of a parameter, which must belong to this command or to one of its ancestors.
    public subscript<Value>(parameter: Parameter<Value>) -> Value {
        parameter.assemble(values[parameter.declaration.label] ?? [])
    }

    /// True if the parameter was given.
    public func has(_ parameter: some AnyParameter) -> Bool {
        values[parameter.declaration.label]?.isEmpty == false
    }
}

/// An error in a command line.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The problem, with a suggestion if there is one.
    public let message: String
    /// The names from the program to the command in which the error occurred.
    public let path: [String]

    /// Always false: the same words cause the same error again.
    public var isRetriable: Bool { false }

    /// The message, with a pointer to the help.
    public var description: String { "\(message)\nsee '\(path.joined(separator: " ")) --help'" }
}
