import Glibc
import ProgramSettings
import Subprocess
import Testing

@Suite struct ManualPageTests {
    static let details = ManualDetails(
        product: "Prog 1.2.3", title: "Prog Manual", environment: [.init("PROG_CONFIG", "The file of `--config`.")],
        exitStatuses: [.init("0", "Success."), .init("2", "A mistake.")], files: [.init("/etc/prog", "Settings.")],
        related: ["prog.yaml(5)"])

    /// A command whose texts begin lines with what roff takes for requests and escapes.
    static let awkward = Command(
        "is-it", summary: "Isn't it? Yes.",
        discussion: """
            .so /etc/passwd
            'quoted' and `.leading` of C:\\new\\fBold
            - a dash, ~, ^, ", …, 4×4, naïve, 🙂

            An unpaired ` backtick.
            """,
        parameters: [
            Parameter.flag("no", help: ".It isn't: \\ $x `y`."),
            Parameter<String?>.optionalArgument("-.", .text, help: "'"),
        ], examples: [.init(".is-it --no '\\n'", "'It' is.")])

    static let settings = SettingsTests.schema.manualPage(
        "prog.yaml", summary: "Settings of prog.", discussion: "A file.", example: ".a:\n  'b': \"\\\\c\"\n",
        related: ["prog(1)"], details)

    static var pages: [ManualPage] {
        Example.program.manualPages(details) + awkward.manualPages(details) + [settings]
    }

    /// Formats a page, and returns the text and the warnings; nil if groff is missing.
    func formatted(_ page: ManualPage, device: String = "utf8") async throws -> (text: String, warnings: String)? {
        guard findExecutable("groff") != nil else { return nil }
        var template = Array("/tmp/manual-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            for name in ["page", "text", "warnings"] { unlink("\(folder)/\(name)") }
            rmdir(folder)
        }
        try write(page.text, to: "\(folder)/page")
        // -c: no escape sequences. -P-b and -P-u: neither bold nor underlined.
        let line = #"cd "$1" && groff -man -ww -rLL=100n -T"$2" -P-c -P-b -P-u page >text 2>warnings"#
        let child = try await ChildProcess.start(
            "/bin/sh", ["-c", line, "sh", folder, device], options: ChildProcess.Options())
        let exit = await child.exit()
        #expect(exit == .code(0), "\(page.fileName)")
        return (try contents(of: "\(folder)/text"), try contents(of: "\(folder)/warnings"))
    }

    func write(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        let count = fwrite(text, 1, text.utf8.count, file)
        try #require(fclose(file) == 0 && count == text.utf8.count)
    }

    func contents(of path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    @Test func thereIsAPageForTheProgramAndForEachCommand() {
        #expect(
            Example.program.manualPages(Self.details).map(\.fileName) == [
                "prog.1", "prog-submit.1", "prog-dead.1", "prog-dead-list.1", "prog-dead-show.1",
            ])
        #expect(Self.settings.fileName == "prog.yaml.5")
    }

    @Test func aPageHasAllSections() {
        let page = Example.program.manualPages(Self.details)[1].text
        let sections = page.split(separator: "\n").filter { $0.hasPrefix(".SH ") }.map { $0.dropFirst(5).dropLast() }
        #expect(
            sections == [
                "NAME", "SYNOPSIS", "DESCRIPTION", "ARGUMENTS", "OPTIONS", "ENVIRONMENT", "EXIT STATUS", "FILES",
                "EXAMPLES", "SEE ALSO",
            ])
        #expect(page.contains("\nprog\\-submit \\- submits jobs and can wait for them\n"))
        #expect(page.contains("\n\\fBprog submit\\fP [\\fIoptions\\fP] \\fISOURCE\\fP...\n"))
        #expect(page.contains("\n.TP\n\\fB\\-w\\fP, \\fB\\-\\-width\\fP \\fIPOINTS\\fP\nThe display width.\n"))
        #expect(page.contains("\nThe format. One of jpeg, png.\n"))
        #expect(page.contains(".SS \"Options of all commands\"\n.TP\n\\fB\\-v\\fP, \\fB\\-\\-verbose\\fP\nSay more.\n"))
        #expect(page.hasSuffix(".SH \"SEE ALSO\"\n\\fBprog\\fP(1), \\fBprog.yaml\\fP(5)\n"))
    }

    @Test func aPageOfSeveralCommandsListsThem() {
        let page = Example.program.manualPages(Self.details)[2].text
        #expect(page.contains("\n.TP\n\\fBprog\\-dead\\-list\\fP(1)\nLists them.\n"))
        #expect(page.contains("\n\\fBprog dead\\fP [\\fIoptions\\fP] \\fICOMMAND\\fP\n"))
        #expect(page.contains("\\fBprog\\fP(1), \\fBprog\\-dead\\-list\\fP(1), \\fBprog\\-dead\\-show\\fP(1)"))
    }

    @Test func allSettingsHaveTheirVariablesAndDefaults() {
        let page = Self.settings.text
        for text in [
            "\\fBkafka.brokers\\fP\nWhere Kafka is.\n", "Value: a whole number from 1 to 64\n", "Default: \\fB4\\fP\n",
            "Variable: \\fBT_WORKER_CONCURRENCY\\fP\n", "\\fBkafka.properties\\fP\nFor librdkafka.\n",
            "Variables: \\fBT_KAFKA_PROPERTY_\\fP and the name\n",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        for setting in SettingsTests.schema.settings { #expect(page.contains("\n\\fB\(setting.name)\\fP\n")) }
    }

    @Test func nothingInATextIsARequestOrAnEscape() throws {
        let page = try #require(Self.awkward.manualPages(Self.details).first?.text)
        for line in [
            "\\&.so /etc/passwd", "\\(aqquoted\\(aq and \\fB.leading\\fP of C:\\(rsnew\\(rsfBold",
            "\\- a dash, \\(ti, \\(ha, \\(dq, ..., 4\\(mu4, na\\[u00EF]ve, \\[u1F642]", "An unpaired \\(ga backtick.",
            "\\&.It isn\\(aqt: \\(rs $x \\fBy\\fP.", "\\fB\\&.is\\-it \\-\\-no \\(aq\\(rsn\\(aq\\fP",
        ] {
            #expect(page.contains("\n\(line)\n"), "\(line)")
        }
        let requests = page.split(separator: "\n").filter { $0.hasPrefix(".") || $0.hasPrefix("'") }
        let known = [".\\\"", ".TH ", ".SH ", ".SS ", ".TP", ".IP", ".PP", ".br", ".nh", ".ad l"]
        #expect(requests.allSatisfy { request in known.contains { request.hasPrefix($0) } })
        #expect(page.utf8.allSatisfy { $0 < 128 })
    }

    @Test(
        .enabled(if: findExecutable("groff") != nil, "there is no groff; the package is groff-base"),
        arguments: ["utf8", "ascii"]) func groffHasNoWarnings(device: String) async throws
    {
        for page in Self.pages {
            // Only Unicode has a smiley.
            if device == "ascii", page.text.contains("1F642") { continue }
            let (text, warnings) = try #require(try await formatted(page, device: device))
            #expect(warnings.isEmpty, "\(page.fileName)")
            #expect(text.hasPrefix(page.name.uppercased()))
        }
    }

    @Test(.enabled(if: findExecutable("groff") != nil, "there is no groff; the package is groff-base"))
    func groffPrintsWhatWasWritten() async throws {
        let page = try #require(Self.awkward.manualPages(Self.details).first)
        let text = try #require(try await formatted(page)?.text)
        for line in [
            "is-it - isn't it? Yes", ".so /etc/passwd", #"'quoted' and .leading of C:\new\fBold"#,
            #"- a dash, ~, ^, ", ..., 4×4, naïve, 🙂"#, "An unpaired ` backtick.", #".It isn't: \ $x y."#,
            #".is-it --no '\n'"#, "--no",
        ] {
            #expect(text.contains(line), "\(line) in\n\(text)")
        }
    }
}
