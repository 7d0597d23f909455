/// Options of a command under a title of their own in its help.
public struct OptionGroup: Sendable {
    let title: String
    let options: [ParameterDeclaration]

    /// Creates a group. A parameter that is not an option traps.
    public init(_ title: String, _ parameters: [any AnyParameter]) {
        self.title = title
        options = parameters.map(\.declaration)
        precondition(options.allSatisfy(\.isOption), "\(title): an argument cannot be in a group")
    }
}

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
    private let ungrouped: [ParameterDeclaration]
    private var groups: [OptionGroup]
    let arguments: [ParameterDeclaration]
    /// The names of the options in groups that `--help` shows; nil if it shows all.
    private var brief: Set<String>?
    let examples: [Example]
    let commands: [Command]

    /// Declares a command. An invalid declaration traps: a duplicate name, a required argument after an optional one,
    /// or arguments together with subcommands.
    /// - Parameters:
    ///   - discussion: Paragraphs separated by empty lines.
    ///   - version: The output of `--version`, for the program itself.
    ///   - parameters: The options and arguments, arguments in order. Options also apply to the subcommands.
    ///   - groups: Further options, each group with a title.
    ///   - brief: The names of the options in groups that `--help` shows, and not only `--help-all`. Nil shows all.
    public init(
        _ name: String, summary: String, discussion: String = "", version: String? = nil,
        parameters: [any AnyParameter] = [], groups: [OptionGroup] = [], brief: Set<String>? = nil,
        examples: [Example] = [], commands: [Command] = []
    ) {
        let declarations = parameters.map(\.declaration)
        self.name = name
        self.summary = summary
        self.discussion = discussion
        self.version = version
        self.examples = examples
        self.commands = commands
        arguments = declarations.filter { !$0.isOption }
        self.groups = groups
        self.brief = brief
        ungrouped =
            declarations.filter(\.isOption) + [Self.help] + (brief == nil ? [] : [Self.helpAll])
            + (version == nil ? [] : [Self.version])
        checkOptions()
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
    static let helpAll = Parameter.flag("help-all", help: "Show all options.").declaration
    static let version = Parameter.flag("version", help: "Show the version.").declaration

    /// Traps if a name is used twice or the short help has an unknown one.
    private func checkOptions() {
        let (names, shorts) = (options.map(\.name), options.compactMap(\.short))
        precondition(Set(names).count == names.count, "\(name): duplicate option")
        precondition(Set(shorts).count == shorts.count, "\(name): duplicate short option")
        precondition(brief?.isSubset(of: names) ?? true, "\(name): unknown option in the short help")
    }

    /// Returns the command with another group of options, which the short help shows, too.
    public func adding(_ group: OptionGroup) -> Command {
        var command = self
        command.groups.append(group)
        command.brief?.formUnion(group.options.map(\.name))
        command.checkOptions()
        return command
    }

    /// All options, in the order of the help.
    var options: [ParameterDeclaration] { ungrouped + groups.flatMap(\.options) }

    /// The options by the titles of their groups.
    /// - Parameter isComplete: False to leave out those that the short help does not show.
    func titledOptions(isComplete: Bool = true) -> [(title: String, options: [ParameterDeclaration])] {
        let shown = isComplete ? nil : brief
        return [("Options", ungrouped)]
            + groups.map { group in (group.title, group.options.filter { shown?.contains($0.name) ?? true }) }
    }

    /// True if the command or one of its subcommands has this option.
    func accepts(_ option: Substring) -> Bool {
        options.contains { $0.name == option } || commands.contains { $0.accepts(option) }
    }

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
