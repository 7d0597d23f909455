import ProgramSettings
import Testing

@Suite struct ParsingTests {
    @Test func findsCommandsOfAnyDepth() throws {
        #expect(try Example.run("submit", "a").path == ["prog", "submit"])
        #expect(try Example.run("dead", "list").path == ["prog", "dead", "list"])
    }

    @Test(arguments: [
        ["--width", "400"], ["--width=400"], ["-w", "400"], ["-w400"], ["-w=400"], ["-jw400"], ["-jw", "400"],
        ["-vjw", "400"],
    ]) func readsOptionsInEverySpelling(words: [String]) throws {
        for line in [["submit"] + words + ["a.jpg"], ["submit", "a.jpg"] + words] {
            guard case .run(let parsed) = try Example.program.parse(line) else { throw Example.NotACommand() }
            #expect(parsed[Example.width] == 400)
            #expect(parsed[Example.sources] == ["a.jpg"])
            #expect(parsed[Example.json] == words[0].contains("j"))
        }
    }

    @Test func returnsDefaultsForMissingOptions() throws {
        let parsed = try Example.run("submit", "a")
        #expect(parsed[Example.width] == nil)
        #expect(parsed[Example.scale] == 1)
        #expect(parsed[Example.format] == .jpeg)
        #expect(parsed[Example.tags] == [])
        #expect(!parsed[Example.json])
        #expect(!parsed.has(Example.scale))
        #expect(try Example.run("submit", "a", "--scale", "1").has(Example.scale))
    }

    @Test func readsRepeatedOptionsInOrder() throws {
        let parsed = try Example.run("submit", "-t", "x", "--tag=y", "a", "-tz", "--tag", "")
        #expect(parsed[Example.tags] == ["x", "y", "z", ""])
    }

    @Test func acceptsProgramOptionsAnywhere() throws {
        for line in [["-v", "-c", "f", "submit", "a"], ["submit", "-v", "a", "--config=f"]] {
            guard case .run(let parsed) = try Example.program.parse(line) else { throw Example.NotACommand() }
            #expect(parsed[Example.verbose])
            #expect(parsed[Example.config] == "f")
        }
    }

    @Test func readsArguments() throws {
        #expect(try Example.run("submit", "a", "b", "c")[Example.sources] == ["a", "b", "c"])
        #expect(try Example.run("dead", "list")[Example.names] == [])
        #expect(try Example.run("dead", "list", "a")[Example.names] == ["a"])
        #expect(try Example.run("dead", "show", "7")[Example.id] == 7)
        #expect(try Example.run("dead", "show", "7")[Example.note] == nil)
        #expect(try Example.run("dead", "show", "7", "because")[Example.note] == "because")
    }

    @Test func distinguishesOptionsFromDashedValues() throws {
        #expect(try Example.run("submit", "-", "a")[Example.sources] == ["-", "a"])
        #expect(try Example.run("submit", "--", "--json", "-w", "--")[Example.sources] == ["--json", "-w", "--"])
        #expect(try Example.run("submit", "-c", "-", "a")[Example.config] == "-")
        #expect(try Example.run("submit", "--tag=--json", "a")[Example.tags] == ["--json"])
        #expect(try Example.run("submit", "--tag=a=b", "a")[Example.tags] == ["a=b"])
        #expect(try Example.run("submit", "--tag=", "a")[Example.tags] == [""])
        #expect(try Example.run("submit", "")[Example.sources] == [""])
    }

    @Test func readsNegativeNumbersAsValues() throws {
        #expect(try Example.run("submit", "--width", "-5", "a")[Example.width] == -5)
        #expect(try Example.run("submit", "-w", "-.5e3", "a")[Example.width] == -500)
        #expect(try Example.run("submit", "-w-5", "a")[Example.width] == -5)
        #expect(try Example.run("dead", "list", "-5", "-1.5")[Example.names] == ["-5", "-1.5"])
        #expect(Example.errorMessage(["dead", "list", "-5x"]).hasPrefix("unknown option -5"))
    }

    @Test func acceptsADigitAsAShortOption() throws {
        let ten = Parameter.flag("ten", short: "1", help: "")
        let names = Parameter.arguments("NAME", .text, atLeast: 0, help: "")
        let program = Command("p", summary: "", parameters: [ten, names])
        guard case .run(let parsed) = try program.parse(["-1", "-2"]) else { throw Example.NotACommand() }
        #expect(parsed[ten])
        #expect(parsed[names] == ["-2"])
    }

    @Test(
        arguments: [
            ([], "a command is missing", "prog"),
            (["dead"], "a command is missing", "prog dead"),
            (["submti", "a"], "unknown command 'submti'; did you mean submit?", "prog"),
            (["frobnicate"], "unknown command 'frobnicate'", "prog"),
            (["dead", "lsit"], "unknown command 'lsit'; did you mean list?", "prog dead"),
            (["submit"], "SOURCE is missing", "prog submit"),
            (["submit", "a", "--widht", "4"], "unknown option --widht; did you mean --width?", "prog submit"),
            (["submit", "a", "--verbsoe"], "unknown option --verbsoe; did you mean --verbose?", "prog submit"),
            (["submit", "a", "--xyzzy"], "unknown option --xyzzy", "prog submit"),
            (["submit", "a", "-x"], "unknown option -x", "prog submit"),
            (["submit", "a", "-jx"], "unknown option -x", "prog submit"),
            (["submit", "a", "--width"], "--width needs a value: --width POINTS", "prog submit"),
            (["submit", "a", "-w"], "-w needs a value: -w POINTS", "prog submit"),
            (["submit", "a", "--width", "--json"], "--width needs a value: --width POINTS", "prog submit"),
            (["submit", "a", "--tag", "-j"], "--tag needs a value: --tag TAG", "prog submit"),
            (["submit", "a", "--width", "wide"], "--width: expected a number, found 'wide'", "prog submit"),
            (["submit", "a", "--width=nan"], "--width: expected a number, found 'nan'", "prog submit"),
            (
                ["submit", "a", "--scale", "5"], "--scale: expected a whole number from 1 to 4, found '5'",
                "prog submit"
            ),
            (
                ["submit", "a", "-f", "jpg"], "-f: expected one of jpeg, png, found 'jpg'; did you mean jpeg?",
                "prog submit"
            ),
            (["submit", "a", "-w1", "--width", "2"], "--width is given twice", "prog submit"),
            (["submit", "a", "--json=yes"], "--json takes no value", "prog submit"),
            (["dead", "show"], "ID is missing", "prog dead show"),
            (["dead", "show", "x"], "ID: expected a whole number of at least 1, found 'x'", "prog dead show"),
            (["dead", "show", "1", "note", "more"], "unexpected argument 'more'", "prog dead show"),
            (["--", "submit"], "a command is missing", "prog"),
        ] as [([String], String, String)]) func reportsUsageErrors(words: [String], message: String, place: String)
    {
        #expect(Example.errorMessage(words) == "\(message)\nsee '\(place) --help'")
    }

    @Test func rejectsInvalidDeclarations() async {
        await #expect(processExitsWith: .failure) {
            _ = Command("p", summary: "", parameters: [Example.json, Parameter.flag("json", help: "")])
        }
        await #expect(processExitsWith: .failure) {
            _ = Command("p", summary: "", parameters: [Example.json, Parameter.flag("jump", short: "j", help: "")])
        }
        await #expect(processExitsWith: .failure) {
            _ = Command("p", summary: "", parameters: [Example.note, Example.id])
        }
        await #expect(processExitsWith: .failure) {
            _ = Command("p", summary: "", parameters: [Example.sources, Example.note])
        }
        await #expect(processExitsWith: .failure) {
            _ = Command("p", summary: "", parameters: [Example.id], commands: [Example.dead])
        }
    }
}
