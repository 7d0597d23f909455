import ProgramSettings
import Testing

@Suite struct HelpTests {
    func help(_ words: [String], columns: Int = 80) throws -> String {
        guard case .help(let text) = try Example.program.parse(words, columns: columns) else {
            throw Example.NotACommand()
        }
        return text
    }

    @Test func showsTheHelpOfACommand() throws {
        #expect(
            try help(["submit", "--help"]) == """
                Submits jobs and can wait for them.

                Usage: prog submit [options] SOURCE...

                Each source becomes one job. Jobs are independent of each other.

                With '-' a job is read from standard input.

                Arguments:
                  SOURCE...  What to load.

                Options:
                  -j, --json           Print JSON.
                  -w, --width POINTS   The display width.
                      --scale N        The screen's scale.
                  -f, --format FORMAT  The format. One of jpeg, png.
                  -t, --tag TAG        A tag; may be given often.
                  -o, --output DIR     Where results go.
                  -h, --help           Show this help.

                Options of all commands:
                  -v, --verbose      Say more.
                  -c, --config FILE  Read settings from this file.

                Examples:
                  prog submit --width 400 cat.jpg
                      Makes a picture of 400 points width.

                """)
    }

    @Test func listsCommands() throws {
        #expect(
            try help(["-h"]) == """
                Does things.

                Usage: prog [options] COMMAND

                Commands:
                  submit  Submits jobs and can wait for them.
                  dead    Works the dead letters.

                Options:
                  -v, --verbose      Say more.
                  -c, --config FILE  Read settings from this file.
                  -h, --help         Show this help.
                      --version      Show the version.

                """)
    }

    @Test func acceptsAllFormsAndTakesPrecedenceOverErrors() throws {
        let text = try help(["submit", "--help"])
        for words in [
            ["submit", "-h"], ["help", "submit"], ["submit", "a", "--help", "--nonsense"],
            ["-vh", "submit"].reversed(),
        ] {
            #expect(try help(words) == text)
        }
        #expect(try help(["help"]) == help(["--help"]))
        #expect(try help(["help", "dead", "list"]) == help(["dead", "list", "--help"]))
        #expect(try help(["dead", "help", "list"]) == help(["dead", "list", "--help"]))
        #expect(Example.errorMessage(["help", "nonsense"]).hasPrefix("unknown command 'nonsense'"))
    }

    @Test(arguments: [40, 50, 60, 80, 120]) func staysWithinTheTerminalWidth(columns: Int) throws {
        for words in [["-h"], ["submit", "-h"], ["dead", "-h"], ["dead", "show", "-h"]] {
            let text = try help(words, columns: columns)
            // Lines to be typed are never wrapped.
            let lines = text.split(separator: "\n").filter { !$0.hasPrefix("Usage:") && !$0.contains("prog submit") }
            #expect(lines.allSatisfy { $0.count <= columns })
        }
    }

    @Test func putsALongOptionOnItsOwnLine() throws {
        let long = Parameter.option("a-very-long-name-for-an-option", .text, as: "WITH-A-VALUE", help: "Rarely used.")
        let program = Command(
            "p", summary: "S.", parameters: [long, Parameter.flag("short", short: "s", help: "Often.")])
        guard case .help(let text) = try program.parse(["-h"]) else { throw Example.NotACommand() }
        #expect(
            text.hasSuffix(
                """
                Options:
                      --a-very-long-name-for-an-option WITH-A-VALUE
                               Rarely used.
                  -s, --short  Often.
                  -h, --help   Show this help.

                """))
    }

    private static let grouped = Command(
        "p", summary: "S.", parameters: [Example.json],
        groups: [
            OptionGroup("Size", [Example.width, Example.scale]), OptionGroup("Where", [Example.folder]),
        ], brief: ["width"])

    private func groupedHelp(_ words: String...) throws -> String {
        let program = Command("prog", summary: "P.", commands: [Self.grouped])
        guard case .help(let text) = try program.parse(words) else { throw Example.NotACommand() }
        return String(text.drop { $0 != "O" })
    }

    @Test func shortHelpHasTheBriefOptionsByGroup() throws {
        let short = """
            Options:
              -j, --json      Print JSON.
              -h, --help      Show this help.
                  --help-all  Show all options.

            Size:
              -w, --width POINTS  The display width.

            """
        #expect(try groupedHelp("p", "--help") == short)
        #expect(try groupedHelp("help", "p") == short)
        #expect(
            try groupedHelp("p", "--help-all") == short + """
                      --scale N       The screen's scale.

                Where:
                  -o, --output DIR  Where results go.

                """)
    }

    @Test func addedGroupsAreInTheShortHelp() throws {
        let command = Self.grouped.adding(OptionGroup("Connection", [Example.config]))
        guard case .help(let text) = try command.parse(["-h"]) else { throw Example.NotACommand() }
        #expect(text.hasSuffix("Connection:\n  -c, --config FILE  Read settings from this file.\n"))
        // All options are accepted, whatever the help shows.
        guard case .run(let parsed) = try command.parse(["-c", "x", "--scale", "2", "-o", "y"]) else {
            throw Example.NotACommand()
        }
        #expect(parsed[Example.config] == "x" && parsed[Example.scale] == 2 && parsed[Example.folder] == "y")
    }

    @Test func optionsBeforeTheirCommandAreExplained() {
        #expect(Example.errorMessage(["--width", "4", "submit", "a"]).hasPrefix("--width must follow the command"))
        #expect(Example.errorMessage(["--widht", "4", "submit", "a"]).hasPrefix("unknown option --widht"))
    }

    @Test func showsTheVersion() throws {
        for words in [["--version"], ["submit", "--version"], ["--version", "--nonsense"]] {
            guard case .version(let text) = try Example.program.parse(words) else { throw Example.NotACommand() }
            #expect(text == "prog 1.2.3")
        }
        #expect(throws: UsageError.self) { try Command("p", summary: "").parse(["--version"]) }
    }
}
