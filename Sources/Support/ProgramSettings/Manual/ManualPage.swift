/// A page of the manual, in the man macros of roff. man(7) describes them.
public struct ManualPage: Sendable {
    /// The name of the page: `prog-submit`.
    public let name: String
    /// The section of the manual: 1 for commands, 5 for files.
    public let section: Int
    /// The source text of the page, in ASCII.
    public let text: String

    /// The file name: `prog-submit.1`.
    public var fileName: String { "\(name).\(section)" }
}

/// The parts of a manual that the declarations of commands and settings do not contain.
public struct ManualDetails: Sendable {
    /// A name with its meaning.
    public struct Entry: Sendable {
        let name: String
        let meaning: String

        /// Creates an entry. Text in backticks is set in bold.
        public init(_ name: String, _ meaning: String) {
            self.name = name
            self.meaning = meaning
        }
    }

    /// The product and its version, for the footer.
    public let product: String
    /// The title of the manual, for the header.
    public let title: String
    let environment: [Entry]
    let exitStatuses: [Entry]
    let files: [Entry]
    let related: [String]

    /// Creates the details of a manual.
    /// - Parameters:
    ///   - related: Other pages for the last section of each page, such as `prog.yaml(5)`.
    public init(
        product: String, title: String, environment: [Entry] = [], exitStatuses: [Entry] = [], files: [Entry] = [],
        related: [String] = []
    ) {
        self.product = product
        self.title = title
        self.environment = environment
        self.exitStatuses = exitStatuses
        self.files = files
        self.related = related
    }
}

extension Command {
    /// Returns the manual pages of this program: one of the program, and one of each command.
    public func manualPages(_ details: ManualDetails) -> [ManualPage] {
        CommandPosition.all(of: self).map { commandPage($0, program: self, details) }
    }
}

private func commandPage(_ position: CommandPosition, program: Command, _ details: ManualDetails) -> ManualPage {
    let command = position.command
    let words = position.path.split(separator: " ")
    let name = words.joined(separator: "-")
    var roff = Roff(name: name, section: 1, details)

    roff.section("NAME")
    roff.line("\(escaped(name)) \\- \(escaped(nameSummary(command.summary)))")

    roff.section("SYNOPSIS")
    let tail = command.commands.isEmpty ? command.arguments.map(synopsis) : ["\\fICOMMAND\\fP"]
    roff.line((["\\fB\(escaped(position.path))\\fP", "[\\fIoptions\\fP]"] + tail).joined(separator: " "))

    roff.section("DESCRIPTION")
    roff.prose(command.summary)
    if !command.discussion.isEmpty {
        roff.line(".PP")
        roff.prose(command.discussion)
    }

    if !command.commands.isEmpty {
        roff.section("COMMANDS")
        for each in command.commands { roff.item("\\fB\(escaped("\(name)-\(each.name)"))\\fP(1)", each.summary) }
    }
    if !command.arguments.isEmpty {
        roff.section("ARGUMENTS")
        for argument in command.arguments { roff.item(synopsis(argument), explanation(of: argument)) }
    }

    // Options of the command itself come first. Those of its ancestors are the same on all pages.
    roff.section("OPTIONS")
    let inherited = position.options.filter { option in !command.options.contains { $0.name == option.name } }
    let titled = command.titledOptions() + [("Options of all commands", inherited)]
    for (index, (title, options)) in titled.enumerated() where !options.isEmpty {
        if index > 0 { roff.subsection(title) }
        for option in options { roff.item(spelling(option), explanation(of: option)) }
    }

    for (title, entries) in [
        ("ENVIRONMENT", details.environment), ("EXIT STATUS", details.exitStatuses), ("FILES", details.files),
    ] where !entries.isEmpty {
        roff.section(title)
        for entry in entries { roff.item("\\fB\(escaped(entry.name))\\fP", entry.meaning) }
    }
    if !command.examples.isEmpty {
        roff.section("EXAMPLES")
        for example in command.examples { roff.item("\\fB\(escaped(example.line))\\fP", example.explanation) }
    }
    let ancestors = words.indices.dropLast().map { "\(words[...$0].joined(separator: "-"))(1)" }
    let children = command.commands.map { "\(name)-\($0.name)(1)" }
    roff.seeAlso(ancestors + children + details.related)
    return ManualPage(name: name, section: 1, text: roff.text)
}

/// Returns an argument in italics, in brackets if it is optional.
private func synopsis(_ argument: ParameterDeclaration) -> String {
    guard case .argument(let least, let most) = argument.shape else { return "" }
    let name = "\\fI\(escaped(argument.name))\\fP" + (most > 1 ? "..." : "")
    return least == 0 ? "[\(name)]" : name
}

/// Returns the spellings of an option in bold and its value in italics.
private func spelling(_ option: ParameterDeclaration) -> String {
    let spellings = option.spellings.reversed().map { "\\fB\(escaped($0))\\fP" }.joined(separator: ", ")
    return option.shape == .flag ? spellings : "\(spellings) \\fI\(escaped(option.valueName))\\fP"
}

/// Returns a summary in the form that the section NAME has by convention: its first sentence in lower case, without a
/// period. apropos(1) lists it.
func nameSummary(_ summary: String) -> String {
    let sentence = summary.firstRange(of: ". ").map { summary[..<$0.lowerBound] } ?? summary[...]
    let text = sentence.hasSuffix(".") ? sentence.dropLast() : sentence
    // An acronym stays in capitals.
    let isAcronym = text.dropFirst().first?.isUppercase == true
    return isAcronym ? String(text) : text.prefix(1).lowercased() + text.dropFirst()
}

extension SettingsSchema {
    /// Returns a page in section 5 of the manual that lists all settings with their values, defaults and variables.
    /// - Parameters:
    ///   - name: The name of the settings file, such as `prog.yaml`.
    ///   - summary: A one-sentence summary of the page.
    ///   - discussion: Paragraphs separated by empty lines, with text in backticks set in bold.
    ///   - example: A settings file.
    ///   - related: Other pages, such as `prog(1)`.
    public func manualPage(
        _ name: String, summary: String, discussion: String, example: String, related: [String],
        _ details: ManualDetails
    ) -> ManualPage {
        var roff = Roff(name: name, section: 5, details)
        roff.section("NAME")
        roff.line("\(escaped(name)) \\- \(escaped(nameSummary(summary)))")
        roff.section("DESCRIPTION")
        roff.prose(discussion)
        roff.section("SETTINGS")
        var part = Substring()
        for setting in settings {
            let first = setting.name.prefix { $0 != "." }
            if first != part { roff.subsection(String(first)) }
            part = first
            let text = setting.isSecret ? stars(for: setting.text(defaults)) : setting.text(defaults)
            let variables = ([variable(for: setting.name)] + setting.fallbacks).map { "`\($0)`" }
            roff.item(
                "\\fB\(escaped(setting.name))\\fP",
                [
                    setting.explanation, "Value: \(setting.expectation)", text.isEmpty ? "" : "Default: `\(text)`",
                    "Variable: \(variables.joined(separator: ", else "))",
                ].filter { !$0.isEmpty }.joined(separator: "\n"))
        }
        if !maps.isEmpty {
            roff.section("MAPPINGS")
            roff.prose("Each of these settings is a mapping with names of your choice.")
            for map in maps {
                roff.item(
                    "\\fB\(escaped(map.name))\\fP",
                    "\(map.explanation)\nVariables: `\(prefix)\(map.variables)` and the name")
            }
        }
        roff.section("EXAMPLES")
        roff.line(".nf")
        for line in example.split(separator: "\n", omittingEmptySubsequences: false) { roff.line(escaped(line)) }
        roff.line(".fi")
        roff.seeAlso(related)
        return ManualPage(name: name, section: 5, text: roff.text)
    }
}
